"""How figures are written in sentences: one way for all of them."""

from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

from catalog.units import GIB, gib_text

_FOUR_PLACES = Decimal("0.0001")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A count and its noun: "1 request", "4,096 tokens"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def gib(size_bytes: int) -> str:
    """Bytes as "19.55 GiB"; what would print as 0.00 is said to be less than a hundredth instead."""
    return gib_text(size_bytes)


def whole_gib(size_bytes: int) -> str:
    """A figure that is a whole number of GiB without decimals: "1 GiB"."""
    return f"{size_bytes // GIB:,} GiB" if size_bytes % GIB == 0 else gib(size_bytes)


def percent(part: int, whole: int) -> str:
    """A share with one decimal, cut off so that 9.99 % is never shown as the 10 % it does not reach."""
    return f"{(Decimal(part) * 100 / whole).quantize(Decimal('0.1'), rounding=ROUND_DOWN)} %"


def usd(amount: Decimal) -> str:
    """An amount as "$1,110.00"."""
    return f"${amount.quantize(Decimal('0.01'), rounding=ROUND_HALF_UP):,}"


def hourly(amount: Decimal) -> str:
    """A price per hour in two decimals, or four where two would say nothing: "$0.65/h", "$0.0042/h"."""
    if amount < Decimal("0.10"):
        return f"${amount.quantize(_FOUR_PLACES, rounding=ROUND_HALF_UP)}/h"
    return f"{usd(amount)}/h"


def days_and_hours(hours: Decimal) -> str:
    """A duration cut off to whole hours: "19 days 2 h"."""
    days, rest = divmod(int(hours), 24)
    parts = ([counted(days, "day")] if days else []) + ([f"{rest} h"] if rest or not days else [])
    return " ".join(parts)
