"""Stopping and starting a lot never moves the end of the paid period."""

from datetime import timedelta

import pytest

from rentals.allocations import start, stop
from rentals.cancellations import cancel_order
from rentals.endings import end_due_orders
from rentals.errors import OrderOver
from rentals.models import Allocation, AuditEvent
from tests.factories import make_machine, make_order, make_user


def act(verb, order, number, now, actor=None):
    return verb(order, number, actor=actor, via="page", now=now)


def test_stopping_pauses_nothing_and_starting_again_adds_nothing(acme, now):
    order = make_order(acme, make_machine(lots=2), lots=2, placement={"now": now})
    end = order.ends_at
    assert act(stop, order, 2, now, acme.owner).state == "stopped"
    assert act(start, order, 2, now + timedelta(days=3), acme.owner).state == "running"
    order.refresh_from_db()
    assert order.ends_at == end
    assert [a.state for a in order.allocations.all()] == ["running", "running"]


def test_both_are_idempotent_by_nature(acme, now):
    order = make_order(acme)
    for _ in range(3):
        act(stop, order, 1, now)
    assert AuditEvent.objects.filter(action="allocation.stopped").count() == 1


@pytest.mark.parametrize(("before", "allowed"), [(timedelta(microseconds=1), True), (timedelta(0), False)])
@pytest.mark.parametrize("verb", [start, stop])
def test_they_work_until_the_end_and_not_from_it_on(acme, verb, before, allowed):
    order = make_order(acme)
    moment = order.ends_at - before
    if allowed:
        act(verb, order, 1, moment)
    else:
        with pytest.raises(OrderOver):
            act(verb, order, 1, moment)


def test_an_ended_order_cannot_be_started(acme):
    order = make_order(acme)
    end_due_orders(order.ends_at)
    with pytest.raises(OrderOver, match="The term of this order is over"):
        act(start, order, 1, order.ends_at)


@pytest.mark.parametrize("verb", [start, stop])
def test_what_was_cancelled_says_so_and_not_that_its_term_is_over(acme, verb):
    order = make_order(acme)
    staff = make_user("staff@example.com", is_staff=True, is_superuser=True)
    cancel_order(order.pk, reason="Withdrawn.", credit_usd=order.total_usd, actor=staff, now=order.starts_at)
    with pytest.raises(OrderOver, match="This order was cancelled; its machines cannot"):
        act(verb, order, 1, order.starts_at)


def test_nothing_runs_once_the_order_is_over_even_before_the_sweep(acme):
    order = make_order(acme)
    allocation = order.allocations.get()
    assert allocation.state_at(order, order.ends_at) == "stopped"
    assert allocation.state == "running"


def test_an_unknown_number_does_not_exist(acme, now):
    with pytest.raises(Allocation.DoesNotExist):
        act(stop, make_order(acme), 2, now)
