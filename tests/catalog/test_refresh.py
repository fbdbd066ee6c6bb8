"""What a provider's list does to its machines: new, changed, gone; wrong rows alone are left out."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.models import (
    Availability,
    FeedAbsence,
    FeedQuestion,
    FeedRun,
    GpuAlias,
    Machine,
    MemorySource,
    Provider,
)
from catalog.questions import resolve_questions
from catalog.version import catalog_version
from rentals.endings import end_due_orders
from rentals.invariants import violations
from rentals.models import Order
from tests.catalog.feeding import START, Clock, as_stored, body, counts, fed_provider, feed, machine_of, row
from tests.factories import make_gpu, make_machine, make_order, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def aspen(gpu: Any) -> Provider:
    return fed_provider()


@contextmanager
def no_machine_is_written() -> Iterator[None]:
    before = as_stored()
    with CaptureQueriesContext(connection) as queries:
        yield
    writes = ("INSERT INTO", "UPDATE", "DELETE FROM", "MERGE", "COPY")
    touched = [
        q["sql"] for q in queries if q["sql"].lstrip("( ").startswith(writes) and '"catalog_machine"' in q["sql"]
    ]
    assert touched == []
    assert as_stored() == before


def test_an_offer_becomes_a_listed_machine(aspen: Provider, gpu: Any) -> None:
    run = feed(aspen, [row(price_3_days_usd="30.00", interruptible=True)])
    assert (run.outcome, run.seen, run.offers, counts(run)) == ("ok", 1, 1, {"new": 1})
    machine = machine_of(1)
    assert (machine.name, machine.provider, machine.gpu, machine.gpu_count) == ("Machine 1", aspen, gpu, 1)
    assert (machine.tier, machine.country, machine.place_raw) == ("community", "DE", "Berlin, DE")
    assert (machine.gpu_memory_bytes, machine.memory_unit) == (24564 * 2**20, "MiB")
    assert machine.memory_source == MemorySource.PROVIDER_REPORT
    assert (machine.lots, machine.free_lots, machine.listed, machine.online) == (1, 1, True, True)
    assert (machine.hourly_usd, machine.price_3_days_usd) == (Decimal("0.40"), Decimal("30.00"))
    assert (machine.price_7_days_usd, machine.price_30_days_usd) == (Decimal("67.20"), Decimal("288.00"))
    assert machine.interruptible
    machine.full_clean()
    aspen.refresh_from_db()
    assert aspen.refreshed_at == START
    assert list(Machine.objects.available(now=START)) == [machine]


def test_package_prices_of_the_list_go_before_derived_ones(aspen: Provider) -> None:
    feed(aspen, [row(price_7_days_usd="60.00", price_30_days_usd="240.00")])
    assert machine_of(1).price_7_days_usd == Decimal("60.00")
    assert machine_of(1).price_30_days_usd == Decimal("240.00")


def test_the_lots_of_a_secure_offer_are_those_that_can_be_rented_now(aspen: Provider) -> None:
    feed(aspen, [row(tier="secure", lots=5, free_lots=3)])
    assert (machine_of(1).lots, machine_of(1).free_lots) == (3, 3)
    assert machine_of(1).memory_source == MemorySource.DATASHEET
    feed(aspen, [row(tier="secure", lots=5, free_lots=0)])
    assert (machine_of(1).lots, machine_of(1).free_lots, machine_of(1).online) == (3, 3, False)
    feed(aspen, [row(tier="secure", lots=5)])
    assert (machine_of(1).lots, machine_of(1).free_lots, machine_of(1).online) == (5, 5, True)


def test_the_same_list_twice_writes_no_machine(aspen: Provider) -> None:
    rows = [row(number) for number in range(20)]
    rows += [row("secure", tier="secure", lots=4, free_lots=2), row("rented", rentable=False)]
    rows += [row("nowhere", place=None), row("odd", place="Atlantis"), row("no-memory", gpu_memory_mib=None)]
    feed(aspen, rows)
    before = catalog_version(START)
    clock = Clock(START + timedelta(minutes=1))
    with no_machine_is_written():
        run = feed(aspen, rows, clock)
    assert (run.outcome, counts(run)) == ("ok", {"unchanged": 25})
    assert catalog_version(clock.now) == before
    aspen.refresh_from_db()
    assert aspen.refreshed_at == clock.now


def test_only_what_changed_is_written(aspen: Provider) -> None:
    feed(aspen, [row(1), row(2), row(3)])
    before = {machine.pk: machine.updated_at for machine in Machine.objects.all()}
    clock = Clock(START + timedelta(minutes=1))
    run = feed(aspen, [row(1), row(2, hourly_usd="0.45"), row(3)], clock)
    assert counts(run) == {"changed": 1, "unchanged": 2}
    assert machine_of(2).price_7_days_usd == Decimal("75.60")
    written = [machine.external_id for machine in Machine.objects.all() if machine.updated_at != before[machine.pk]]
    assert written == ["offer-2"]


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"hourly_usd": "0.41"}, "hourly_usd", Decimal("0.41")),
        ({"gpu_memory_mib": 49140}, "gpu_memory_bytes", 49140 * 2**20),
        ({"gpu_memory_mib": None}, "gpu_memory_bytes", None),
        ({"gpu_count": 2}, "gpu_count", 2),
        ({"place": "Paris, FR"}, "country", "FR"),
        ({"place": None}, "country", None),
        ({"interruptible": True}, "interruptible", True),
        ({"price_3_days_usd": "30.00"}, "price_3_days_usd", Decimal("30.00")),
        ({"rentable": False}, "online", False),
        ({"name": "Renamed"}, "name", "Renamed"),
        ({"available_until": "2026-12-11T12:00:00Z"}, "max_term_days", 9),
    ],
)
def test_each_field_follows_the_list(aspen: Provider, change: dict[str, Any], field: str, value: Any) -> None:
    feed(aspen, [row()])
    before = catalog_version(START)
    run = feed(aspen, [row(**change)])
    assert counts(run) == {"changed": 1}
    assert getattr(machine_of(1), field) == value
    assert catalog_version(START) != before
    machine_of(1).full_clean()
    assert counts(feed(aspen, [row()])) == {"changed": 1}


def test_a_machine_that_is_gone_is_off_line_and_comes_back_as_itself(aspen: Provider) -> None:
    feed(aspen, [row(1), row(2)])
    machine = machine_of(2)
    assert counts(feed(aspen, [row(1)])) == {"unchanged": 1, "gone": 1}
    assert not machine_of(2).online
    assert machine_of(2).availability(START) == Availability.OFF_LINE
    assert counts(feed(aspen, [row(1)])) == {"unchanged": 1}
    assert counts(feed(aspen, [row(1), row(2)])) == {"changed": 1, "unchanged": 1}
    assert machine_of(2).pk == machine.pk
    assert machine_of(2).online


def test_machines_of_other_providers_are_never_touched(aspen: Provider) -> None:
    birch = fed_provider("birch")
    feed(birch, [row(1), row(2)])
    declared = make_machine(name="Machine 1")
    feed(aspen, [row(1)])
    assert machine_of(1, birch).online
    assert machine_of(2, birch).online
    declared.refresh_from_db()
    assert declared.online


def test_a_machine_declared_before_its_provider_had_a_list_is_not_in_it(aspen: Provider, gpu: Any) -> None:
    declared = make_machine(provider=aspen, gpu=gpu, name="Machine 1")
    run = feed(aspen, [row(1)])
    assert counts(run) == {"new": 1, "gone": 1}
    declared.refresh_from_db()
    assert not declared.online
    assert machine_of(1).name == "Machine 1 (offer-1)"


def test_staff_unlist_a_machine_and_the_list_does_not_list_it_again(aspen: Provider) -> None:
    feed(aspen, [row(1)])
    Machine.objects.update(listed=False)
    feed(aspen, [row(1, hourly_usd="0.50")])
    assert machine_of(1).hourly_usd == Decimal("0.50")
    assert not machine_of(1).listed


# --- Names ---


def test_two_offers_of_one_name_have_a_name_each_and_keep_it(aspen: Provider) -> None:
    twins = [row(1, name="RTX 4090"), row(2, name="RTX 4090"), row(3, name="RTX 4090")]
    feed(aspen, twins)
    names = {machine.external_id: machine.name for machine in Machine.objects.all()}
    assert names == {f"offer-{number}": f"RTX 4090 (offer-{number})" for number in (1, 2, 3)}
    with no_machine_is_written():
        feed(aspen, twins[::-1])
    assert counts(feed(aspen, twins[1:])) == {"unchanged": 2, "gone": 1}
    assert counts(feed(aspen, [twins[0], row(2, name="Other")])) == {"changed": 2, "gone": 1}
    assert machine_of(1).name == "RTX 4090 (offer-1)"


def test_a_name_stays_with_the_machine_that_is_gone(aspen: Provider) -> None:
    feed(aspen, [row(1, name="RTX 4090"), row(2)])
    feed(aspen, [row(2)])
    feed(aspen, [row(2), row(3, name="RTX 4090")])
    assert machine_of(3).name == "RTX 4090 (offer-3)"


def test_names_that_are_swapped_are_given_without_a_clash(aspen: Provider) -> None:
    feed(aspen, [row(1, name="A"), row(2, name="B")])
    assert counts(feed(aspen, [row(1, name="B"), row(2, name="A")])) == {"changed": 2}
    assert counts(feed(aspen, [row(1, name="B"), row(2, name="A")])) == {"unchanged": 2}
    assert {machine.name for machine in Machine.objects.all()} == {"B (offer-1)", "A (offer-2)"}


def test_a_long_name_is_cut_before_its_id(aspen: Provider) -> None:
    long = "x" * 160
    feed(aspen, [row(1, name=long)])
    feed(aspen, [row(1, name=long), row(2)])
    stored = machine_of(1).name
    Machine.objects.filter(external_id="offer-1").update(external_id="other")
    feed(aspen, [row(1, name=long), row(2)])
    assert machine_of(1).name == stored[: 160 - len(" (offer-1)")] + " (offer-1)"


def test_a_row_whose_names_are_all_taken_is_rejected_and_not_on_sale_as_it_was(aspen: Provider, gpu: Any) -> None:
    feed(aspen, [row(1), row(2), row(3)])
    for name in ("Taken", "Taken (offer-1)", "Gone", "Gone (offer-4)"):
        make_machine(provider=aspen, gpu=gpu, name=name, online=False)
    run = feed(aspen, [row(1, name="Taken"), row(2), row(3), row(4, name="Gone")])
    assert counts(run) == {"unchanged": 2, "gone": 1, "rejected": 2}
    assert {(rejection.row, rejection.code) for rejection in run.rejections.all()} == {
        (1, "name_taken"),
        (4, "name_taken"),
    }
    assert not machine_of(1).online


# --- Slices of one host ---


def test_slices_of_a_host_that_is_under_rent_are_not_sold_beside_it(aspen: Provider) -> None:
    host = {"host": "h1", "host_gpu_count": 4}
    feed(aspen, [row("whole", gpu_count=4, gpu_ids=["0", "1", "2", "3"], **host), row("else")])
    Machine.objects.filter(external_id="offer-whole").update(free_lots=0)
    slices = [row("one", gpu_ids=["1"], **host), row("two", gpu_count=2, gpu_ids=["2", "3"], **host), row("else")]
    run = feed(aspen, slices)
    assert counts(run) == {"rejected": 2, "unchanged": 1, "rented": 1}
    assert {one.code for one in run.rejections.all()} == {"gpus_under_rent"}
    assert not Machine.objects.filter(external_id__in=["offer-one", "offer-two"]).exists()

    Machine.objects.filter(external_id="offer-whole").update(free_lots=1)
    assert counts(feed(aspen, slices)) == {"new": 2, "gone": 1, "unchanged": 1}


def test_a_slice_of_other_gpus_stands_beside_the_one_under_rent(aspen: Provider) -> None:
    host = {"host": "h1", "host_gpu_count": 2}
    feed(aspen, [row("left", gpu_ids=["0"], **host), row("right", gpu_ids=["1"], **host)])
    Machine.objects.filter(external_id="offer-left").update(free_lots=0)
    assert counts(feed(aspen, [row("right", gpu_ids=["1"], **host)])) == {"unchanged": 1, "rented": 1}
    assert machine_of("right").online


def test_without_the_gpus_named_the_host_under_rent_sells_nothing_else_unless_its_list_has_both(
    aspen: Provider,
) -> None:
    host = {"host": "h1", "host_gpu_count": 2}
    both = [row("left", **host), row("right", **host)]
    feed(aspen, both)
    Machine.objects.filter(external_id="offer-left").update(free_lots=0)
    assert counts(feed(aspen, both)) == {"unchanged": 1, "rented": 1}
    run = feed(aspen, [row("right", **host), row("else")])
    assert counts(run) == {"rejected": 1, "gone": 1, "rented": 1, "new": 1}


@pytest.mark.parametrize("known", [False, True])
def test_a_slice_that_is_rented_while_the_list_offers_its_whole_host_keeps_the_whole_off_sale(
    aspen: Provider, acme: Any, known: bool
) -> None:
    host = {"host": "h1", "host_gpu_count": 2}
    whole, other = row("whole", gpu_count=2, gpu_ids=["0", "1"], **host), row("else")
    beside = row("beside", host="h2", host_gpu_count=2, gpu_ids=["0"])
    if known:
        # Its row is older than the slice's, and would be written before.
        feed(aspen, [whole, other])
    feed(aspen, [row("slice", gpu_ids=["1"], **host), other])

    def order() -> None:
        make_order(acme, machine_of("slice"), placement={"now": START})

    run = feed(aspen, [whole, other, beside], Clock(meanwhile=order))
    assert counts(run) == {"new": 1, "unchanged": 1, "rented": 1, "skipped": 1}
    assert not Machine.objects.filter(external_id="offer-whole", online=True).exists()
    # The next run knows of the rent; nothing of the host is sold twice before or after.
    run = feed(aspen, [whole, other, beside])
    assert counts(run) == {"rejected": 1, "unchanged": 2, "rented": 1}
    assert not Machine.objects.filter(external_id="offer-whole", online=True).exists()
    assert not violations()


def test_slices_of_other_gpus_come_while_one_that_left_the_list_is_rented(aspen: Provider, acme: Any) -> None:
    host = {"host": "h1", "host_gpu_count": 3}
    feed(aspen, [row("slice", gpu_ids=["2"], **host), row("else")])

    def order() -> None:
        make_order(acme, machine_of("slice"), placement={"now": START})

    run = feed(aspen, [row("rest", gpu_count=2, gpu_ids=["0", "1"], **host), row("else")], Clock(meanwhile=order))
    assert counts(run) == {"new": 1, "unchanged": 1, "rented": 1}


@pytest.mark.parametrize(
    ("now_told", "other"),
    [
        # The rented one moves to other GPUs of its host, to another host, to none.
        ({"gpu_ids": ["2", "3"]}, {"gpu_ids": ["0", "1"]}),
        ({"gpu_ids": ["2", "3"]}, {"gpu_count": 1, "gpu_ids": ["1"]}),
        ({"host": "h2"}, {"gpu_ids": ["0", "1"]}),
        ({"host": None, "host_gpu_count": None, "gpu_ids": None}, {"gpu_ids": ["0", "1"]}),
        # It has fewer than were rented, or does not say any more which.
        ({"gpu_count": 1, "gpu_ids": ["0"]}, {"gpu_count": 3, "gpu_ids": ["1", "2", "3"]}),
        ({"gpu_ids": None}, {"gpu_ids": ["0", "1"]}),
    ],
)
def test_gpus_under_rent_are_not_sold_again_by_a_list_that_tells_others_of_the_rented_offer(
    aspen: Provider, acme: Any, now_told: dict[str, Any], other: dict[str, Any]
) -> None:
    host = {"host": "h1", "host_gpu_count": 4, "gpu_count": 2}
    before = host | {"gpu_ids": ["0", "1"]}
    feed(aspen, [row("rented", **before), row("else")])
    order = make_order(acme, machine_of("rented"), placement={"now": START})
    rows = [row("rented", **(before | now_told)), row("again", **(host | other)), row("else")]
    run = feed(aspen, rows)
    assert [one.code for one in run.rejections.all()] == ["gpus_under_rent"]
    assert not Machine.objects.filter(external_id="offer-again").exists()
    # When the term is over the list is believed.
    clock = Clock(order.ends_at)
    end_due_orders(clock.now)
    feed(aspen, rows, clock)
    assert machine_of("again").online


def test_offers_that_trade_their_gpus_are_written_and_an_order_that_comes_meanwhile_keeps_its_own(
    aspen: Provider, acme: Any
) -> None:
    host = {"host": "h1", "host_gpu_count": 2}
    feed(aspen, [row("left", gpu_ids=["0"], **host), row("right", gpu_ids=["1"], **host), row("else")])
    traded = [row("left", gpu_ids=["1"], **host), row("right", gpu_ids=["0"], **host), row("else")]
    assert counts(feed(aspen, traded)) == {"changed": 2, "unchanged": 1}
    assert (machine_of("left").host_gpus, machine_of("right").host_gpus) == ("1", "0")
    assert machine_of("left").online
    assert machine_of("right").online

    def order() -> None:
        make_order(acme, machine_of("left"), placement={"now": START})

    back = [row("left", gpu_ids=["0"], **host), row("right", gpu_ids=["1"], **host), row("else")]
    run = feed(aspen, back, Clock(meanwhile=order))
    assert counts(run) == {"unchanged": 1, "rented": 1, "skipped": 1}
    assert machine_of("left").host_gpus == "1"
    assert not machine_of("right").online


def test_a_list_that_begins_to_name_the_gpus_of_a_rented_slice_moves_nothing(aspen: Provider, acme: Any) -> None:
    host = {"host": "h1", "host_gpu_count": 2}
    feed(aspen, [row("left", **host), row("right", **host)])
    make_order(acme, machine_of("left"), placement={"now": START})
    run = feed(aspen, [row("left", gpu_ids=["0"], **host), row("right", gpu_ids=["1"], **host)])
    assert counts(run) == {"changed": 1, "rented": 1}
    assert machine_of("right").online


# --- Rows that are wrong ---


def test_one_wrong_row_of_a_thousand_is_rejected_with_its_number_and_the_rest_applied(aspen: Provider) -> None:
    rows = [row(number) for number in range(1, 1001)]
    rows[416]["hourly_usd"] = "NaN"
    run = feed(aspen, rows)
    assert (run.outcome, counts(run)) == ("ok", {"new": 999, "rejected": 1})
    rejection = run.rejections.get()
    assert (rejection.row, rejection.external_id) == (417, "offer-417")
    assert "hourly_usd" in rejection.detail
    assert Machine.objects.count() == 999


def test_a_machine_whose_row_is_wrong_now_is_not_sold_at_its_old_price(aspen: Provider) -> None:
    feed(aspen, [row(number) for number in range(5)])
    rows = [row(number) for number in range(5)]
    rows[0]["hourly_usd"] = "0"
    run = feed(aspen, rows)
    assert counts(run) == {"unchanged": 4, "gone": 1, "rejected": 1}
    assert not machine_of(0).online


def test_a_row_that_only_the_database_refuses_costs_no_other(aspen: Provider, gpu: Any) -> None:
    feed(aspen, [row(number) for number in range(5)])
    other = make_machine(provider=aspen, gpu=gpu, name="In the way", online=False)
    changes = [row(number, name=f"New {number}") for number in range(5)]
    run = feed(aspen, changes, Clock(meanwhile=lambda: Machine.objects.filter(pk=other.pk).update(name="New 3")))
    assert counts(run) == {"changed": 4, "rejected": 1}
    assert run.rejections.get().code == "conflict"
    assert run.rejections.get().external_id == "offer-3"


# --- GPUs and places that nobody knows ---


def test_an_offer_with_an_unknown_gpu_is_asked_about_and_not_listed(aspen: Provider, gpu: Any) -> None:
    rows = [row(1), row(2, gpu="RTX 4090 D2"), row(3, gpu="RTX 4090 D2")]
    run = feed(aspen, rows)
    assert counts(run) == {"new": 1, "rejected": 2}
    assert {(rejection.row, rejection.code) for rejection in run.rejections.all()} == {
        (2, "unknown_gpu"),
        (3, "unknown_gpu"),
    }
    question = FeedQuestion.objects.get()
    assert (question.provider, question.kind, question.raw, question.count) == (aspen, "gpu", "RTX 4090 D2", 2)
    assert question.example == "Machine 2 (offer-2)"
    clock = Clock(START + timedelta(minutes=1))
    feed(aspen, rows, clock)
    question.refresh_from_db()
    assert (question.count, question.first_seen_at, question.last_seen_at) == (2, START, clock.now)


def test_a_known_name_with_another_memory_is_refused_and_no_question(aspen: Provider) -> None:
    make_gpu("h100-sxm", name="H100 SXM 80 GB", memory_gb_nominal=80).aliases.create(name="H100 SXM")
    run = feed(aspen, [row(1), row(2, gpu="H100 SXM", gpu_memory_mib=24576)])
    rejection = run.rejections.get()
    assert (rejection.row, rejection.code) == (2, "memory_contradicts")
    assert "H100 SXM 80 GB, but the list reports 24 GiB" in rejection.detail
    assert not FeedQuestion.objects.exists()


def test_an_answer_is_applied_to_every_provider_at_its_next_refresh(aspen: Provider, gpu: Any) -> None:
    birch = fed_provider("birch")
    for provider in (aspen, birch):
        feed(provider, [row(1), row(2, gpu="Frobnicator 9000")])
    staff = make_user()
    now = START + timedelta(seconds=10)
    question = FeedQuestion.objects.get(provider=aspen)
    resolve_questions([question], gpu=gpu, by=staff, reason="The maker's old name.", now=now)
    assert GpuAlias.objects.get().name == "Frobnicator 9000"
    assert not FeedQuestion.objects.filter(resolved_at=None).exists()
    assert {state.due_at for state in (aspen.feed_state, birch.feed_state)} == {now}
    for provider in (aspen, birch):
        run = feed(provider, [row(1), row(2, gpu="Frobnicator 9000")], Clock(now))
        assert counts(run) == {"new": 1, "unchanged": 1}
    assert Machine.objects.filter(gpu=gpu).count() == 4
    entry = gpu.history.first()
    assert (entry.history_user, entry.history_change_reason) == (staff, "Alias added: The maker's old name.")


def test_an_unknown_place_is_kept_as_written_and_names_no_country(aspen: Provider) -> None:
    run = feed(aspen, [row(1, place="Middle Earth")])
    assert counts(run) == {"new": 1}
    machine = machine_of(1)
    assert (machine.country, machine.place_raw) == (None, "Middle Earth")
    question = FeedQuestion.objects.get()
    assert (question.kind, question.raw, question.count) == ("place", "Middle Earth", 1)
    soon = START + timedelta(seconds=1)
    resolve_questions([question], country="NZ", by=make_user(), reason="Filmed there.", now=soon)
    feed(aspen, [row(1, place="Middle Earth")], Clock(START + timedelta(minutes=1)))
    assert machine_of(1).country == "NZ"
    question.refresh_from_db()
    assert question.count == 0
    assert question.resolved_at is not None


def test_a_place_that_is_known_to_name_no_country_is_asked_about_no_more(aspen: Provider) -> None:
    feed(aspen, [row(1, place="Earth")])
    question = FeedQuestion.objects.get()
    resolve_questions([question], by=make_user(), reason="It names none.", now=START + timedelta(seconds=1))
    feed(aspen, [row(1, place="Earth")], Clock(START + timedelta(minutes=1)))
    question.refresh_from_db()
    assert (question.resolved_at is not None, machine_of(1).country) == (True, None)


def test_a_question_whose_answer_is_taken_away_is_asked_again(aspen: Provider, gpu: Any) -> None:
    rows = [row(1), row(2, gpu="Frobnicator 9000")]
    feed(aspen, rows)
    resolve_questions([FeedQuestion.objects.get()], gpu=gpu, by=None, reason="x", now=START + timedelta(seconds=1))
    GpuAlias.objects.all().delete()
    feed(aspen, rows, Clock(START + timedelta(minutes=1)))
    assert FeedQuestion.objects.get().resolved_at is None


# --- Machines under rent ---


def test_a_machine_under_rent_is_not_written_to(aspen: Provider, acme: Any) -> None:
    feed(aspen, [row(1), row(2), row(3, tier="secure", lots=3)])
    now = Clock().now
    for number in (1, 3):
        make_order(acme, machine_of(number), placement={"now": now})
    rented = Machine.objects.filter(external_id__in=["offer-1", "offer-3"]).order_by("pk")
    before = list(rented.values())
    run = feed(aspen, [row(1, hourly_usd="0.90"), row(2), row(3, tier="secure", lots=9, name="Other")])
    assert counts(run) == {"unchanged": 1, "rented": 2}
    assert list(rented.values()) == before
    run = feed(aspen, [row(2), row(3, tier="secure", lots=1, rentable=False)])
    assert counts(run) == {"unchanged": 1, "rented": 2}
    assert list(rented.values()) == before
    assert not violations()


def test_free_lots_beside_rented_ones_are_not_offered_once_the_list_is_without_them(aspen: Provider, acme: Any) -> None:
    secure = row(1, tier="secure", lots=3)
    feed(aspen, [secure, row(2)])
    make_order(acme, machine_of(1), placement={"now": START})
    assert machine_of(1) in Machine.objects.available(now=START)
    version = catalog_version(START)
    feed(aspen, [row(2)])
    assert machine_of(1) not in Machine.objects.available(now=START)
    assert machine_of(1).availability(START) == Availability.UNCONFIRMED
    assert catalog_version(START) != version
    feed(aspen, [secure, row(2)])
    assert machine_of(1) in Machine.objects.available(now=START)
    assert catalog_version(START) == version


def test_a_lot_that_comes_back_is_not_offered_until_the_list_has_it_again(aspen: Provider, acme: Any) -> None:
    feed(aspen, [row(1), row(2)])
    order = make_order(acme, machine_of(1), placement={"now": START})
    clock = Clock(order.ends_at - timedelta(seconds=30))
    feed(aspen, [row(2)], clock)
    assert FeedAbsence.objects.count() == 1
    clock.forward(seconds=30)
    assert end_due_orders(clock.now) == 1
    assert machine_of(1).free_lots == 1
    assert machine_of(1) not in Machine.objects.available(now=clock.now)
    assert counts(feed(aspen, [row(2)], clock)) == {"unchanged": 1, "gone": 1}
    assert FeedAbsence.objects.count() == 0
    assert counts(feed(aspen, [row(1), row(2)], clock)) == {"unchanged": 1, "changed": 1}
    assert machine_of(1) in Machine.objects.available(now=clock.now)
    assert Order.objects.get().machine_id == machine_of(1).pk
    assert not violations()


def test_a_rented_machine_that_its_list_still_has_is_free_again_when_its_term_ends(aspen: Provider, acme: Any) -> None:
    feed(aspen, [row(1), row(2)])
    order = make_order(acme, machine_of(1), placement={"now": START})
    clock = Clock(order.ends_at)
    feed(aspen, [row(1), row(2)], clock)
    end_due_orders(clock.now)
    assert machine_of(1) in Machine.objects.available(now=clock.now)


def test_a_machine_that_is_rented_after_it_was_compared_is_left_as_it_is(aspen: Provider, acme: Any) -> None:
    feed(aspen, [row(1), row(2), row(3), row(4)])

    def rent() -> None:
        for number in (1, 2):
            make_order(acme, machine_of(number), placement={"now": START})

    run = feed(aspen, [row(2, hourly_usd="0.50"), row(3, hourly_usd="0.50"), row(4)], Clock(meanwhile=rent))
    assert counts(run) == {"changed": 1, "unchanged": 1, "rented": 2}
    assert [machine_of(number).hourly_usd for number in (1, 2, 3)] == [
        Decimal("0.40"),
        Decimal("0.40"),
        Decimal("0.50"),
    ]
    assert machine_of(1).online
    assert {absence.machine.external_id: absence.why for absence in FeedAbsence.objects.all()} == {
        "offer-1": "gone",
        "offer-2": "terms",
    }
    assert not violations()


# --- Records ---


def test_the_history_tells_when_a_machine_became_another_and_not_each_move_of_a_price(aspen: Provider) -> None:
    feed(aspen, [row(number) for number in range(5)])
    feed(aspen, [row(number, hourly_usd="0.42") for number in range(4)])
    assert not Machine.history.exists()
    feed(aspen, [row(0, gpu_memory_mib=49140), *(row(number) for number in range(1, 5))])
    entry = Machine.history.get()
    assert (entry.external_id, entry.gpu_memory_bytes) == ("offer-0", 49140 * 2**20)
    assert (entry.history_type, entry.history_change_reason) == ("~", "The provider's list says so.")


def test_a_list_that_makes_other_machines_all_the_time_leaves_one_version_of_each_a_day(
    aspen: Provider, admin_user: Any
) -> None:
    clock = Clock()
    feed(aspen, [row(1), row(2)], clock)
    changed = machine_of(1)
    changed._history_user, changed._change_reason = admin_user, "Off the pages."  # type: ignore[attr-defined]
    changed.save()
    for day in range(3):
        for turn in range(3):
            feed(aspen, [row(1, gpu_memory_mib=20000 + 10 * day + turn), row(2)], clock)
            clock.forward(hours=3)
        clock.forward(hours=15)
    said = Machine.history.filter(history_change_reason="The provider's list says so.").order_by("history_date")
    assert [entry.gpu_memory_bytes // 2**20 for entry in said] == [20002, 20012, 20022]
    assert Machine.history.filter(history_user=admin_user).count() == 1


def test_a_run_keeps_what_it_read_and_how_long_it_took(aspen: Provider) -> None:
    run = feed(aspen, [row(1)])
    run.refresh_from_db()
    assert (run.wire_bytes, run.read_bytes) == (len(body([row(1)])),) * 2
    assert (run.started_at, run.duration) == (START, timedelta(0))


def test_rejections_of_runs_long_over_are_forgotten_and_their_count_stays(aspen: Provider) -> None:
    clock = Clock()
    first = feed(aspen, [row(1), row(2, hourly_usd="0")], clock)
    clock.forward(minutes=59)
    feed(aspen, [row(1), row(2, hourly_usd="0")], clock)
    assert first.rejections.count() == 1
    clock.forward(minutes=2)
    latest = feed(aspen, [row(1), row(2, hourly_usd="0")], clock)
    assert (first.rejections.count(), latest.rejections.count()) == (0, 1)
    assert FeedRun.objects.get(pk=first.pk).rejected == 1


def test_only_the_first_thousand_rejections_are_kept(aspen: Provider) -> None:
    rows = [row(0), *(row(number, hourly_usd="0") for number in range(1, 1101))]
    run = feed(aspen, rows)
    assert (run.rejected, run.rejections.count()) == (1100, 1000)
