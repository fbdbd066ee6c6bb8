"""Two refreshes at once, orders and refreshes on the same rows: real transactions between real connections."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone

from catalog.models import FeedAbsence, FeedRun, FeedState, Machine, Provider
from catalog.refresh import Busy, refresh_provider
from catalog.refresh.dispatching import send_due
from rentals.endings import end_due_orders
from rentals.errors import RentalError, SoldOut
from rentals.invariants import violations
from rentals.models import Order
from tests.catalog.feeding import body, counts, fed_provider, machine_of, row
from tests.factories import make_basket, make_gpu, make_order, make_organization, place

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def aspen(transactional_db: None) -> Provider:
    make_gpu("rtx-4090", name="RTX 4090", memory_gb_nominal=24)
    return fed_provider()


def in_threads(acts: list[Callable[[], Any]]) -> list[Any]:
    """Each act in a thread and a connection of its own, all released together; a refusal is a result."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        try:
            barrier.wait(30)
            return act()
        except (RentalError, Busy) as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def refreshing(provider: Provider, rows: list[dict[str, Any]]) -> Callable[[], Any]:
    content = body(rows)
    return lambda: refresh_provider(provider.pk, body=content)


def test_of_many_refreshes_at_once_one_runs_and_no_machine_is_doubled(aspen: Provider) -> None:
    rows = [row(number) for number in range(1200)]
    results = in_threads([refreshing(aspen, rows) for _ in range(4)])
    kinds = Counter(type(result).__name__ for result in results)
    assert kinds["FeedRun"] >= 1
    assert kinds["FeedRun"] + kinds["Busy"] == 4
    assert [run.new for run in results if isinstance(run, FeedRun)].count(1200) == 1
    assert Machine.objects.count() == 1200
    assert set(FeedRun.objects.values_list("outcome", flat=True)) == {"ok"}
    assert FeedState.objects.get().claim is None


def test_two_schedulers_send_each_provider_once(aspen: Provider) -> None:
    for number in range(10):
        fed_provider(f"provider-{number}")
    now, sent = timezone.now(), []
    in_threads([lambda: send_due(lambda *task: sent.append(task), now)] * 4)
    assert len(sent) == len(set(sent)) == 11


def test_a_row_that_somebody_holds_is_left_for_the_next_time_without_waiting(aspen: Provider) -> None:
    first = refreshing(aspen, [row(number) for number in range(4)])()
    assert first.new == 4
    dearer = refreshing(aspen, [row(number, hourly_usd="0.50") for number in range(3)])
    with transaction.atomic():
        held = list(Machine.objects.select_for_update().filter(external_id__in=["offer-1", "offer-3"]))
        (run,) = in_threads([dearer])
    assert len(held) == 2
    assert counts(run) == {"changed": 2, "skipped": 2}
    assert machine_of(1).hourly_usd == Decimal("0.40")
    assert counts(dearer()) == {"changed": 1, "unchanged": 2, "gone": 1}


def test_an_order_in_hand_is_neither_overwritten_nor_kept_waiting(aspen: Provider) -> None:
    acme = make_organization("acme")
    refreshing(aspen, [row(number) for number in range(4)])()
    basket = make_basket(machine_of(1))
    total = machine_of(1).price_7_days_usd
    refreshed = threading.Event()

    def order_and_wait() -> Any:
        with transaction.atomic():
            # What an order does last: its lots, held until the commit.
            Machine.objects.filter(external_id="offer-2", free_lots=1).update(free_lots=0)
            assert refreshed.wait(20)
        return place(acme, basket, expected_total_usd=total)

    def refresh() -> Any:
        try:
            return refreshing(aspen, [row(number, hourly_usd="0.40") for number in (0, 1, 3)])()
        finally:
            refreshed.set()

    placed, run = in_threads([order_and_wait, refresh])
    assert placed.order.total_usd == total
    # Held while the other thread had taken it, or still free and then gone: never both.
    assert (run.skipped, run.gone) in {(1, 0), (0, 1)}
    assert machine_of(2).online == (run.skipped == 1)


def test_a_slice_that_an_order_holds_keeps_its_whole_host_off_sale(aspen: Provider) -> None:
    host = {"host": "h1", "host_gpu_count": 2}
    whole = row("whole", gpu_count=2, gpu_ids=["0", "1"], **host)
    refreshing(aspen, [row("slice", gpu_ids=["1"], **host), row("else")])()
    offered = refreshing(aspen, [whole, row("else")])
    with transaction.atomic():
        # What an order does last: nobody knows yet whether it will be committed.
        Machine.objects.filter(external_id="offer-slice", free_lots=1).update(free_lots=0)
        (run,) = in_threads([offered])
    assert counts(run) == {"unchanged": 1, "skipped": 2}
    assert not Machine.objects.filter(external_id="offer-whole").exists()
    assert counts(offered()) == {"unchanged": 1, "rented": 1, "rejected": 1}


def test_a_list_that_is_committed_while_an_order_waits_for_the_row_bounds_it(aspen: Provider) -> None:
    acme = make_organization("acme")
    four = row(1, tier="secure", lots=4, free_lots=4)
    refreshing(aspen, [four, row(2)])()
    make_order(acme, machine_of(1))
    quoted, applied = threading.Event(), threading.Event()

    def order() -> Any:
        def size(machine: Machine) -> dict[str, Any]:
            quoted.set()
            assert applied.wait(20)
            return {"fits": True}

        return place(acme, make_basket(machine_of(1), lots=3), size=size)

    def refresh() -> Any:
        assert quoted.wait(20)
        try:
            return refreshing(aspen, [{**four, "free_lots": 1}, row(2)])()
        finally:
            applied.set()

    refused, run = in_threads([order, refresh])
    assert counts(run) == {"unchanged": 1, "rented": 1}
    assert isinstance(refused, SoldOut)
    assert refused.available == 1
    assert machine_of(1).free_lots == 3
    assert not violations()


@pytest.mark.parametrize("seed", range(2))
def test_orders_and_refreshes_of_the_same_machines_lose_nothing(aspen: Provider, seed: int) -> None:
    organizations = [make_organization(f"org-{seed}-{number}") for number in range(3)]
    rows = [row(number, tier="secure", lots=2) for number in range(12)]
    refreshing(aspen, rows)()
    machines = list(Machine.objects.order_by("pk"))

    def buy(number: int) -> Callable[[], Any]:
        def act() -> Any:
            bought = []
            for step in range(6):
                machine = Machine.objects.get(pk=machines[(number * 5 + step * 7 + seed) % 12].pk)
                try:
                    total = machine.price_7_days_usd
                    bought.append(place(organizations[number], make_basket(machine), expected_total_usd=total))
                except RentalError as error:
                    bought.append(error)
            return bought

        return act

    def refresh() -> Any:
        runs = []
        for step in range(6):
            present = [{**one, "hourly_usd": f"0.4{step}"} for index, one in enumerate(rows) if (index + step) % 4]
            runs.append(refreshing(aspen, present)())
        return runs

    *bought, runs = in_threads([*(buy(number) for number in range(3)), refresh])
    assert {run.outcome for run in runs} == {"ok"}
    orders = [result for results in bought for result in results if not isinstance(result, RentalError)]
    assert orders
    assert Order.objects.count() == len(orders)
    for placed in orders:
        # Somebody paid a price that the list had at some moment.
        assert placed.order.total_usd in {machine_price(step) for step in range(6)} | {Decimal("67.20")}
    assert not violations()
    everything = refreshing(aspen, rows)()
    assert everything.outcome == "ok"
    assert not FeedAbsence.objects.exists()
    later = timezone.now() + timedelta(days=8)
    end_due_orders(later)
    assert all(machine.free_lots == machine.lots for machine in Machine.objects.all())
    assert not violations()


def machine_price(step: int) -> Decimal:
    return (Decimal(f"0.4{step}") * 168).quantize(Decimal("0.01"))


def test_a_rented_machine_that_left_the_list_is_free_for_nobody_until_it_is_back(aspen: Provider) -> None:
    acme = make_organization("acme")
    refreshing(aspen, [row(1), row(2)])()
    order = make_order(acme, machine_of(1))
    refreshing(aspen, [row(2)])()
    end_due_orders(order.ends_at)
    assert machine_of(1).free_lots == 1
    assert machine_of(1) not in Machine.objects.available(now=timezone.now())
    refreshing(aspen, [row(1), row(2)])()
    assert machine_of(1) in Machine.objects.available(now=timezone.now())
