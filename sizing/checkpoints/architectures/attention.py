"""Which layers keep which tokens: plain attention, sliding windows, and the lists and patterns that state them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sizing.checkpoints.architectures.draft import Draft, Trunk
from sizing.engine.shapes import CacheGroup

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class Windows:
    """How many layers keep only `window` tokens, and the fields that say so."""

    sliding: int = 0
    window: int | None = None
    names: tuple[str, ...] = ()


WindowRule = Callable[[Draft, Trunk], Windows]


def no_windows(draft: Draft, trunk: Trunk) -> Windows:
    return _listed(draft, trunk, draft.text.whole_or_none("sliding_window")) or Windows()


def every_layer(draft: Draft, trunk: Trunk) -> Windows:
    """A window that, where it is set, holds in every layer (Mistral, Mixtral, Phi-3, StarCoder2)."""
    window = draft.text.whole_or_none("sliding_window")
    listed = _listed(draft, trunk, window)
    if listed is not None or window is None:
        return listed or Windows()
    return Windows(trunk.layers, window, ("sliding_window",))


def upper_layers(draft: Draft, trunk: Trunk) -> Windows:
    """Qwen: a window only with use_sliding_window, and then from layer max_window_layers upwards."""
    window = draft.text.whole_or_none("sliding_window")
    lower = draft.text.whole_or_none("max_window_layers", least=0)
    if not draft.text.flag("use_sliding_window", False):
        listed = _listed(draft, trunk, window)
        if listed is not None and listed.sliding:
            raise draft.text.refusal(
                "layer_types", "it lists sliding layers, and use_sliding_window is false", "Correct one of the two"
            )
        return Windows()
    if window is None:
        raise draft.text.refusal("sliding_window", "it is missing, and use_sliding_window is true", "Give the window")
    listed = _listed(draft, trunk, window)
    if listed is not None:
        return listed
    if lower is None:
        raise draft.text.refusal("max_window_layers", "it is missing, and use_sliding_window is true", "Give it")
    sliding = max(trunk.layers - lower, 0)
    return Windows(sliding, window, ("use_sliding_window", "sliding_window", "max_window_layers"))


def one_full_in(pattern: int, *, window: int | None = None) -> WindowRule:
    """Every `pattern`-th layer is full, the others slide. `window` is the architecture's own default."""

    def rule(draft: Draft, trunk: Trunk) -> Windows:
        text = draft.text
        names = ("sliding_window_pattern", "_sliding_window_pattern")
        stated = next((name for name in names if text.given(name)), names[0])
        step = text.whole(stated, pattern)
        kept = text.whole("sliding_window", text.whole_or_none("sliding_window_size") or window)
        listed = _listed(draft, trunk, kept)
        if listed is not None:
            return listed
        cited = (stated, "sliding_window") if text.given(stated) else ("sliding_window",)
        return Windows(trunk.layers - trunk.layers // step, kept, cited)

    return rule


def layer_kinds(draft: Draft, trunk: Trunk, known: Sequence[str]) -> tuple[str, ...] | None:
    """`layer_types`, one known kind for each layer, or None where the file has no such list."""
    kinds = draft.text.texts("layer_types")
    if kinds is None:
        return None
    if len(kinds) != trunk.layers:
        raise draft.text.refusal(
            "layer_types", f"it lists {len(kinds):,} layers, num_hidden_layers is {trunk.layers:,}", "Correct one"
        )
    for entry in kinds:
        if entry not in known:
            raise draft.text.refusal(
                "layer_types", f"“{entry[:40]}” is not understood for this architecture", "Enter the figures by hand"
            )
    return kinds


def keep(draft: Draft, trunk: Trunk, windows: Windows, kv_heads: int, width: int) -> None:
    """Adds the cache groups of ordinary attention.

    A window of every layer is not counted: engines differ in honouring it, so the plain amount is reserved.
    """
    elements = 2 * kv_heads * width
    names = ("num_hidden_layers", *draft.head_fields, *windows.names)
    rule = "2 × KV heads × head dimension for each layer"
    window, sliding = windows.window, windows.sliding
    if window is None or not sliding:
        draft.cache([CacheGroup(trunk.layers, elements, kv_heads)], *names, rule=rule)
        return
    if sliding == trunk.layers:
        draft.cache_note = (
            f"A window of {window:,} tokens is published for every layer. Engines differ in honouring it, so the cache "
            "of the whole context is reserved."
        )
        plain = f"{rule}; the window of every layer is not counted on"
        draft.cache([CacheGroup(trunk.layers, elements, kv_heads)], *names, rule=plain)
        return
    draft.cache_note = (
        f"{sliding:,} of {trunk.layers:,} layers keep at most {window:,} tokens. An engine that keeps the whole "
        "context in every layer needs more."
    )
    draft.cache(
        [
            CacheGroup(trunk.layers - sliding, elements, kv_heads),
            CacheGroup(sliding, elements, kv_heads, window=window),
        ],
        *names,
        rule=f"{rule}; a sliding layer keeps at most its window",
    )


def _listed(draft: Draft, trunk: Trunk, window: int | None) -> Windows | None:
    kinds = layer_kinds(draft, trunk, (FULL, SLIDING))
    if kinds is None:
        return None
    sliding = kinds.count(SLIDING)
    if sliding and window is None:
        raise draft.text.refusal("sliding_window", "it is missing, and layer_types lists sliding layers", "Give it")
    return Windows(sliding, window, ("layer_types", "sliding_window") if sliding else ("layer_types",))
