"""Real transactions between real connections: nothing oversold, nothing ordered twice, no lot lost.

Each test ends with the invariants of all rows. The long ones are marked `system`.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core import mail
from django.db import connection, connections, transaction
from django.db.models import Sum
from django.utils import timezone

from catalog.models import Machine
from rentals.allocations import start, stop
from rentals.cancellations import cancel_order
from rentals.endings import end_due_orders
from rentals.errors import Busy, IdempotencyMismatch, InProgress, PriceChanged, RentalError, SoldOut
from rentals.invariants import violations
from rentals.models import Allocation, AuditEvent, IdempotencyRecord, Membership, Notice, Order
from rentals.notices import send_notices
from tests.factories import make_basket, make_delivered, make_machine, make_organization, make_user, place

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]

PRICE = Decimal("110.00")


def at_once(acts: list[Callable[[], Any]]) -> list[Any]:
    """Run every act in a thread and a connection of its own, all released together; a refusal is a result."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        try:
            barrier.wait(30)
            return act()
        except RentalError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def shop(**fields: Any) -> Machine:
    return make_machine(price_7_days_usd=PRICE, **fields)


def buying(organization: Any, machine: Machine, key: str, lots: int = 1, **fields: Any) -> Callable[[], Any]:
    def buy() -> Any:
        basket = make_basket(machine, lots=lots, **fields)
        return place(organization, basket, idempotency_key=key, expected_total_usd=PRICE * lots)

    return buy


def outcomes(results: list[Any]) -> Counter[str]:
    return Counter(type(result).__name__ for result in results)


def free(machine: Machine) -> int:
    return Machine.objects.get(pk=machine.pk).free_lots


def race_for_one_lot(rounds: int) -> None:
    """B133: one lot, two buyers of two organizations at the same moment."""
    buyers = [make_organization("acme"), make_organization("globex")]
    for number in range(rounds):
        machine = shop()
        results = at_once([buying(buyer, machine, f"k{number}") for buyer in buyers])
        assert outcomes(results) == {"Placement": 1, "SoldOut": 1}, number
        assert free(machine) == 0
    assert Order.objects.count() == rounds
    assert not violations()


def test_two_buyers_of_one_lot():
    race_for_one_lot(25)


@pytest.mark.system
@pytest.mark.timeout(900)
def test_two_buyers_of_one_lot_five_hundred_times():
    race_for_one_lot(500)


def test_a_hundred_buyers_of_ten_lots():
    buyers = [make_organization() for _ in range(4)]
    machine = shop(lots=10)
    results = at_once([buying(buyers[number % 4], machine, f"k{number}") for number in range(100)])
    assert outcomes(results) == {"Placement": 10, "SoldOut": 90}
    assert free(machine) == 0
    assert not violations()


def test_random_quantities_never_oversell():
    acme = make_organization("acme")
    machine = shop(lots=25)
    chance = random.Random(7)
    acts = [buying(acme, machine, f"k{number}", lots=chance.randint(1, 3)) for number in range(60)]
    results = at_once(acts)
    assert set(outcomes(results)) <= {"Placement", "SoldOut", "Busy"}
    sold = sum(Order.objects.values_list("lots", flat=True))
    assert (sold, free(machine)) == (25 - free(machine), 25 - sold)
    # Nobody who wanted one lot was sent away while there was one at the end.
    assert free(machine) == 0
    assert not violations()


def test_one_key_sent_fifty_times_is_one_order_and_one_receipt():
    """B138."""
    acme = make_organization("acme")
    machine = shop(lots=50)
    results = at_once([buying(acme, machine, "k")] * 50)
    assert outcomes(results) == {"Placement": 50}
    assert len({result.body for result in results}) == 1
    assert Counter(result.replayed for result in results) == {False: 1, True: 49}
    assert Order.objects.count() == 1
    assert free(machine) == 49
    assert not violations()


def test_one_key_with_several_bodies_is_one_order_and_refusals_that_name_the_fields():
    acme = make_organization("acme")
    machine = shop(lots=50)
    acts = [buying(acme, machine, "k", environment=preset) for preset in ("vllm", "pytorch", "cuda") for _ in range(8)]
    results = at_once(acts)
    assert outcomes(results) == {"Placement": 8, "IdempotencyMismatch": 16}
    for refused in results:
        if isinstance(refused, IdempotencyMismatch):
            assert [difference.field for difference in refused.differences] == ["environment.preset"]
    assert Order.objects.count() == 1
    assert not violations()


def test_one_key_in_two_organizations_is_two_orders():
    buyers = [make_organization("acme"), make_organization("globex")]
    machine = shop(lots=2)
    results = at_once([buying(buyer, machine, "k") for buyer in buyers])
    assert outcomes(results) == {"Placement": 2}
    assert len({result.order.pk for result in results}) == 2
    assert not violations()


def test_a_running_first_request_that_takes_too_long_is_told_apart():
    """The repeat waits for the lock time-out, then says that the first is still running; the key is not lost."""
    acme = make_organization("acme")
    machine = shop(lots=2)
    held, release = threading.Event(), threading.Event()

    def first() -> None:
        with transaction.atomic():
            IdempotencyRecord.objects.create(
                organization=acme, key="k", method="POST", path="/", body={}, created_at=timezone.now()
            )
            held.set()
            release.wait(60)
            transaction.set_rollback(True)

    def second() -> Any:
        held.wait(30)
        try:
            return buying(acme, machine, "k")()
        finally:
            release.set()

    results = at_once([first, second])
    assert isinstance(results[1], InProgress)
    assert results[1].retry_after >= 1
    assert buying(acme, machine, "k")().order.pk == Order.objects.get().pk
    assert not violations()


def test_a_machine_locked_for_long_gives_a_clear_error_and_stores_nothing():
    acme = make_organization("acme")
    machine = shop()
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Machine.objects.select_for_update().get(pk=machine.pk)
            held.set()
            release.wait(60)

    def buy() -> Any:
        held.wait(30)
        try:
            return buying(acme, machine, "k")()
        finally:
            release.set()

    assert isinstance(at_once([hold, buy])[1], Busy)
    assert not IdempotencyRecord.objects.exists()
    assert free(machine) == 1


def test_a_price_changed_while_the_order_waits_for_the_machine_is_noticed():
    acme = make_organization("acme")
    machine = shop()
    held = threading.Event()

    def reprice() -> None:
        with transaction.atomic():
            Machine.objects.filter(pk=machine.pk).update(price_7_days_usd=Decimal("120.00"))
            held.set()
            wait_for_waiters(1)

    def buy() -> Any:
        held.wait(30)
        return buying(acme, machine, "k")()

    refused = at_once([reprice, buy])[1]
    assert isinstance(refused, PriceChanged)
    assert (refused.old, refused.new) == (PRICE, Decimal("120.00"))
    assert not Order.objects.exists()


def wait_for_waiters(number: int) -> None:
    """Until so many other connections wait for a lock."""
    for _ in range(400):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0] >= number:
                return
        threading.Event().wait(0.05)
    raise AssertionError("nobody waits for the lock")


def test_ends_sweeps_and_orders_mixed_lose_no_lot():
    """Several workers sweep the same due orders while buyers take lots that come back."""
    acme = make_organization("acme")
    machine, now = shop(lots=12), timezone.now()
    for number in range(12):
        place(acme, make_basket(machine), idempotency_key=f"old{number}", now=now - timedelta(days=8))
    sweeps = [lambda: end_due_orders(now)] * 6
    results = at_once(sweeps + [buying(acme, machine, f"new{number}") for number in range(20)])
    assert sum(results[:6]) == 12
    assert Order.objects.filter(status="ended").count() == 12
    active = Order.objects.filter(status="active").count()
    assert free(machine) == 12 - active
    assert not violations()


def test_ends_cancellations_hand_overs_and_orders_mixed_lose_no_lot():
    """Every due order ends once, every other is cancelled by one of three, while buyers take what comes back."""
    acme, staff = make_organization("acme"), make_user(is_staff=True)
    machine, now = shop(lots=24), timezone.now()
    due = [place(acme, make_basket(machine), now=now - timedelta(days=8)).order for _ in range(12)]
    running = [place(acme, make_basket(machine), now=now - timedelta(days=1)).order for _ in range(12)]

    def cancelling(order: Order) -> Callable[[], Any]:
        return lambda: cancel_order(order.pk, reason="x", credit_usd=order.total_usd, actor=staff, now=now)

    acts: list[Callable[[], Any]] = [lambda: end_due_orders(now)] * 4
    acts += [cancelling(order) for order in [*due, *running, *running, *running]]
    acts += [lambda order=order: make_delivered(order, now=now) for order in running]
    acts += [buying(acme, machine, f"new{number}") for number in range(30)]
    random.Random(3).shuffle(acts)
    results = at_once(acts)
    assert set(outcomes(results)) <= {"int", "Order", "Allocation", "OrderOver", "Placement", "SoldOut", "Busy"}
    end_due_orders(now)
    assert Order.objects.filter(status="ended").count() == 12
    assert Order.objects.filter(status="cancelled").count() == outcomes(results)["Order"] <= 12
    assert AuditEvent.objects.filter(action="order.cancelled").count() == outcomes(results)["Order"]
    active = Order.objects.filter(status="active").aggregate(lots=Sum("lots"))["lots"] or 0
    assert free(machine) == 24 - active
    assert not violations()


def test_a_lot_handed_over_while_its_order_is_cancelled_is_either_paid_or_credited():
    acme, staff = make_organization("acme"), make_user(is_staff=True)
    now, nothing = timezone.now(), Decimal("0.00")
    for _ in range(10):
        order = place(acme, make_basket(shop()), now=now).order
        acts = [
            lambda order=order: make_delivered(order, now=now),
            lambda order=order: cancel_order(order.pk, reason="x", credit_usd=nothing, actor=staff, now=now),
        ]
        at_once(acts)
        order.refresh_from_db()
        # Cancelled without credit only if the lot was there before.
        assert order.status == "active" or order.allocations.get().delivered_at is not None
    assert not violations()


def test_one_sweep_of_many_sends_each_mail():
    acme, now = make_organization("acme"), timezone.now()
    machine = shop(lots=20)
    for _ in range(20):
        place(acme, make_basket(machine), now=now)
    sent = at_once([lambda: send_notices(lambda: now)] * 6)
    assert sum(sent) == 20
    assert len(mail.outbox) == 20
    assert set(Notice.objects.values_list("state", flat=True)) == {"sent"}


def test_a_machine_held_for_long_keeps_no_other_order_from_ending():
    acme, now = make_organization("acme"), timezone.now()
    machines = [shop(), shop()]
    for number, machine in enumerate(machines):
        place(acme, make_basket(machine), idempotency_key=f"k{number}", now=now - timedelta(days=9 - number))
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Machine.objects.select_for_update().get(pk=machines[0].pk)
            held.set()
            release.wait(60)

    def sweep() -> int:
        held.wait(30)
        try:
            return end_due_orders(now)
        finally:
            release.set()

    assert at_once([hold, sweep])[1] == 1
    assert [free(machine) for machine in machines] == [0, 1]
    assert end_due_orders(now) == 1
    assert not violations()


def test_lots_stopped_and_started_while_the_term_ends_stay_stopped():
    acme = make_organization("acme")
    machine = shop(lots=4)
    order = place(acme, make_basket(machine, lots=4)).order
    end = order.ends_at
    acts = [
        lambda verb=verb, number=number: verb(order, number, actor=None, via="page", now=end - timedelta(seconds=1))
        for number in (1, 2, 3, 4)
        for verb in (stop, start)
    ]
    at_once([*acts, lambda: end_due_orders(end), lambda: end_due_orders(end)])
    order.refresh_from_db()
    assert order.status == "ended"
    assert set(Allocation.objects.values_list("state", flat=True)) <= {"stopped", "running"}
    assert {lot.state_at(order, end) for lot in order.allocations.all()} == {"stopped"}
    assert free(machine) == 4
    assert not violations()


def test_two_owners_cannot_remove_each_other():
    from rentals.members import remove_member

    acme = make_organization("acme")
    first = Membership.objects.get()
    second = Membership.objects.create(organization=acme, user=make_user(), role="owner")
    now = timezone.now()
    at_once([lambda: remove_member(first, second.pk, now=now), lambda: remove_member(second, first.pk, now=now)])
    assert Membership.objects.filter(role="owner").count() == 1


def test_two_sign_ups_of_one_name_get_two_slugs():
    from rentals.organizations import create_organization

    owners = [make_user() for _ in range(8)]
    now = timezone.now()
    made = at_once([lambda owner=owner: create_organization(name="Same", owner=owner, now=now) for owner in owners])
    assert len({organization.slug for organization in made}) == 8


def test_the_machine_is_named_when_it_sells_out():
    acme = make_organization("acme")
    machine = shop()
    results = at_once([buying(acme, machine, f"k{number}") for number in range(6)])
    refusals = [result for result in results if isinstance(result, SoldOut)]
    assert len(refusals) == 5
    assert {(refusal.machine, refusal.wanted, refusal.available) for refusal in refusals} == {(machine, 1, 0)}
