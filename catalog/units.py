"""Memory units, for admin and pages: GiB = 2^30 bytes, GB = 10^9 bytes. The sizing engine knows only bytes."""

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_HALF_UP, Decimal

GIB = 2**30
MIB = 2**20
GB = 10**9

# Every unit a memory figure may be stated in, with its bytes.
BYTES_PER_UNIT = {"GiB": GIB, "GB": GB, "MiB": MIB, "bytes": 1}

_TWO_PLACES = Decimal("0.01")


def to_gib(size_bytes: int) -> Decimal:
    """Bytes as GiB with two decimals, half-up.

    >>> to_gib(24 * GB)
    Decimal('22.35')
    """
    return (Decimal(size_bytes) / GIB).quantize(_TWO_PLACES, rounding=ROUND_HALF_UP)


def figure(size_bytes: int) -> str:
    """The same as text for a column of GiB; what is there is never shown as 0.00.

    >>> figure(24 * GB), figure(1), figure(0)
    ('22.35', '< 0.01', '0.00')
    """
    rounded = to_gib(size_bytes)
    return "< 0.01" if size_bytes > 0 and rounded == 0 else f"{rounded:,}"


def gib_text(size_bytes: int) -> str:
    """The same with its unit, for sentences.

    >>> gib_text(24 * GB), gib_text(1)
    ('22.35 GiB', 'less than 0.01 GiB')
    """
    if size_bytes > 0 and to_gib(size_bytes) == 0:
        return "less than 0.01 GiB"
    return f"{to_gib(size_bytes):,} GiB"


def counted_text(size_bytes: int) -> str:
    """A memory that is compared exactly: one that rounding would lift to a whole figure says so.

    >>> counted_text(16380 * MIB), counted_text(24564 * MIB)
    ('just under 16.00 GiB (15.996)', '23.99 GiB')
    """
    rounded, exact = to_gib(size_bytes), Decimal(size_bytes) / GIB
    if rounded > exact and rounded == int(rounded):
        places = next(n for n in range(3, 40) if exact.quantize(Decimal(1).scaleb(-n), ROUND_DOWN) < rounded)
        return f"just under {rounded:,} GiB ({exact.quantize(Decimal(1).scaleb(-places), ROUND_DOWN):,})"
    return gib_text(size_bytes)


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


def from_figure(figure: Decimal, unit: str) -> int:
    """Bytes of a memory a machine is said to have: rounded down, so that a fraction of a byte is never promised.

    >>> from_figure(Decimal("24"), "GB"), from_figure(Decimal("24564"), "MiB")
    (24000000000, 25757220864)
    """
    return int(figure * BYTES_PER_UNIT[unit])


def to_figure(size_bytes: int, unit: str) -> Decimal:
    """The shortest figure in `unit` that `from_figure` turns into the same bytes: what was entered is shown again.

    >>> to_figure(24 * GB, "GB"), to_figure(from_figure(Decimal("22.35"), "GiB"), "GiB")
    (Decimal('24'), Decimal('22.35'))
    """
    exact = Decimal(size_bytes) / BYTES_PER_UNIT[unit]
    for places in range(31):
        # Upwards, because `from_figure` cuts off: the next figure above is the one that may land on these bytes.
        figure = exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING)
        if from_figure(figure, unit) == size_bytes:
            return figure
    return exact


def _ceil(value: Decimal) -> int:
    whole = int(value)
    return whole if whole == value else whole + 1
