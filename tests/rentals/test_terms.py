"""A term is a duration of days x 86,400 seconds, whatever the clocks do."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError, transaction

from rentals.models import Order
from tests.factories import make_machine, make_order


@pytest.mark.parametrize(
    ("zone", "start", "days", "end_utc", "end_local_hour"),
    [
        ("Europe/Berlin", datetime(2026, 3, 27, 12), 7, datetime(2026, 4, 3, 11), 13),
        ("America/New_York", datetime(2026, 10, 30, 12), 7, datetime(2026, 11, 6, 16), 11),
        ("Europe/Berlin", datetime(2026, 10, 20, 12), 30, datetime(2026, 11, 19, 10), 11),
        ("UTC", datetime(2028, 2, 28, 23, 59, 59), 3, datetime(2028, 3, 2, 23, 59, 59), 23),
    ],
)
def test_a_clock_change_neither_adds_nor_takes_an_hour(acme, zone, start, days, end_utc, end_local_hour):
    """B125."""
    start = start.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    machine = make_machine(price_3_days_usd="47.14")
    order = make_order(acme, machine, term_days=days, placement={"now": start})
    order.refresh_from_db()
    assert order.ends_at - order.starts_at == timedelta(seconds=days * 86_400)
    assert order.ends_at == end_utc.replace(tzinfo=UTC)
    assert order.ends_at.astimezone(ZoneInfo(zone)).hour == end_local_hour


@pytest.mark.parametrize("off", [timedelta(microseconds=1), timedelta(hours=-1), timedelta(days=1)])
def test_the_database_refuses_an_end_that_is_not_the_terms(acme, off):
    order = make_order(acme)
    with pytest.raises(IntegrityError), transaction.atomic():
        Order.objects.filter(pk=order.pk).update(ends_at=order.ends_at + off)


def test_the_database_refuses_another_term(acme):
    order = make_order(acme)
    with pytest.raises(IntegrityError), transaction.atomic():
        Order.objects.filter(pk=order.pk).update(term_days=8, ends_at=order.starts_at + timedelta(days=8))


@pytest.mark.parametrize(
    ("after_the_end", "status"),
    [(timedelta(microseconds=-1), "active"), (timedelta(0), "ended"), (timedelta(seconds=1), "ended")],
)
def test_an_order_reads_as_ended_from_its_end_on_before_any_sweep(acme, after_the_end, status):
    order = make_order(acme)
    moment = order.ends_at + after_the_end
    assert order.status_at(moment) == status
    assert Order.objects.active(moment).exists() == (status == "active")
    assert Order.objects.ended(moment).exists() == (status == "ended")
