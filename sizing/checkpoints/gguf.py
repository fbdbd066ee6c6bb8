"""A GGUF file as a model: its keys name the sizes, its tensors say how many bytes are stored.

Source: the key names of llama.cpp (gguf-py/gguf/constants.py) and its hyperparameters per architecture.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sizing.checkpoints.errors import UnreadableModel, shown
from sizing.checkpoints.gguf_header import GGUF, GgufHeader, Items, read_gguf_header
from sizing.checkpoints.imported import Derived, ImportedModel, Quantization
from sizing.engine.errors import UnsizableModel
from sizing.engine.shapes import CacheGroup

MOST = 2**31 - 1
MOST_LAYERS = 10_000
NOT_TEXT = ("clip", "t5encoder", "bert", "nomic-bert", "whisper")


@dataclass(frozen=True)
class Family:
    """What an architecture's keys leave open: after how many layers one attends to everything, where windows exist."""

    full_every: int | None = None
    latent: bool = False


FAMILIES = {
    "llama": Family(),
    "qwen2": Family(),
    "qwen2moe": Family(),
    "qwen3": Family(),
    "qwen3moe": Family(),
    "gemma2": Family(full_every=2),
    "gemma3": Family(full_every=6),
    "phi3": Family(),
    "deepseek2": Family(latent=True),
    "falcon": Family(),
    "command-r": Family(),
    "gpt-oss": Family(full_every=2),
    "olmo2": Family(),
    "chatglm": Family(),
    "glm4": Family(),
    "starcoder2": Family(),
}
# Keys that are read here, or that say how values are computed, routed and turned: no weights, no cache.
_KNOWN_WORDS = """
block_count context_length embedding_length feed_forward_length vocab_size
expert_count expert_used_count expert_shared_count expert_feed_forward_length expert_shared_feed_forward_length
expert_weights_scale expert_weights_norm expert_gating_func expert_group_count expert_group_used_count
leading_dense_block_count use_parallel_residual tensor_data_layout
attention.head_count attention.head_count_kv attention.key_length attention.value_length
attention.key_length_mla attention.value_length_mla attention.q_lora_rank attention.kv_lora_rank
attention.sliding_window attention.sliding_window_pattern attention.layer_norm_epsilon
attention.layer_norm_rms_epsilon attention.causal attention.scale attention.clamp_kqv attention.max_alibi_bias
attention.temperature_length attention.temperature_scale
logit_scale residual_scale embedding_scale attn_logit_softcapping final_logit_softcapping
"""
KNOWN = frozenset(_KNOWN_WORDS.split())
_TYPE_NOTE = "sum over the tensors, each rounded to its blocks"


def read_gguf(start: bytes) -> ImportedModel:
    """The model of a GGUF file, from the bytes at its start. It is sized by its stored bytes.

    Raises: UnreadableModel naming the key that is missing or not understood.
    """
    header = read_gguf_header(start)
    keys = _Keys(header)
    try:
        return keys.model()
    except UnsizableModel as error:
        raise UnreadableModel(error.field, shown(str(error)), "Check the file's keys") from None


class _Keys:
    """The keys of one file, read under its architecture's name, each use of them noted."""

    def __init__(self, header: GgufHeader) -> None:
        self._header = header
        self._values = header.keys
        self._notes: list[Derived] = []
        self._every_layer = ""
        name = self._values.get("general.architecture")
        if not isinstance(name, str):
            raise UnreadableModel("general.architecture", "it is missing", "Upload the file of a model")
        if name not in FAMILIES:
            reason = "does not generate text" if name in NOT_TEXT else "is not an architecture understood here"
            raise UnreadableModel("general.architecture", f"“{shown(name)}” {reason}", "Enter the figures by hand")
        self.architecture = name
        self.family = FAMILIES[name]

    def model(self) -> ImportedModel:
        parts = self._values.get("split.count")
        if isinstance(parts, int) and parts > 1:
            raise UnreadableModel("split.count", f"this is one of {parts:,} files", "Join them with gguf-split first")
        self._refuse_unknown()
        layers = self._whole("layers", "block_count", most=MOST_LAYERS)
        stored = self._header.stored
        if stored.layers is not None and stored.layers > layers:
            raise UnreadableModel(
                self._key("block_count"), f"it says {layers:,}, the tensors have {stored.layers:,} layers", "Correct it"
            )
        if stored.layers is not None and stored.layers < layers:
            raise UnreadableModel(GGUF, f"its tensors stop at layer {stored.layers:,} of {layers:,}", "Give the whole")
        hidden = self._whole("hidden_size", "embedding_length")
        heads = self._heads(layers)
        groups, note, kv_heads, head_dim = self._cache(layers, hidden, heads)
        width = self._optional("feed_forward_length")
        expert_width = self._optional("expert_feed_forward_length")
        experts = self._optional("expert_count") or None
        assert stored.parameters is not None
        self._notes.append(Derived("parameters", stored.parameters, (GGUF,), "values of all tensors of the header"))
        self._notes.append(Derived("stored_bytes", stored.total_bytes, (GGUF,), _TYPE_NOTE))
        return ImportedModel(
            architecture=self.architecture,
            parameters=stored.parameters,
            layers=layers,
            hidden_size=hidden,
            attention_heads=heads,
            vocab_size=self._vocabulary(),
            max_context=self._whole("max_context", "context_length"),
            cache_groups=groups,
            provenance=tuple(self._notes),
            kv_heads=kv_heads,
            head_dim=head_dim,
            intermediate_size=width,
            expert_intermediate_size=expert_width or (width if experts else None),
            experts=experts,
            experts_per_token=self._optional("expert_used_count") or None,
            cache_note=note,
            tied_embeddings=not any(name == "output.weight" for name, _ in self._header.parts),
            quantization=Quantization("gguf", None, (GGUF,)),
            stored=stored,
        )

    def _refuse_unknown(self) -> None:
        """Refuses a key of the architecture that is set and neither read here nor known to change no memory."""
        prefix = f"{self.architecture}."
        for key, value in self._values.items():
            name = key.removeprefix(prefix)
            if name == key or name in KNOWN or name.startswith("rope.") or not value:
                continue
            raise UnreadableModel(
                key, "it is not understood here, so it may change the memory", "Enter the model's figures by hand"
            )

    def _key(self, name: str) -> str:
        return f"{self.architecture}.{name}"

    def _note(self, figure: str, value: int | str, *names: str, rule: str = "as stated") -> None:
        self._notes.append(Derived(figure, value, tuple(self._key(name) for name in names), rule))

    def _checked(self, name: str, value: object, *, least: int = 1, most: int = MOST) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise UnreadableModel(
                self._key(name), f"it must be a whole number of {least} to {most:,}, not {shown(value)}", "Correct it"
            )
        return value

    def _whole(self, figure: str, name: str, *, most: int = MOST) -> int:
        value = self._values.get(self._key(name))
        if value is None:
            raise UnreadableModel(self._key(name), "it is missing", "Enter the model's figures by hand")
        number = self._checked(name, value, most=most)
        self._note(figure, number, name)
        return number

    def _optional(self, name: str) -> int | None:
        value = self._values.get(self._key(name))
        if isinstance(value, tuple) and value and len(set(value)) == 1:
            value = value[0]
        return None if value is None else self._checked(name, value, least=0)

    def _heads(self, layers: int) -> int:
        heads = set(self._per_layer("attention.head_count", layers))
        if len(heads) != 1:
            raise UnreadableModel(
                self._key("attention.head_count"), "layers with different head counts are not understood", "Enter it"
            )
        value = heads.pop()
        if value < 1:
            raise UnreadableModel(self._key("attention.head_count"), "it must be 1 or more", "Correct it")
        self._note("attention_heads", value, "attention.head_count")
        return value

    def _per_layer(self, name: str, layers: int, default: int | None = None) -> tuple[int, ...]:
        value = self._values.get(self._key(name))
        if value is None:
            if default is None:
                raise UnreadableModel(self._key(name), "it is missing", "Enter the model's figures by hand")
            return (default,) * layers
        if isinstance(value, Items) or (isinstance(value, tuple) and len(value) != layers):
            raise UnreadableModel(
                self._key(name), f"it must have one value for each of {layers:,} layers", "Correct it"
            )
        if isinstance(value, tuple):
            return tuple(self._checked(name, item, least=0) for item in value)
        return (self._checked(name, value),) * layers

    def _cache(
        self, layers: int, hidden: int, heads: int
    ) -> tuple[tuple[CacheGroup, ...], str, int | None, int | None]:
        if self.family.latent:
            return self._latent(layers)
        key, value = (
            self._width("attention.key_length", hidden, heads),
            self._width("attention.value_length", hidden, heads),
        )
        if (key + value) % 2:
            raise UnreadableModel(self._key("attention.value_length"), "keys and values make an odd width", "Enter it")
        kv_heads = self._per_layer("attention.head_count_kv", layers, heads)
        for count in kv_heads:
            if count and heads % count:
                raise UnreadableModel(
                    self._key("attention.head_count_kv"), f"{count:,} does not divide {heads:,} heads", "Correct it"
                )
        window, slides, names = self._windows(layers)
        groups: dict[tuple[int, bool], int] = {}
        for count, sliding in zip(kv_heads, slides, strict=True):
            if count:
                groups[count, sliding] = groups.get((count, sliding), 0) + 1
        if not groups:
            raise UnreadableModel(self._key("attention.head_count_kv"), "no layer keeps a cache", "Enter it by hand")
        found = tuple(
            CacheGroup(number, count * (key + value), count, window if sliding else None)
            for (count, sliding), number in sorted(groups.items(), key=lambda entry: (entry[0][1], -entry[0][0]))
        )
        words = ", ".join(f"{group.layers:,} layers × {group.elements_per_token:,} elements" for group in found)
        self._note(
            "cache_groups",
            words,
            "block_count",
            "attention.head_count_kv",
            "attention.key_length",
            *names,
            rule="KV heads × (key + value length) for each layer",
        )
        one = set(kv_heads)
        return found, self._window_note(window, slides), one.pop() if len(one) == 1 else None, key

    def _width(self, name: str, hidden: int, heads: int) -> int:
        stated = self._optional(name)
        if stated:
            self._note("head_dim", stated, name)
            return stated
        if hidden % heads:
            raise UnreadableModel(self._key(name), "it is missing, and heads do not divide the hidden size", "Enter it")
        return hidden // heads

    def _windows(self, layers: int) -> tuple[int | None, Sequence[bool], tuple[str, ...]]:
        """The window, for each layer whether it has it, and the keys that said so.

        A window of every layer is not counted on, as for other files: engines differ in honouring it.
        """
        name, pattern = "attention.sliding_window", "attention.sliding_window_pattern"
        window = self._optional(name) or None
        if window is None and self.family.full_every is not None:
            raise UnreadableModel(self._key(name), "it is missing", "Enter the model's figures by hand")
        if window is None:
            return None, (False,) * layers, ()
        stated = self._values.get(self._key(pattern))
        if isinstance(stated, tuple) and len(stated) == layers and all(isinstance(item, bool) for item in stated):
            slides: Sequence[bool] = stated
            names: tuple[str, ...] = (name, pattern)
        elif stated is not None and (isinstance(stated, bool) or not isinstance(stated, int) or stated < 1):
            raise UnreadableModel(
                self._key(pattern), "it must be a number, or true or false for each layer", "Correct it"
            )
        elif stated is not None or self.family.full_every is not None:
            every = stated or self.family.full_every or 1
            slides = tuple(bool((number + 1) % every) for number in range(layers))
            names = (name, pattern) if stated is not None else (name,)
        else:
            slides, names = (True,) * layers, (name,)
        if all(slides):
            self._every_layer = (
                f"A window of {window:,} tokens is published for every layer. Engines differ in honouring it, so the "
                "cache of the whole context is reserved."
            )
            return None, (False,) * layers, names
        return window, slides, names

    def _window_note(self, window: int | None, slides: Sequence[bool]) -> str:
        if window is None or not any(slides):
            return self._every_layer
        return (
            f"{sum(slides):,} of {len(slides):,} layers keep at most {window:,} tokens. An engine that keeps the whole "
            "context in every layer needs more."
        )

    def _latent(self, layers: int) -> tuple[tuple[CacheGroup, ...], str, int | None, int | None]:
        rank = self._whole("kv_lora_rank", "attention.kv_lora_rank")
        rope = self._whole("qk_rope_head_dim", "rope.dimension_count")
        self._note(
            "cache_groups",
            f"{layers:,} layers × {rank + rope:,} elements",
            "block_count",
            "attention.kv_lora_rank",
            "rope.dimension_count",
            rule="kv_lora_rank + rope.dimension_count for each layer, once for all heads",
        )
        note = (
            f"Multi-head latent attention: {rank:,} + {rope:,} numbers per token and layer, stored once for all heads. "
            "An engine that stores expanded keys and values needs more."
        )
        return (CacheGroup(layers, rank + rope),), note, None, None

    def _vocabulary(self) -> int:
        stated = self._optional("vocab_size")
        if stated:
            self._note("vocab_size", stated, "vocab_size")
            return stated
        tokens = self._values.get("tokenizer.ggml.tokens")
        if not isinstance(tokens, Items) or not tokens.length:
            raise UnreadableModel(self._key("vocab_size"), "it is missing, and so are the tokens", "Enter it by hand")
        self._notes.append(Derived("vocab_size", tokens.length, ("tokenizer.ggml.tokens",), "number of tokens"))
        return tokens.length
