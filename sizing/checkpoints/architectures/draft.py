"""A model under construction: figures are added with the fields that they came from, and read out once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sizing.checkpoints.errors import UnreadableModel
from sizing.checkpoints.fields import Fields
from sizing.checkpoints.imported import Derived, ImportedModel, ParameterPart, Quantization
from sizing.engine.shapes import CacheGroup, Projection

STATED = "as stated"
ABSENT = "not in the file"
# Figures of the cache and its limit: they say nothing about the number of parameters.
CACHE = frozenset({"max_context", "cache_groups", "state_bytes_per_sequence"})


@dataclass(frozen=True)
class Trunk:
    """The sizes that every decoder has."""

    layers: int
    hidden: int
    heads: int
    vocab: int
    context: int
    tied: bool


@dataclass
class Draft:
    """Collects what one file says about one model.

    Shape: `root` is the whole file, `text` the object with the language model's fields (the same where nothing is
    nested).
    """

    architecture: str
    root: Fields
    text: Fields
    derived: list[Derived] = field(default_factory=list)
    parts: list[ParameterPart] = field(default_factory=list)
    projections: list[Projection] = field(default_factory=list)
    groups: list[CacheGroup] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    draft_layers: int = 0
    cache_note: str = ""
    state_bytes: int = 0
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate: int | None = None
    expert_width: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    idle_parameters: int | None = None
    accepts_images: bool = False

    def note(
        self, figure: str, value: int | str, *names: str, rule: str = STATED, fields: Fields | None = None
    ) -> None:
        """Keeps where a figure came from; `names` are fields of `fields`, or of the language model."""
        source = fields or self.text
        self.derived.append(Derived(figure, value, tuple(source.name_of(name) for name in names), rule))

    def whole(self, figure: str, name: str, default: int | None = None, *, most: int = 2**31 - 1) -> int:
        """A figure that is one field. `default` is the architecture's own, used where the file is silent."""
        silent = not self.text.given(name)
        value = self.text.whole(name, default, most=most)
        self.note(figure, value, name, rule=f"{ABSENT}: the default of {self.architecture}" if silent else STATED)
        return value

    def part(self, name: str, parameters: int, rule: str) -> None:
        if parameters:
            self.parts.append(ParameterPart(name, parameters, rule))

    def projection(self, module: str, serves: Sequence[str], inputs: int, outputs: int, count: int) -> None:
        if count:
            self.projections.append(Projection(module, tuple(serves), inputs, outputs, count))

    def trunk(
        self,
        *,
        vocab: int | None = None,
        context: int | None = None,
        heads: int | None = None,
        tied: bool | None = None,
        context_field: str = "max_position_embeddings",
    ) -> Trunk:
        """The common sizes. What is passed are the architecture's own defaults; layers and hidden size have none."""
        layers = self.whole("layers", "num_hidden_layers", most=10_000)
        hidden = self.whole("hidden_size", "hidden_size")
        return Trunk(
            layers=layers,
            hidden=hidden,
            heads=self.whole("attention_heads", "num_attention_heads", heads),
            vocab=self.whole("vocab_size", "vocab_size", vocab),
            context=self.whole("max_context", context_field, context),
            tied=self._tied(tied),
        )

    def heads_of(self, trunk: Trunk, *, kv_heads: int | None = None, head_dim: int | None = None) -> tuple[int, int]:
        """KV heads and head width. The published width wins; hidden size / heads only where there is none.

        `kv_heads` and `head_dim` are the architecture's own defaults, None being all heads and hidden size / heads.
        """
        text = self.text
        kv = self.whole("kv_heads", "num_key_value_heads", kv_heads or trunk.heads)
        if trunk.heads % kv:
            raise text.refusal(
                "num_key_value_heads", f"{kv:,} KV heads do not divide {trunk.heads:,} attention heads", "Correct it"
            )
        if text.given("head_dim") or head_dim is not None:
            width = self.whole("head_dim", "head_dim", head_dim)
        else:
            width = self.divided_width(trunk)
        self.kv_heads, self.head_dim = kv, width
        return kv, width

    def divided_width(self, trunk: Trunk) -> int:
        if trunk.hidden % trunk.heads:
            raise self.text.refusal(
                "hidden_size",
                f"{trunk.hidden:,} is not a multiple of {trunk.heads:,} heads, and no head_dim is given",
                "Give head_dim",
            )
        width = trunk.hidden // trunk.heads
        self.note("head_dim", width, "hidden_size", "num_attention_heads", rule="hidden_size / num_attention_heads")
        return width

    def cache(self, groups: Sequence[CacheGroup], *names: str, rule: str) -> None:
        """The cache layout, with the fields that decided it."""
        self.groups.extend(groups)
        self.note("cache_groups", _layout(self.groups), *names, rule=rule)

    @property
    def head_fields(self) -> tuple[str, ...]:
        """The fields of the file that KV heads and their width came from."""
        found = [entry for entry in self.derived if entry.figure in ("kv_heads", "head_dim") and _in_the_file(entry)]
        names = dict.fromkeys(name.rpartition(".")[2] for entry in found for name in entry.fields)
        return tuple(names)

    def embeddings(self, trunk: Trunk) -> None:
        """The matrix of the vocabulary, once where input and output share it, twice where they do not."""
        table = trunk.vocab * trunk.hidden
        self.part("Input embedding", table, "vocab_size × hidden_size")
        if not trunk.tied:
            self.part("Output matrix", table, "vocab_size × hidden_size, not shared with the input (untied)")

    def finish(
        self, trunk: Trunk, *, dtype: str | None, quantization: Quantization | None, dtype_fields: Sequence[str]
    ) -> ImportedModel:
        if not self.groups:
            raise UnreadableModel(
                "cache_groups", "the model has no attention layer, so it keeps no KV cache", "It cannot be sized here"
            )
        parameters = sum(part.parameters for part in self.parts)
        sizes = tuple(dict.fromkeys(name for entry in self.derived if _sizes_weights(entry) for name in entry.fields))
        self.derived.append(Derived("parameters", parameters, sizes, "sum of the parts listed, each from these fields"))
        if dtype is not None:
            self.derived.append(Derived("dtype", dtype, tuple(dtype_fields), STATED))
        if quantization is not None:
            self.derived.append(Derived("quantization", quantization.method, quantization.fields, STATED))
        return ImportedModel(
            architecture=self.architecture,
            parameters=parameters,
            layers=trunk.layers,
            hidden_size=trunk.hidden,
            attention_heads=trunk.heads,
            vocab_size=trunk.vocab,
            max_context=trunk.context,
            cache_groups=tuple(self.groups),
            provenance=tuple(self.derived),
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            intermediate_size=self.intermediate,
            expert_intermediate_size=self.expert_width,
            experts=self.experts,
            experts_per_token=self.experts_per_token,
            active_parameters=None if self.idle_parameters is None else parameters - self.idle_parameters,
            state_bytes_per_sequence=self.state_bytes,
            cache_note=self.cache_note,
            accepts_images=self.accepts_images,
            tied_embeddings=trunk.tied,
            dtype=dtype,
            quantization=quantization,
            parts=tuple(self.parts),
            projections=tuple(self.projections),
            left_out=tuple(self.left_out),
            draft_layers=self.draft_layers,
        )

    def _tied(self, default: bool | None) -> bool:
        name = "tie_word_embeddings"
        nested = self.text is not self.root
        outer = self.root.flag(name, False) if self.root.given(name) else None
        inner = self.text.flag(name, False) if self.text.given(name) else None
        if nested and outer is not None and inner is not None and outer != inner:
            raise self.text.refusal(name, "it contradicts the same field of the whole model", "Give it once")
        source = self.root if outer is not None else self.text
        stated = outer if outer is not None else inner
        if stated is None and default is None:
            raise self.text.refusal(
                name,
                "it is missing, and sources disagree on whether this architecture shares the vocabulary's matrix",
                "Give it as true or false",
            )
        tied = stated if stated is not None else bool(default)
        rule = STATED if stated is not None else f"{ABSENT}: the default of {self.architecture}"
        self.note("tied_embeddings", "yes" if tied else "no", name, rule=rule, fields=source)
        return tied


def _in_the_file(entry: Derived) -> bool:
    return not entry.rule.startswith(ABSENT)


def _sizes_weights(entry: Derived) -> bool:
    return entry.figure not in CACHE and _in_the_file(entry)


def _layout(groups: Sequence[CacheGroup]) -> str:
    """The groups in words: "13 layers × 2,048 elements, 13 layers × 2,048 elements up to 4,096 tokens"."""
    return ", ".join(
        f"{group.layers:,} layers × {group.elements_per_token:,} elements"
        + ("" if group.window is None else f" up to {group.window:,} tokens")
        for group in groups
    )
