"""LoRA: a frozen base and the small matrices that are trained."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from sizing.engine.rounding import ceil_div
from sizing.engine.shapes import Projection

NF4_MILLIBITS = 4127
"""Bits per parameter, in thousandths, of 4-bit NormalFloat with double quantization (Dettmers et al. 2023, QLoRA)."""

TRAINED_PARAMETER_BYTES = 16
"""FP32 weight, gradient and the two moments of AdamW (Rajbhandari et al. 2020, ZeRO)."""


@dataclass(frozen=True)
class BaseWeights:
    """The frozen base: 16 or 8 bits per parameter, or 4-bit NormalFloat (QLoRA) at 4.127.

    >>> BaseWeights(parameters=8_030_000_000, bits=4).bytes
    4142476250
    """

    code: ClassVar[str] = "base_weights"
    parameters: int
    bits: int

    @property
    def millibits(self) -> int:
        return NF4_MILLIBITS if self.bits == 4 else self.bits * 1000

    @property
    def bytes(self) -> int:
        return ceil_div(self.parameters * self.millibits, 8000)


@dataclass(frozen=True)
class Adapters:
    """The trained matrices: rank x (in + out) numbers for every adapted module of every layer.

    Shape: a module of in x out gets one matrix of in x rank and one of rank x out.
    Units: `bytes` holds weight, gradient and optimizer state of every trained parameter.
    Source: Hu et al. 2021, LoRA.
    """

    code: ClassVar[str] = "adapters"
    projections: tuple[Projection, ...]
    rank: int

    @property
    def trainable_parameters(self) -> int:
        return self.rank * sum(each.layers * (each.in_features + each.out_features) for each in self.projections)

    @property
    def bytes(self) -> int:
        return self.trainable_parameters * TRAINED_PARAMETER_BYTES


def adapted(projections: tuple[Projection, ...], target_modules: Collection[str]) -> tuple[Projection, ...]:
    """The modules that answer to one of the target words; a fused one is adapted whole."""
    return tuple(each for each in projections if set(each.serves) & set(target_modules))
