"""Model weights."""

from dataclasses import dataclass
from typing import ClassVar

from sizing.engine.rounding import ceil_div


@dataclass(frozen=True)
class Weights:
    """The stored weights, of which each of `gpus` holds an equal part.

    Units: `bits` per parameter; `bytes` is per GPU, rounded up.
    Source: the parameter count of the model's published configuration, all experts of a mixture included.

    >>> Weights(parameters=8_030_261_248, bits=16).bytes
    16060522496
    """

    code: ClassVar[str] = "weights"
    parameters: int
    bits: int
    gpus: int = 1

    @property
    def bytes(self) -> int:
        return ceil_div(self.parameters * self.bits, 8 * self.gpus)


@dataclass(frozen=True)
class StoredWeights:
    """The weights of a checkpoint by the bytes it stores, as quantized files must be counted; split like `Weights`.

    Units: `stored_bytes` of the whole checkpoint, scales and parts in other formats included; `bytes` is per GPU.
    """

    code: ClassVar[str] = "weights"
    stored_bytes: int
    gpus: int = 1

    @property
    def bytes(self) -> int:
        return ceil_div(self.stored_bytes, self.gpus)


@dataclass(frozen=True)
class StatedNeed:
    """The GPU memory that a person states for a notebook; nothing is added to it."""

    code: ClassVar[str] = "stated_need"
    bytes: int
    stated: str
