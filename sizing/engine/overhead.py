"""What is added to the figures that follow from the model: a margin, the runtime, a person's own reserve."""

from dataclasses import dataclass
from typing import ClassVar

from sizing.engine.rounding import ceil_div

MARGIN_PERCENT = 20
RUNTIME_BYTES = 2**30


@dataclass(frozen=True)
class Margin:
    """A planning rule for what is not counted, such as activations and workspaces: a share of the lines above it.

    Units: `of_bytes` and `bytes` are per GPU; `bytes` is rounded up.

    >>> Margin(of_bytes=16_597_393_408).bytes
    3319478682
    """

    code: ClassVar[str] = "margin"
    of_bytes: int
    percent: int = MARGIN_PERCENT
    gpus: int = 1

    @property
    def bytes(self) -> int:
        return ceil_div(self.of_bytes * self.percent, 100)


@dataclass(frozen=True)
class Runtime:
    """The CUDA context and its libraries: 1 GiB on every GPU, a planning rule."""

    code: ClassVar[str] = "runtime"
    gpus: int = 1

    @property
    def bytes(self) -> int:
        return RUNTIME_BYTES


@dataclass(frozen=True)
class Reserve:
    """The person's own reserve on every GPU, with the reason they gave; no margin is put on it."""

    code: ClassVar[str] = "reserve"
    bytes: int
    reason: str
    gpus: int = 1
