"""What is published about a model and decides its memory: frozen values, checked when made."""

from dataclasses import dataclass

from sizing.engine.errors import UnsizableModel
from sizing.engine.rounding import ceil_div


@dataclass(frozen=True)
class CacheGroup:
    """Layers that keep the same kind of key/value cache.

    Shape: each of `layers` keeps `elements_per_token` numbers per token: 2 x kv_heads x head_dim for ordinary
    attention, kv_lora_rank + qk_rope_head_dim for multi-head latent attention (MLA), which stores one vector for all
    heads.
    `kv_heads` says how many ways it can be split over GPUs; None is a cache that every GPU holds whole.
    `window` is the most tokens kept; None keeps them all.
    Raises: UnsizableModel naming the field that is missing or below 1.
    """

    layers: int
    elements_per_token: int
    kv_heads: int | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        _require("layers", self.layers)
        _require("elements_per_token", self.elements_per_token)
        if self.kv_heads is not None:
            _require("kv_heads", self.kv_heads)
            if self.elements_per_token % (2 * self.kv_heads):
                raise UnsizableModel(
                    "elements_per_token must be a multiple of 2 x kv_heads", field="elements_per_token"
                )
        if self.window is not None:
            _require("window", self.window)

    @property
    def head_dim(self) -> int | None:
        """The width of one head, of which a key and a value are kept; None for a cache without heads."""
        return None if self.kv_heads is None else self.elements_per_token // (2 * self.kv_heads)

    def heads_per_gpu(self, gpus: int) -> int | None:
        """The KV heads that one of `gpus` holds: its share, at least one; None for a cache without heads."""
        return None if self.kv_heads is None else ceil_div(self.kv_heads, gpus)

    def elements_per_gpu(self, gpus: int) -> int:
        """Elements per token and layer on one of `gpus`; a cache without heads is whole on every GPU."""
        heads, width = self.heads_per_gpu(gpus), self.head_dim
        return self.elements_per_token if heads is None or width is None else 2 * heads * width

    def tokens_kept(self, context: int) -> int:
        return context if self.window is None else min(context, self.window)


@dataclass(frozen=True)
class LanguageModel:
    """The published figures of a language model.

    Shape: `parameters` counts every stored weight once, all experts of a mixture included. `split_width` is the width
    that tensor parallelism divides in the MLP: the expert's for a mixture, None where it is not published.
    Units: `state_bytes_per_sequence` is the constant state of linear or state-space layers, per request. `training` is
    what fine-tuning needs besides; None where it is not published. `stored_bytes` is the size of one given checkpoint,
    by which its weights are then counted; `quantized` says that the checkpoint is.
    Raises: UnsizableModel naming the field that is missing or below 1.
    """

    name: str
    parameters: int
    attention_heads: int
    cache_groups: tuple[CacheGroup, ...]
    max_context: int
    split_width: int | None = None
    state_bytes_per_sequence: int = 0
    training: "TrainingShape | None" = None
    stored_bytes: int | None = None
    quantized: bool = False

    def __post_init__(self) -> None:
        _require("parameters", self.parameters)
        _require("attention_heads", self.attention_heads)
        _require("max_context", self.max_context)
        if self.split_width is not None:
            _require("split_width", self.split_width)
        if self.stored_bytes is not None:
            _require("stored_bytes", self.stored_bytes)
        if not self.cache_groups:
            raise UnsizableModel("the cache layout is not known", field="cache_groups")
        if self.state_bytes_per_sequence < 0:
            raise UnsizableModel("state_bytes_per_sequence must be 0 or more", field="state_bytes_per_sequence")


@dataclass(frozen=True)
class Projection:
    """A linear module that an adapter can be put on, alike in each of `layers` layers.

    Shape: `module` is its name in the checkpoint. `serves` are the target words it answers to: q, k, v, o, and gate,
    up, down in the MLP. A fused module answers to several, and has one adapter for all of them.
    """

    module: str
    serves: tuple[str, ...]
    in_features: int
    out_features: int
    layers: int

    def __post_init__(self) -> None:
        _require("in_features", self.in_features)
        _require("out_features", self.out_features)
        _require("layers", self.layers)


@dataclass(frozen=True)
class TrainingShape:
    """The figures that decide a language model's activations and adapters."""

    layers: int
    hidden_size: int
    vocab_size: int
    projections: tuple[Projection, ...]

    def __post_init__(self) -> None:
        _require("layers", self.layers)
        _require("hidden_size", self.hidden_size)
        _require("vocab_size", self.vocab_size)
        if not self.projections:
            raise UnsizableModel("the projections are not known", field="projections")

    @property
    def target_words(self) -> tuple[str, ...]:
        """The target words that some module answers to."""
        return tuple(dict.fromkeys(word for projection in self.projections for word in projection.serves))


@dataclass(frozen=True)
class Network:
    """One network of an image pipeline: `role` is denoiser, text_encoder, vae or safety_checker."""

    role: str
    name: str
    parameters: int

    def __post_init__(self) -> None:
        _require("parameters", self.parameters)


@dataclass(frozen=True)
class ImagePipeline:
    """The networks that an image pipeline loads, all of which are resident."""

    name: str
    networks: tuple[Network, ...]

    def __post_init__(self) -> None:
        if not self.networks:
            raise UnsizableModel("the networks are not known", field="networks")


@dataclass(frozen=True)
class SpeechModel:
    """The published figures of an encoder-decoder speech model (Whisper).

    Shape: the decoder keeps a key and a value of `hidden_size` numbers in each of `decoder_layers` layers, for up to
    `max_target_positions` tokens and for the `max_source_positions` encoder positions of one 30-second window.
    """

    name: str
    parameters: int
    decoder_layers: int
    hidden_size: int
    max_source_positions: int
    max_target_positions: int

    def __post_init__(self) -> None:
        for field in ("parameters", "decoder_layers", "hidden_size", "max_source_positions", "max_target_positions"):
            _require(field, getattr(self, field))


def _require(field: str, value: int | None) -> None:
    if value is None:
        raise UnsizableModel(f"{field} is not published", field=field)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UnsizableModel(f"{field} must be a whole number of 1 or more", field=field)
