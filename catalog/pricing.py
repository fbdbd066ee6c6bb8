"""Prices: USD only, Decimal only. Each amount is rounded once, half-up, to the cent."""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")
HOURS_PER_DAY = 24
STANDARD_TERMS_DAYS = (7, 30)
TRIAL_TERM_DAYS = 3
TERMS_DAYS = (TRIAL_TERM_DAYS, *STANDARD_TERMS_DAYS)


def to_cents(amount: Decimal) -> Decimal:
    """The amount rounded half-up to the cent.

    Raises: TypeError for a float, because its cents are not what was written.
    """
    if not isinstance(amount, Decimal):
        raise TypeError(f"money is Decimal, not {type(amount).__name__}")
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def package_price(hourly_usd: Decimal, days: int) -> Decimal:
    """The price of one lot for a term, from the price per hour.

    >>> package_price(Decimal("0.0999"), 7)
    Decimal('16.78')
    """
    return to_cents(hourly_usd * HOURS_PER_DAY * days)


def pro_rata(weekly_usd: Decimal, days: int) -> Decimal:
    """The price of one lot for `days`, in proportion to a weekly price.

    >>> pro_rata(Decimal("110.00"), 3), pro_rata(Decimal("110.00"), 30)
    (Decimal('47.14'), Decimal('471.43'))
    """
    return to_cents(weekly_usd * days / 7)


def pro_rata_hourly(weekly_usd: Decimal) -> Decimal:
    """The price per hour, in proportion to a weekly price: six decimals, as a machine keeps it, half-up.

    >>> pro_rata_hourly(Decimal("110.00"))
    Decimal('0.654762')
    """
    return (weekly_usd / (HOURS_PER_DAY * 7)).quantize(Decimal("0.000001"), rounding=ROUND_HALF_UP)


def hourly_equivalent(package_usd: Decimal, days: int) -> Decimal:
    """The package price divided by its hours: shown beside the package, four decimals, half-up.

    >>> hourly_equivalent(Decimal("110.00"), 7)
    Decimal('0.6548')
    """
    return (package_usd / (HOURS_PER_DAY * days)).quantize(Decimal("0.0001"), rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class Package:
    """One lot for one term, as a page shows it: the price and what it is per hour."""

    days: int
    price_usd: Decimal

    @property
    def hourly_usd(self) -> Decimal:
        return hourly_equivalent(self.price_usd, self.days)

    @property
    def hours(self) -> int:
        return self.days * HOURS_PER_DAY
