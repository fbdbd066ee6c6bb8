"""The memory calculator: weights of so many parameters, and an envelope of them with a person's own reserve entries."""

from dataclasses import dataclass, replace

from sizing.engine.errors import InvalidWorkload
from sizing.engine.weights import Weights

FORMATS_BITS = (32, 16, 8, 4)
ESTIMATED, MEASURED, UNKNOWN = "estimated", "measured", "unknown"
STATES = (ESTIMATED, MEASURED, UNKNOWN)
MAX_PARAMETERS = 10**15
MAX_ENTRIES = 20


def weights_only(parameters: int, bits: int) -> int:
    """The bytes of so many values of so many bits, rounded up; no module in another format, no metadata.

    >>> weights_only(7_000_000_000, 4)
    3500000000
    """
    return Weights(parameters, bits).bytes


@dataclass(frozen=True)
class ReserveEntry:
    """One thing that a person reserves memory for, with the reason and how the figure is known.

    Units: `bytes` on one GPU; None for an entry that is still unknown, and for no other.
    Raises: InvalidWorkload naming the field.
    """

    name: str
    reason: str
    state: str
    bytes: int | None

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise InvalidWorkload(f"state must be one of {', '.join(STATES)}", field="state")
        if (self.bytes is None) != (self.state == UNKNOWN):
            raise InvalidWorkload("an entry has a figure unless it is still unknown", field="bytes")
        if self.bytes is not None and self.bytes < 0:
            raise InvalidWorkload("the figure must be 0 or more", field="bytes")
        if not self.name.strip() or not self.reason.strip():
            raise InvalidWorkload("an entry needs a name and a reason", field="reason" if self.name.strip() else "name")


@dataclass(frozen=True)
class Envelope:
    """Weights and reserve entries added up: conservative, because entries need not peak together; no observed peak.

    Nothing else is in it. Entries that are still unknown have no figure: with one of them the sum is incomplete.
    Units: bytes on one GPU.
    Raises: InvalidWorkload naming the field.
    """

    parameters: int
    bits: int = 16
    entries: tuple[ReserveEntry, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.parameters <= MAX_PARAMETERS:
            raise InvalidWorkload(f"parameters must be 1 to {MAX_PARAMETERS}", field="parameters")
        if self.bits not in FORMATS_BITS:
            raise InvalidWorkload("bits must be 32, 16, 8 or 4", field="bits")
        if len(self.entries) > MAX_ENTRIES:
            raise InvalidWorkload(f"at most {MAX_ENTRIES} entries", field="entries")

    @property
    def weights_bytes(self) -> int:
        return weights_only(self.parameters, self.bits)

    @property
    def known(self) -> tuple[ReserveEntry, ...]:
        return tuple(entry for entry in self.entries if entry.bytes is not None)

    @property
    def unknown(self) -> tuple[ReserveEntry, ...]:
        return tuple(entry for entry in self.entries if entry.bytes is None)

    @property
    def is_complete(self) -> bool:
        return not self.unknown

    @property
    def reserve_bytes(self) -> int:
        return sum(entry.bytes or 0 for entry in self.known)

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.reserve_bytes

    def in_every_format(self) -> tuple["Envelope", ...]:
        """The same entries beside the weights in each format, widest first."""
        return tuple(replace(self, bits=bits) for bits in FORMATS_BITS)
