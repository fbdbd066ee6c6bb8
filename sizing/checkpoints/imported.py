"""What a file says about a model: figures, each with the fields that it came from."""

from dataclasses import dataclass, replace

from sizing.checkpoints.agreement import check_bytes, check_layers
from sizing.checkpoints.errors import UnreadableModel
from sizing.checkpoints.json_reading import INDEX
from sizing.engine.shapes import CacheGroup, LanguageModel, Projection, TrainingShape

# Far above every published model, and inside what a database column and a page can hold.
MOST_PARAMETERS = 10**15
MOST_ELEMENTS = 10**8
MOST_STATE_BYTES = 10**13


@dataclass(frozen=True)
class Derived:
    """One figure with its origin: the fields that were read, and the rule that made the figure from them."""

    figure: str
    value: int | str
    fields: tuple[str, ...]
    rule: str


@dataclass(frozen=True)
class ParameterPart:
    """One kind of weights of a model, all layers together."""

    name: str
    parameters: int
    rule: str


@dataclass(frozen=True)
class Quantization:
    """What the file says about how its weights are stored. `bits` is None where it does not say one number."""

    method: str
    bits: int | None
    fields: tuple[str, ...]


@dataclass(frozen=True)
class StoredWeights:
    """The tensors of a checkpoint, as its index or header lists them.

    Units: `bytes_by_dtype` in bytes; empty where only the total is known (an index).
    `parameters` is None where integers hold several weights each: then only the bytes say how large it is.
    `layers` is one more than the highest number of a layer, `missing_layer` the first one below without a tensor.
    """

    document: str
    total_bytes: int
    tensors: int
    bytes_by_dtype: tuple[tuple[str, int], ...] = ()
    parameters: int | None = None
    layers: int | None = None
    missing_layer: int | None = None

    @property
    def size_field(self) -> str:
        """What the file calls its bytes: an index states them, a header lists what they are made of."""
        return "metadata.total_size" if self.document == INDEX else self.document


@dataclass(frozen=True)
class ImportedModel:
    """A model as its own file describes it.

    Units: `state_bytes_per_sequence` and `stored_bytes` in bytes; `stored_bytes` is None where no header or index was
    given. `left_out` says what the checkpoint may hold beyond `parameters`; `draft_layers` are such layers, numbered
    like the model's own.
    """

    architecture: str
    parameters: int
    layers: int
    hidden_size: int
    attention_heads: int
    vocab_size: int
    max_context: int
    cache_groups: tuple[CacheGroup, ...]
    provenance: tuple[Derived, ...]
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int | None = None
    expert_intermediate_size: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    active_parameters: int | None = None
    state_bytes_per_sequence: int = 0
    cache_note: str = ""
    accepts_images: bool = False
    tied_embeddings: bool = False
    dtype: str | None = None
    quantization: Quantization | None = None
    parts: tuple[ParameterPart, ...] = ()
    projections: tuple[Projection, ...] = ()
    left_out: tuple[str, ...] = ()
    draft_layers: int = 0
    stored: StoredWeights | None = None

    def __post_init__(self) -> None:
        if self.parameters > MOST_PARAMETERS:
            _refuse_size("parameters", f"the fields describe more than {MOST_PARAMETERS:,} parameters")
        if any(group.elements_per_token > MOST_ELEMENTS for group in self.cache_groups):
            _refuse_size("cache_groups", f"the fields describe more than {MOST_ELEMENTS:,} cache elements per token")
        if self.state_bytes_per_sequence > MOST_STATE_BYTES:
            _refuse_size("state_bytes_per_sequence", f"the fields describe more than {MOST_STATE_BYTES:,} bytes")

    @property
    def stored_bytes(self) -> int | None:
        return None if self.stored is None else self.stored.total_bytes

    def shape(self, name: str) -> LanguageModel:
        """The figures as the engine takes them."""
        return LanguageModel(
            name=name,
            parameters=self.parameters,
            attention_heads=self.attention_heads,
            cache_groups=self.cache_groups,
            max_context=self.max_context,
            split_width=self.expert_intermediate_size or self.intermediate_size,
            state_bytes_per_sequence=self.state_bytes_per_sequence,
            training=self.training,
            stored_bytes=self.stored_bytes,
            quantized=self.quantization is not None,
        )

    @property
    def training(self) -> TrainingShape | None:
        """What fine-tuning needs. None for a GGUF file, which is not trained, and for a hybrid: the activations of its
        linear-attention and state-space layers are not known.
        """
        if not self.projections or self.state_bytes_per_sequence:
            return None
        return TrainingShape(self.layers, self.hidden_size, self.vocab_size, self.projections)

    def with_stored(self, stored: StoredWeights) -> "ImportedModel":
        """The same model with the bytes of its checkpoint, after checking that the two belong together.

        Raises: UnreadableModel when the checkpoint is of another model, or only a part of this one.
        """
        check_layers(self, stored)
        check_bytes(self, stored)
        # More is possible: a tied matrix stored twice, a draft head, scales. Twice as many is another model.
        counted = stored.parameters
        if counted is not None and not self.parameters * 98 <= counted * 100 <= self.parameters * 200:
            raise UnreadableModel(
                stored.document,
                f"it lists {counted:,} parameters, the configuration describes {self.parameters:,}",
                "Give the files of the same model, and the header of every shard",
            )
        entry = Derived(
            "stored_bytes", stored.total_bytes, (stored.document,), f"sum of {stored.tensors:,} tensors as stored"
        )
        return replace(self, stored=stored, provenance=(*self.provenance, entry))


def _refuse_size(figure: str, reason: str) -> None:
    raise UnreadableModel(figure, reason, "Check the sizes in the file")
