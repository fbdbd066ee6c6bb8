"""The end of a term: once, and every lot back."""

from datetime import timedelta

from catalog.models import Machine
from rentals.endings import end_due_orders, end_order
from rentals.invariants import violations
from rentals.models import AuditEvent, Order, WebhookEndpoint
from rentals.tasks import end_due_orders as task
from tests.factories import make_endpoint, make_machine, make_order


def lots(machine):
    return Machine.objects.get(pk=machine.pk).free_lots


def test_lots_come_back_exactly_once(acme):
    machine = make_machine(lots=3)
    order = make_order(acme, machine, lots=2)
    assert end_due_orders(order.ends_at - timedelta(microseconds=1)) == 0
    assert lots(machine) == 1
    assert end_due_orders(order.ends_at) == 1
    assert end_due_orders(order.ends_at) == 0
    assert not end_order(order.pk, order.ends_at)
    assert lots(machine) == 3
    order.refresh_from_db()
    assert (order.status, order.ended_at) == ("ended", order.ends_at)
    assert {allocation.state for allocation in order.allocations.all()} == {"stopped"}
    assert AuditEvent.objects.filter(action="order.ended").count() == 1
    assert not violations()


def test_after_an_outage_every_due_order_ends_at_its_own_end(acme, now):
    machine = make_machine(lots=5)
    orders = [make_order(acme, machine, placement={"now": now - timedelta(days=20 + n)}) for n in range(5)]
    assert end_due_orders(now) == 5
    for order in orders:
        order.refresh_from_db()
        assert order.ended_at == order.ends_at
    assert lots(machine) == 5


def test_never_more_lots_come_back_than_the_machine_has(acme):
    machine = make_machine(lots=3)
    first, second = make_order(acme, machine, lots=2), make_order(acme, machine, lots=1)
    Machine.objects.filter(pk=machine.pk).update(lots=2)
    assert not violations()
    end_order(first.pk, first.ends_at)
    assert lots(machine) == 1
    end_order(second.pk, second.ends_at)
    assert lots(machine) == 2
    assert not violations()


def test_an_order_ends_when_its_machine_is_gone(acme):
    machine = make_machine()
    order = make_order(acme, machine)
    machine.delete()
    assert end_due_orders(order.ends_at) == 1


def test_one_order_that_cannot_be_told_of_keeps_no_lot_of_another(acme, globex, now):
    machine = make_machine(lots=2)
    broken = make_order(acme, machine, placement={"now": now - timedelta(days=20)})
    sound = make_order(globex, machine, placement={"now": now - timedelta(days=19)})
    endpoint = make_endpoint(acme)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(events=5)
    assert end_due_orders(now) == 1
    assert [Order.objects.get(pk=each.pk).status for each in (broken, sound)] == ["active", "ended"]
    assert lots(machine) == 1


def test_other_orders_keep_running(acme, now):
    machine = make_machine(lots=2)
    make_order(acme, machine, placement={"now": now - timedelta(days=8)})
    running = make_order(acme, machine)
    end_due_orders(now)
    assert Order.objects.get(pk=running.pk).status == "active"
    assert lots(machine) == 1


def test_the_periodic_task_ends_what_is_due_now(acme, now):
    make_order(acme, placement={"now": now - timedelta(days=8)})
    make_order(acme)
    assert task() == 1
