"""The very end of a term: active until the instant before it, over from the instant itself."""

from datetime import UTC, datetime, timedelta

import pytest

from rentals import allocations
from rentals.endings import end_due_orders
from rentals.errors import OrderOver
from rentals.models import Order
from tests.factories import make_machine, make_order

MOMENTS = [
    pytest.param(timedelta(microseconds=-1), False, id="a microsecond before the end"),
    pytest.param(timedelta(0), True, id="at the end"),
    pytest.param(timedelta(seconds=1), True, id="a second after the end"),
]
# Ordinary, over both clock changes, over a leap day and over a year's end.
STARTS = [
    datetime(2026, 6, 1, 9, 30, 0, 123456, tzinfo=UTC),
    datetime(2026, 10, 24, 1, tzinfo=UTC),
    datetime(2027, 3, 27, 1, tzinfo=UTC),
    datetime(2028, 2, 28, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2026, 12, 30, 12, tzinfo=UTC),
]


@pytest.mark.parametrize(("offset", "over"), MOMENTS)
@pytest.mark.parametrize("start", STARTS, ids=str)
@pytest.mark.parametrize("days", [3, 7, 30])
def test_row_list_and_sweep_agree_about_the_end(acme, days, start, offset, over):
    machine = make_machine(price_3_days_usd="47.14")
    order = make_order(acme, machine, term_days=days, placement={"now": start})
    moment = start + timedelta(seconds=days * 86_400) + offset
    rows = Order.objects.for_organization(acme)
    status = "ended" if over else "active"
    assert order.status_at(moment) == status
    assert [rows.in_state(each, moment).exists() for each in ("active", "ended")] == [not over, over]
    assert rows.due(moment).exists() == over
    assert end_due_orders(moment) == int(over)
    # A second sweep, and one an hour later by a worker whose clock is ahead, end nothing twice.
    assert end_due_orders(moment) == 0
    machine.refresh_from_db()
    assert machine.free_lots == int(over)
    order.refresh_from_db()
    assert order.status == status
    assert order.ended_at == (order.ends_at if over else None)


@pytest.mark.parametrize(("offset", "over"), MOMENTS)
def test_a_lot_is_stopped_and_started_until_the_end(acme, now, offset, over):
    order = make_order(acme, placement={"now": now})
    moment = order.ends_at + offset
    if over:
        for verb in (allocations.stop, allocations.start):
            with pytest.raises(OrderOver):
                verb(order, 1, actor=acme.owner, via="page", now=moment)
        return
    assert allocations.stop(order, 1, actor=acme.owner, via="page", now=moment).state == "stopped"
    assert allocations.start(order, 1, actor=acme.owner, via="page", now=moment).state == "running"
    order.refresh_from_db()
    assert order.ends_at == now + timedelta(days=7)
