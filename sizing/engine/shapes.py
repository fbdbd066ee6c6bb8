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
    Units: `state_bytes_per_sequence` is the constant state of linear or state-space layers, per request.
    Raises: UnsizableModel naming the field that is missing or below 1.
    """

    name: str
    parameters: int
    attention_heads: int
    cache_groups: tuple[CacheGroup, ...]
    max_context: int
    split_width: int | None = None
    state_bytes_per_sequence: int = 0

    def __post_init__(self) -> None:
        _require("parameters", self.parameters)
        _require("attention_heads", self.attention_heads)
        _require("max_context", self.max_context)
        if self.split_width is not None:
            _require("split_width", self.split_width)
        if not self.cache_groups:
            raise UnsizableModel("the cache layout is not known", field="cache_groups")
        if self.state_bytes_per_sequence < 0:
            raise UnsizableModel("state_bytes_per_sequence must be 0 or more", field="state_bytes_per_sequence")


def _require(field: str, value: int | None) -> None:
    if value is None:
        raise UnsizableModel(f"{field} is not published", field=field)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UnsizableModel(f"{field} must be a whole number of 1 or more", field=field)
