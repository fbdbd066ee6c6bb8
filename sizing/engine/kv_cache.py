"""Keys and values kept for the tokens already seen."""

from dataclasses import dataclass
from typing import ClassVar

from sizing.engine.shapes import CacheGroup

ELEMENT_BYTES = 2


@dataclass(frozen=True)
class KVCache:
    """The cache of every request, of which each of `gpus` holds its heads' share.

    Shape: the sum over `groups` of layers x elements per token x 2 bytes x tokens kept x requests, plus the constant
    state of linear layers. A GPU holds ceil(kv_heads / gpus) of a group's heads, at least one; a group without heads
    (MLA's latent vector) and the constant state are copied whole to every GPU.
    Units: `context` in tokens per request; `bytes` is per GPU; elements are always 16-bit.

    >>> KVCache(groups=(CacheGroup(32, 2 * 8 * 128, kv_heads=8),), context=8192, requests=1).bytes == 2**30
    True
    """

    code: ClassVar[str] = "kv_cache"
    groups: tuple[CacheGroup, ...]
    context: int
    requests: int
    state_bytes_per_sequence: int = 0
    gpus: int = 1

    def group_bytes(self, group: CacheGroup) -> int:
        """Bytes of one group on one GPU."""
        tokens = group.tokens_kept(self.context) * self.requests
        return group.layers * group.elements_per_gpu(self.gpus) * ELEMENT_BYTES * tokens

    @property
    def bytes(self) -> int:
        return sum(self.group_bytes(group) for group in self.groups) + self.state_bytes_per_sequence * self.requests
