"""Whatever lists come in whatever order, with orders in between: the last good list and the catalog say the same."""

from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.models import FeedRun, Gpu, Machine
from catalog.refresh import refresh_provider
from rentals.endings import end_due_orders
from rentals.invariants import violations
from tests.catalog.feeding import START, Clock, as_stored, body, counts, fed_provider, row
from tests.factories import make_gpu, make_machine, make_order, make_organization

pytestmark = pytest.mark.django_db

examples = count(1)
quietly = settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def offers(draw: st.DrawFn) -> dict[str, Any]:
    """A row that may be sound, wrong, of an unknown GPU or place, with a name that others have too."""
    number = draw(st.integers(1, 8))
    secure = draw(st.booleans())
    fields: dict[str, Any] = {
        "name": draw(st.sampled_from(["A", "B", "A (offer-2)", f"Own {number}"])),
        "gpu": draw(st.sampled_from(["RTX 4090"] * 6 + ["L4", "Frobnicator"])),
        "place": draw(st.sampled_from(["Berlin, DE", ", US", "Atlantis", None])),
        "gpu_memory_mib": draw(st.sampled_from([24564, None])),
        "hourly_usd": draw(st.sampled_from(["0.40", "0.41", "0.42", "0.43", "0", "NaN"])),
        "rentable": draw(st.sampled_from([True, True, False])),
    }
    if secure:
        lots = draw(st.integers(1, 3))
        fields |= {"tier": "secure", "lots": lots, "free_lots": draw(st.integers(0, lots))}
    return row(number, **fields)


lists = st.lists(offers(), max_size=10)
acts = st.one_of(
    st.tuples(st.just("list"), lists),
    st.tuples(st.just("body"), st.sampled_from([b"", b"null", b'{"offers": []}', b"<html>"])),
    st.tuples(st.just("rent"), st.integers(0, 8)),
    st.tuples(st.just("end"), st.just(None)),
)


def ensure_gpus() -> None:
    """Examples of one test share its transaction: what one has made, the next finds."""
    for slug, name in (("rtx-4090", "RTX 4090"), ("l4", "L4")):
        if not Gpu.objects.filter(slug=slug).exists():
            make_gpu(slug, name=name, memory_gb_nominal=24)


def the_catalog_says_what_the_list_says(run: FeedRun, rows: list[dict[str, Any]], now: Any) -> None:
    """After a good run: available is what the list offers and nobody rents, at the list's price."""
    told: dict[str, int] = {}
    for one in rows:
        free = one.get("free_lots", 1) if one["rentable"] else 0
        told[one["id"]] = max(told.get(one["id"], 0), free)
    machines = Machine.objects.filter(provider=run.provider)
    assert run.new + run.changed + run.unchanged <= run.offers
    assert run.seen == run.offers + run.rejected + run.merged
    for machine in machines:
        machine.full_clean()
        # An absence is only of a machine under rent; whoever is free is off-line instead.
        assert machine.free_lots < machine.lots or machine.absence is None
        offered = machine.online and not (machine.absence and machine.absence.is_whole)
        assert (machine in machines.available(now=now)) == (offered and machine.lots_to_sell > 0)
        if offered:
            assert machine.lots_to_sell <= told.get(machine.external_id, 0)


@quietly
@given(rows=lists, before=lists)
def test_the_same_list_again_changes_nothing(rows: list[Any], before: list[Any]) -> None:
    ensure_gpus()
    provider = fed_provider(f"idempotent-{next(examples)}")
    refresh_provider(provider.pk, clock=Clock(), body=body(before))
    run = refresh_provider(provider.pk, clock=Clock(), body=body(rows))
    stored = as_stored()
    again = refresh_provider(provider.pk, clock=Clock(START + timedelta(seconds=60)), body=body(rows))
    assert again.outcome == run.outcome
    assert as_stored() == stored
    if run.outcome == "ok":
        assert set(counts(again)) <= {"unchanged", "rejected", "merged"}
        assert again.unchanged == run.offers


@quietly
@given(steps=st.lists(acts, max_size=12))
def test_invariants_hold_whatever_happens_in_whatever_order(steps: list[tuple[str, Any]]) -> None:
    ensure_gpus()
    number = next(examples)
    provider, organization = fed_provider(f"any-order-{number}"), make_organization(f"organization-of-{number}")
    declared = make_machine()
    clock = Clock()
    for kind, what in steps:
        clock.forward(seconds=20)
        under_rent = list(Machine.objects.filter(free_lots__lt=1, provider=provider).order_by("pk").values())
        if kind in ("list", "body"):
            content = what if kind == "body" else body(what)
            stored = as_stored()
            run = refresh_provider(provider.pk, clock=clock, body=content)
            kept = Machine.objects.filter(pk__in=[machine["id"] for machine in under_rent]).order_by("pk")
            assert list(kept.values()) == under_rent
            if run.outcome == "ok":
                the_catalog_says_what_the_list_says(run, [] if kind == "body" else what, clock.now)
            else:
                assert as_stored() == stored
        elif kind == "rent":
            available = list(Machine.objects.available(now=clock.now).filter(provider=provider).order_by("pk"))
            if available:
                make_order(organization, available[what % len(available)], placement={"now": clock.now})
        else:
            clock.forward(days=7)
            end_due_orders(clock.now)
        assert not violations()
    declared.refresh_from_db()
    assert declared.online


@st.composite
def slices(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Offers of two hosts of four GPUs, under ids that may be other offers in each list."""
    rows = [row(f"kept-{number}") for number in range(3)]
    for number in draw(st.lists(st.integers(0, 3), unique=True, max_size=4)):
        gpu_ids = draw(st.lists(st.integers(0, 3), unique=True, min_size=1, max_size=4))
        host = draw(st.sampled_from(["h1", "h1", "h2"]))
        fields = {"host": host, "host_gpu_count": 4, "gpu_count": len(gpu_ids), "rentable": draw(st.booleans())}
        rows.append(row(number, gpu_ids=gpu_ids, **fields))
    return rows


@quietly
@given(steps=st.lists(st.tuples(slices(), st.sampled_from(["", "before", "meanwhile", "end"])), max_size=8))
def test_no_gpu_of_a_host_is_sold_twice_whatever_lists_say(steps: list[tuple[Any, str]]) -> None:
    ensure_gpus()
    number = next(examples)
    provider, organization = fed_provider(f"slices-{number}"), make_organization(f"organization-of-slices-{number}")
    clock = Clock()

    def order() -> None:
        machine = Machine.objects.available(now=clock.now).filter(provider=provider).exclude(host="").first()
        if machine:
            make_order(organization, machine, placement={"now": clock.now})

    for rows, act in steps:
        clock.forward(seconds=60)
        if act == "before":
            order()
        if act == "end":
            end_due_orders(clock.forward(days=7))
        clock.meanwhile = order if act == "meanwhile" else None
        refresh_provider(provider.pk, clock=clock, body=body(rows))
        clock.meanwhile = None
        machines = Machine.objects.filter(provider=provider).exclude(host="")
        sold = machines.available(now=clock.now) | machines.filter(free_lots=0)
        gpus = [(machine.host, gpu) for machine in sold for gpu in machine.host_gpus.split()]
        assert len(gpus) == len(set(gpus))
    assert not violations()
