"""Memory units, for admin and pages: GiB = 2^30 bytes, GB = 10^9 bytes. The sizing engine knows only bytes."""

from decimal import ROUND_HALF_UP, Decimal

GIB = 2**30
MIB = 2**20
GB = 10**9

_TWO_PLACES = Decimal("0.01")


def to_gib(size_bytes: int) -> Decimal:
    """Bytes as GiB with two decimals, half-up.

    >>> to_gib(24 * GB)
    Decimal('22.35')
    """
    return (Decimal(size_bytes) / GIB).quantize(_TWO_PLACES, rounding=ROUND_HALF_UP)


def gib_to_bytes(gib: Decimal) -> int:
    """Bytes of a figure in GiB, rounded up to the next byte.

    >>> gib_to_bytes(Decimal("1.5"))
    1610612736
    """
    return _ceil(gib * GIB)


def gb_to_bytes(gb: Decimal) -> int:
    """Bytes of a figure in (decimal) GB, rounded up to the next byte.

    >>> gb_to_bytes(Decimal("24"))
    24000000000
    """
    return _ceil(gb * GB)


def _ceil(value: Decimal) -> int:
    whole = int(value)
    return whole if whole == value else whole + 1
