"""Tensor parallelism: over how many GPUs of one machine a language model can be split."""

from functools import lru_cache

from sizing.engine.shapes import LanguageModel

MAX_SPLIT = 16


def is_legal_split(model: LanguageModel, gpus: int) -> bool:
    """Whether the model divides evenly over `gpus`.

    It does when `gpus` divides the attention heads, and, for each group of the cache, divides its KV heads or is a
    multiple of them (heads are then copied), and divides the MLP width where that is published.
    """
    if gpus == 1:
        return True
    if not 1 < gpus <= MAX_SPLIT or model.attention_heads % gpus:
        return False
    if any(group.kv_heads and group.kv_heads % gpus and gpus % group.kv_heads for group in model.cache_groups):
        return False
    return model.split_width is None or model.split_width % gpus == 0


@lru_cache(maxsize=1024)
def legal_splits(model: LanguageModel, up_to: int = MAX_SPLIT) -> tuple[int, ...]:
    """Every legal split up to `up_to` GPUs, smallest first; 1 is always among them."""
    return tuple(gpus for gpus in range(1, up_to + 1) if is_legal_split(model, gpus))


def copies_cache(model: LanguageModel, gpus: int) -> bool:
    """Whether some of the cache is held more than once when the model is split over `gpus`."""
    if gpus == 1:
        return False
    if model.state_bytes_per_sequence:
        return True
    return any(group.kv_heads is None or group.kv_heads < gpus for group in model.cache_groups)
