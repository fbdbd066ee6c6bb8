"""Vision towers: their weights stay on the GPU beside the language model's, so they are counted with them.

Source: the model classes of the transformers library. Their work memory for images is not modelled; image tokens count
towards the context.
"""

from sizing.checkpoints.architectures.draft import Draft, Trunk
from sizing.checkpoints.errors import UnreadableModel
from sizing.checkpoints.fields import Fields

_HARMLESS = ("model_type", "image_size", "window_size", "tokens_per_second", "fullatt_block_indexes")


def siglip(draft: Draft, trunk: Trunk) -> None:
    """Gemma 3: a SigLIP tower and the projection into the language model."""
    vision = _section(draft)
    hidden, width = vision.whole("hidden_size"), vision.whole("intermediate_size")
    layers, patch = vision.whole("num_hidden_layers", most=10_000), vision.whole("patch_size")
    size, channels = vision.whole("image_size"), vision.whole("num_channels", 3)
    vision.whole("num_attention_heads")
    if vision.flag("vision_use_head", True):
        raise vision.refusal("vision_use_head", "a pooling head is not counted here", "Give it as false")
    patches = (size // patch) ** 2
    block = 4 * (hidden * hidden + hidden) + 4 * hidden + 2 * hidden * width + width + hidden
    tower = hidden * channels * patch * patch + hidden + patches * hidden + layers * block + 2 * hidden
    projector = hidden * trunk.hidden + hidden
    _add(draft, vision, tower + projector, f"{layers:,} blocks × {block:,} + patches, positions and projection")


def qwen2_5(draft: Draft, trunk: Trunk) -> None:
    """Qwen2.5-VL: gated networks, RMS norms, a merger of neighbouring patches."""
    vision = _section(draft)
    hidden, width, layers, patch_values = _qwen_sizes(vision)
    merged = hidden * _merge(vision) ** 2
    out = _output(vision, trunk)
    block = 2 * hidden + _fused_attention(hidden) + 3 * hidden * width + 2 * width + hidden
    merger = hidden + merged * merged + merged + merged * out + out
    tower = hidden * patch_values + layers * block + merger
    _add(draft, vision, tower, f"{layers:,} blocks × {block:,} + patches and merger")


def qwen3(draft: Draft, trunk: Trunk) -> None:
    """Qwen3-VL and Qwen3.5: layer norms, learned positions, and one merger more for each deep-stack level."""
    vision = _section(draft)
    hidden, width, layers, patch_values = _qwen_sizes(vision)
    positions = vision.whole("num_position_embeddings")
    levels = len(vision.wholes("deepstack_visual_indexes"))
    merged = hidden * _merge(vision) ** 2
    out = _output(vision, trunk)
    block = 4 * hidden + _fused_attention(hidden) + 2 * hidden * width + width + hidden
    joined = merged * merged + merged + merged * out + out
    tower = hidden * patch_values + hidden + positions * hidden + layers * block
    tower += 2 * hidden + joined + levels * (2 * merged + joined)
    _add(draft, vision, tower, f"{layers:,} blocks × {block:,} + patches, positions and {levels + 1:,} mergers")


def _section(draft: Draft) -> Fields:
    vision = draft.root.section("vision_config")
    if vision is None:
        raise UnreadableModel("vision_config", "it is missing", "Give the vision tower's object of the same file")
    return vision


def _qwen_sizes(vision: Fields) -> tuple[int, int, int, int]:
    hidden, width = vision.whole("hidden_size"), vision.whole("intermediate_size")
    channels = vision.whole("in_chans" if vision.given("in_chans") else "in_channels", 3)
    vision.whole("num_heads")
    patch, frames = vision.whole("patch_size"), vision.whole("temporal_patch_size")
    vision.ignore("spatial_patch_size", "in_channels")
    return hidden, width, vision.whole("depth", most=10_000), channels * frames * patch * patch


def _merge(vision: Fields) -> int:
    return vision.whole("spatial_merge_size", most=1_000)


def _output(vision: Fields, trunk: Trunk) -> int:
    out = vision.whole("out_hidden_size")
    if out != trunk.hidden:
        raise vision.refusal("out_hidden_size", f"it must be the hidden size, {trunk.hidden:,}", "Correct it")
    return out


def _fused_attention(hidden: int) -> int:
    return 3 * hidden * hidden + 3 * hidden + hidden * hidden + hidden


def _add(draft: Draft, vision: Fields, parameters: int, rule: str) -> None:
    vision.refuse_unread(also=_HARMLESS)
    draft.accepts_images = True
    draft.part("Vision tower", parameters, rule)
    draft.note("vision_parameters", parameters, "vision_config", rule=rule, fields=draft.root)
    draft.left_out.append(
        "The work memory of images: their tokens count towards the context, the tower's own does not."
    )
