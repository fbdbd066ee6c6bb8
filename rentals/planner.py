"""Fixed terms one after the other: the cheapest that cover some days, and the longest that a budget pays for.

Plain values in and out. Terms follow each other without a gap; each has a price of its own, rounded once, so the total
is the sum of what will be ordered, to the cent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

MAX_DAYS = 3650


@dataclass(frozen=True)
class Plan:
    """Terms in the order they are to be placed, the longest first. Units: USD, of all lots."""

    terms: tuple[int, ...]
    days: int
    total_usd: Decimal

    def counts(self) -> list[tuple[int, int]]:
        """(days, how many), the longest first."""
        return [(days, self.terms.count(days)) for days in sorted(set(self.terms), reverse=True)]

    def ends_at(self, starts_at: datetime) -> datetime:
        """When the last term ends, if each begins at the end of the one before."""
        return starts_at + timedelta(days=self.days)


def cheapest_cover(prices_usd: Mapping[int, Decimal], days: int) -> Plan:
    """The cheapest terms that last `days` or more; of equally cheap ones the longest, then the fewest terms.

    `prices_usd`: what all lots cost for a term, by its days.

    >>> cheapest_cover({3: Decimal("47.14"), 7: Decimal("110.00"), 30: Decimal("471.43")}, 10).terms
    (7, 3)
    """
    _check_days(days)
    best = _exact(prices_usd, days + max(prices_usd) - 1, _by_price)
    enough = [(cost.usd, -length, cost.terms) for length, cost in enumerate(best) if cost and length >= days]
    return _plan(best, -min(enough)[1])


def fewest_cover(prices_usd: Mapping[int, Decimal], days: int) -> Plan:
    """The fewest terms that last `days` or more; of equally many the cheapest, then the longest.

    >>> fewest_cover({3: Decimal("47.14"), 7: Decimal("110.00"), 30: Decimal("471.43")}, 30).terms
    (30,)
    """
    _check_days(days)
    best = _exact(prices_usd, days + max(prices_usd) - 1, _by_number)
    enough = [(cost.terms, cost.usd, -length) for length, cost in enumerate(best) if cost and length >= days]
    return _plan(best, -min(enough)[2])


def longest_within(prices_usd: Mapping[int, Decimal], budget_usd: Decimal) -> Plan | None:
    """The terms that last longest for at most the budget, the cheapest of them; None when it pays for no term.

    Looks no further than MAX_DAYS.

    >>> longest_within({7: Decimal("110.00"), 30: Decimal("471.43")}, Decimal("600.00")).terms
    (30, 7)
    """
    best = _exact(prices_usd, MAX_DAYS, _by_price)
    affordable = [length for length, cost in enumerate(best) if length and cost and cost.usd <= budget_usd]
    return _plan(best, affordable[-1]) if affordable else None


def covered_days(starts_at: datetime, until: datetime) -> int:
    """The days of 24 hours that reach from one moment to the other, a begun one counted."""
    return -((starts_at - until) // timedelta(days=1))


class _Cost(NamedTuple):
    """A way to last some days: its price, how many terms it has and which comes last."""

    usd: Decimal
    terms: int
    last_term: int


def _by_price(cost: _Cost) -> tuple[Decimal, int]:
    return cost.usd, cost.terms


def _by_number(cost: _Cost) -> tuple[int, Decimal]:
    return cost.terms, cost.usd


def _check_days(days: int) -> None:
    if not 1 <= days <= MAX_DAYS:
        raise ValueError(f"days must be from 1 to {MAX_DAYS}")


def _exact(
    prices_usd: Mapping[int, Decimal], most: int, key: Callable[[_Cost], tuple[Decimal | int, Decimal | int]]
) -> list[_Cost | None]:
    """By number of days, the best terms by `key` that last exactly so long, or None.

    One table, filled upwards: the best of n days is a term and the best of what is left.
    """
    if not prices_usd or any(price <= 0 for price in prices_usd.values()):
        raise ValueError("every term needs a price above 0")
    best: list[_Cost | None] = [_Cost(Decimal(0), 0, 0)]
    for days in range(1, most + 1):
        best.append(min(_extensions(prices_usd, best, days), key=key, default=None))
    return best


def _extensions(prices_usd: Mapping[int, Decimal], best: list[_Cost | None], days: int) -> Iterator[_Cost]:
    """Every way to add one term to a shorter plan."""
    for term, price in prices_usd.items():
        shorter = best[days - term] if term <= days else None
        if shorter is not None:
            yield _Cost(shorter.usd + price, shorter.terms + 1, term)


def _plan(best: list[_Cost | None], days: int) -> Plan:
    """The terms, read back from the last one."""
    terms, left = [], days
    while cost := best[left]:
        if not left:
            break
        terms.append(cost.last_term)
        left -= cost.last_term
    total = best[days]
    assert total is not None
    return Plan(tuple(sorted(terms, reverse=True)), days, total.usd)
