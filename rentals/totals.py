"""Lines and total of a basket; plain values in and out.

Each line's unit price is rounded once, half-up to the cent, for one lot and the whole term; then it is multiplied by
the lots. The total is the sum of the lines, so what is printed always adds up.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from catalog.pricing import to_cents


@dataclass(frozen=True)
class Line:
    """One line of an order. Units: USD; `unit_usd` is for one lot and the whole term, quantity included."""

    code: str
    description: str
    unit_usd: Decimal
    lots: int
    option: str | None = None
    quantity: int | None = None

    @property
    def amount_usd(self) -> Decimal:
        return self.unit_usd * self.lots


def package_line(*, description: str, unit_usd: Decimal, lots: int) -> Line:
    """The machine itself.

    >>> package_line(description="7 days", unit_usd=Decimal("16.7832"), lots=3).amount_usd
    Decimal('50.34')
    """
    return Line("package", description, to_cents(unit_usd), lots)


def option_line(
    *, option: str, description: str, price_per_lot_day_usd: Decimal, days: int, quantity: int, lots: int
) -> Line:
    """Something sold beside it, by the lot and day.

    >>> storage = {"option": "storage", "description": "Storage", "price_per_lot_day_usd": Decimal("1.50")}
    >>> option_line(**storage, days=7, quantity=1, lots=2).amount_usd
    Decimal('21.00')
    """
    return Line("option", description, to_cents(price_per_lot_day_usd * days * quantity), lots, option, quantity)


def total_usd(lines: Iterable[Line]) -> Decimal:
    return sum((line.amount_usd for line in lines), Decimal("0.00"))
