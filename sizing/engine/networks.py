"""The networks of an image pipeline."""

from dataclasses import dataclass

from sizing.engine.rounding import ceil_div

IMAGE_BITS = 16


@dataclass(frozen=True)
class NetworkWeights:
    """One network of a pipeline at 16 bits. `code` is its role, numbered when a pipeline has several of one role."""

    code: str
    name: str
    parameters: int
    bits: int = IMAGE_BITS

    @property
    def bytes(self) -> int:
        return ceil_div(self.parameters * self.bits, 8)
