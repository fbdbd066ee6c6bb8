"""What an organization ordered and was credited in one calendar month in UTC.

An order counts in the month it was placed, a credit in the month it was given: the statement of a month that is over
never changes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from rentals.models import Order, Organization
from rentals.models.orders import Status

_WRITTEN = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
ZERO = Decimal("0.00")


@dataclass(frozen=True, order=True)
class Month:
    """A calendar month in UTC."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}"

    @property
    def start(self) -> datetime:
        return datetime(self.year, self.month, 1, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        return self.next.start

    @property
    def next(self) -> Month:
        return Month(self.year + self.month // 12, self.month % 12 + 1)

    @property
    def previous(self) -> Month:
        return Month(self.year - (self.month == 1), (self.month - 2) % 12 + 1)


@dataclass(frozen=True)
class Entry:
    """A line: what an order costs, or what was credited of one (negative)."""

    at: datetime
    what: str
    order: Order
    amount_usd: Decimal


@dataclass(frozen=True)
class Statement:
    organization: Organization
    month: Month
    entries: tuple[Entry, ...]
    complete: bool

    @property
    def ordered_usd(self) -> Decimal:
        return sum((entry.amount_usd for entry in self.entries if entry.what == "order"), ZERO)

    @property
    def credited_usd(self) -> Decimal:
        return sum((-entry.amount_usd for entry in self.entries if entry.what == "credit"), ZERO)

    @property
    def total_usd(self) -> Decimal:
        return self.ordered_usd - self.credited_usd


def month_of(moment: datetime) -> Month:
    moment = moment.astimezone(UTC)
    return Month(moment.year, moment.month)


def read_month(text: str) -> Month | None:
    """The month written as 2026-07, None for anything else."""
    written = _WRITTEN.fullmatch(text)
    if written is None or not 2000 <= int(written[1]) <= 9998:
        return None
    return Month(int(written[1]), int(written[2]))


def statement(organization: Organization, month: Month, *, now: datetime) -> Statement:
    orders = Order.objects.for_organization(organization)
    inside = (month.start, month.end)
    placed = orders.filter(starts_at__gte=inside[0], starts_at__lt=inside[1])
    cancelled = orders.filter(status=Status.CANCELLED, ended_at__gte=inside[0], ended_at__lt=inside[1])
    entries = [Entry(order.starts_at, "order", order, order.total_usd) for order in placed]
    entries += [
        Entry(order.ended_at, "credit", order, -order.credit_usd)
        for order in cancelled
        if order.ended_at is not None and order.credit_usd
    ]
    entries.sort(key=lambda entry: (entry.at, str(entry.order.pk), entry.what))
    return Statement(organization, month, tuple(entries), complete=month.end <= now)


def months(organization: Organization, *, now: datetime) -> list[tuple[Month, Decimal]]:
    """Every month from the first order to now with its total, the latest first."""
    totals: defaultdict[Month, Decimal] = defaultdict(lambda: ZERO)
    orders = Order.objects.for_organization(organization).order_by()
    # Added up here: SQLite would do it in floating point.
    for placed_at, total_usd in orders.values_list("starts_at", "total_usd").iterator():
        totals[month_of(placed_at)] += total_usd
    for cancelled_at, credit_usd in orders.filter(status=Status.CANCELLED).values_list("ended_at", "credit_usd"):
        if cancelled_at is not None and credit_usd:
            totals[month_of(cancelled_at)] -= credit_usd
    if not totals:
        return []
    month, oldest, found = month_of(now), min(totals), []
    while month >= oldest:
        found.append((month, totals[month]))
        month = month.previous
    return found
