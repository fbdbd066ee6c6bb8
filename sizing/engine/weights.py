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
