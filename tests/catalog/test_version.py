"""The version of the catalog: another one whenever an answer could be another, and the same for the same rows."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import md5
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import BooleanField, Case, F, Model, Value, When
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.models import FeedAbsence, Gpu, Machine, Provider
from catalog.querysets import FRESH_FOR, is_current, lots_to_sell
from catalog.version import _OF_GPU, _OF_PROVIDER, catalog_version
from tests.factories import make_gpu, make_machine, make_provider

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
quietly = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# What no answer tells or decides by, and so may change under one version.
NOT_OF_A_MACHINE = {
    "answers_digest", "external_id", "place_raw", "host", "host_gpus", "hourly_usd", "updated_at", "gone_since",
}  # fmt: skip
NOT_OF_A_GPU = {
    "architecture", "form_factor", "devices_per_card", "memory_type", "memory_mib_reported", "compute_capability",
    "memory_bandwidth_gb_s", "bf16", "fp8", "sources", "notes",
}  # fmt: skip
NOT_OF_A_PROVIDER = {"slug", "website", "invented", "feed_format", "sealed_secret", "feed_interval_seconds"}
# Of a list only this: whether its machines are offered.
LISTS = {"feed_url", "refreshed_at"}


@pytest.fixture
def catalog() -> dict[str, Any]:
    """Three machines of two providers, one of them with a list."""
    fed = make_provider("fed", feed_format="berth", feed_url="https://fed.example/list", refreshed_at=NOW)
    own, gpus = make_provider("own"), [make_gpu("l4", memory_gb_nominal=24), make_gpu("a100", memory_gb_nominal=80)]
    machines = [
        make_machine(provider=own, gpu=gpus[0], lots=4, free_lots=3),
        make_machine(provider=fed, gpu=gpus[0], lots=4, free_lots=3),
        make_machine(provider=fed, gpu=gpus[1], country=None, gpu_memory_bytes=None),
    ]
    return {"fed": fed, "own": own, "gpus": gpus, "machines": machines}


def names_in(facts: Any) -> set[str]:
    """Every column that an expression reads."""
    found = set()
    for fact in facts:
        if isinstance(fact, str):
            found.add(fact)
        elif isinstance(fact, F):
            found.add(fact.name)
        else:
            found |= names_in(fact.get_source_expressions())
    return found


@pytest.mark.parametrize(
    ("model", "told", "not_told"),
    [
        (Machine, names_in([Machine._meta.get_field("answers_digest").expression]), NOT_OF_A_MACHINE | {"listed"}),
        (Gpu, names_in(_OF_GPU), NOT_OF_A_GPU),
        (Provider, names_in(_OF_PROVIDER), NOT_OF_A_PROVIDER | LISTS),
        (FeedAbsence, {"machine", "lots", "why"}, {"since", "detail"}),
    ],
    ids=["machine", "gpu", "provider", "absence"],
)
def test_of_every_column_it_is_decided_whether_answers_depend_on_it(
    model: type[Model], told: set[str], not_told: set[str]
) -> None:
    """A new column fails here: it goes into the digest, or above with what no answer tells."""
    assert not told & not_told
    assert {field.name for field in model._meta.concrete_fields} == told | not_told


def test_the_database_makes_the_digest_that_the_row_says(catalog: dict[str, Any]) -> None:
    """Worked out here as well: the same on every database."""
    machine = make_machine(
        provider=catalog["own"], gpu=catalog["gpus"][0], name="Ünïcode | 30 %", price_3_days_usd=Decimal("47.10"),
        price_7_days_usd=Decimal("110.00"), price_30_days_usd=Decimal("9999999999.99"), gpu_memory_bytes=24 * 10**9,
        memory_source="datasheet", memory_unit="GB", lots=7, free_lots=5, gpu_count=2,
    )  # fmt: skip
    facts = (
        f"{machine.pk}|{catalog['own'].pk}|{catalog['gpus'][0].pk}|2|secure|DE|24000000000|GB|datasheet|0||7|5|1"
        "|4710|11000|999999999999|Ünïcode | 30 %"
    )
    assert digest_of(machine) == int(md5(facts.encode()).hexdigest()[:15], 16)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE catalog_machine SET free_lots = 4, max_term_days = 9 WHERE id = %s", [machine.pk])
    facts = facts.replace("|0||7|5|", "|0|9|7|4|")
    assert digest_of(machine) == int(md5(facts.encode()).hexdigest()[:15], 16)


def digest_of(machine: Machine) -> int:
    return Machine.objects.values_list("answers_digest", flat=True).get(pk=machine.pk)


def test_it_takes_one_statement(catalog: dict[str, Any], django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        catalog_version(NOW)


def test_an_empty_catalog_has_a_version() -> None:
    empty = catalog_version(NOW)
    machine = make_machine()
    assert catalog_version(NOW) != empty
    Machine.objects.update(listed=False)
    assert catalog_version(NOW) == empty
    machine.delete()
    assert catalog_version(NOW) == empty


@pytest.mark.parametrize("refreshed_at", [None, NOW - FRESH_FOR, NOW - FRESH_FOR + timedelta(microseconds=1)])
def test_of_the_age_of_a_list_only_its_meaning_counts(catalog: dict[str, Any], refreshed_at: datetime | None) -> None:
    fresh = catalog_version(NOW)
    Provider.objects.filter(pk=catalog["fed"].pk).update(refreshed_at=refreshed_at)
    assert (catalog_version(NOW) == fresh) == (refreshed_at is not None and refreshed_at > NOW - FRESH_FOR)
    Provider.objects.filter(pk=catalog["fed"].pk).update(refreshed_at=NOW + timedelta(minutes=1))
    assert catalog_version(NOW + timedelta(minutes=5)) == fresh
    assert catalog_version(NOW + timedelta(minutes=6)) != fresh
    # Nothing of the list is offered anyway.
    Machine.objects.filter(provider=catalog["fed"]).update(online=False)
    assert catalog_version(NOW) == catalog_version(NOW + timedelta(minutes=6))


# --- Whatever changes -------------------------------------------------------------------------------------------------

money = st.decimals(Decimal("0.01"), Decimal("9999999999.99"), places=2)
# No database keeps these in a text.
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40)
fields_of_a_machine = st.one_of(
    st.tuples(st.just("name"), words),
    st.tuples(st.just("gpu_count"), st.integers(1, 16)),
    st.tuples(st.just("country"), st.sampled_from([None, "DE", "FR", "US"])),
    st.tuples(st.just("memory_unit"), st.sampled_from(["GiB", "GB", "MiB", "bytes"])),
    st.tuples(st.just("interruptible"), st.booleans()),
    st.tuples(st.just("max_term_days"), st.none() | st.integers(1, 90)),
    st.tuples(st.just("lots"), st.integers(3, 2**31 - 1)),
    st.tuples(st.just("free_lots"), st.integers(0, 3)),
    st.tuples(st.just("online"), st.booleans()),
    st.tuples(st.just("listed"), st.booleans()),
    st.tuples(st.just("price_3_days_usd"), st.none() | money),
    st.tuples(st.sampled_from(["price_7_days_usd", "price_30_days_usd"]), money),
    st.tuples(st.sampled_from(["gpu", "provider"]), st.booleans()),
    st.tuples(st.just("memory"), st.sampled_from([None, 24 * 2**30, 24 * 10**9])),
    st.tuples(st.just("tier"), st.just("community")),
)
changes = st.one_of(
    st.tuples(st.just("machine"), st.integers(0, 1), fields_of_a_machine),
    st.tuples(st.just("gpu"), st.integers(0, 1), st.tuples(st.sampled_from(["name", "vendor"]), words)),
    st.tuples(st.just("provider"), st.integers(0, 1), st.tuples(st.just("name"), words)),
    st.tuples(st.just("list"), st.just(0), st.tuples(st.just("age"), st.sampled_from([0, 4, 5, 6, None]))),
    st.tuples(st.just("absence"), st.just(1), st.tuples(st.sampled_from(["gone", "fewer"]), st.integers(0, 4))),
    st.tuples(st.just("time"), st.just(0), st.tuples(st.just("minutes"), st.integers(0, 6))),
)


@quietly
@given(steps=st.lists(changes, min_size=1, max_size=6))
def test_another_answer_has_another_version(catalog: dict[str, Any], steps: list[Any]) -> None:
    """Two states of the catalog with one version say the same of every listed machine; and the same has one version."""
    now, told, stored = NOW, {}, {}
    with transaction.atomic():
        for each in [None, *steps]:
            if each is not None and each[0] == "time":
                now = NOW + timedelta(minutes=each[2][1])
            elif each is not None:
                change(catalog, *each)
            version = catalog_version(now)
            saying = everything_told(now)
            assert told.setdefault(version, saying) == saying
            assert stored.setdefault(everything_stored(saying), version) == version
        # Examples of one test share its transaction.
        transaction.set_rollback(True)


def change(catalog: dict[str, Any], kind: str, which: int, step: tuple[str, Any]) -> None:
    """One change; what the database refuses is none."""
    with suppress(IntegrityError), transaction.atomic():
        _write(catalog, kind, which, *step)


def _write(catalog: dict[str, Any], kind: str, which: int, field: str, value: Any) -> None:
    machine = Machine.objects.filter(pk=catalog["machines"][which].pk)
    match kind, field:
        case "machine", "gpu":
            machine.update(gpu=catalog["gpus"][value])
        case "machine", "provider":
            machine.update(provider=catalog["own" if value else "fed"])
        case "machine", "memory":
            machine.update(gpu_memory_bytes=value, memory_source="datasheet" if value else "")
        case "machine", "tier":
            machine.update(tier=value, lots=1, free_lots=1, gpu_memory_bytes=None, memory_source="")
        case "machine", _:
            machine.update(**{field: value})
        case "gpu", _:
            Gpu.objects.filter(pk=catalog["gpus"][which].pk).update(**{field: value})
        case "provider", _:
            Provider.objects.filter(pk=catalog["own" if which else "fed"].pk).update(name=value)
        case "list", _:
            refreshed_at = None if value is None else NOW - timedelta(minutes=value)
            Provider.objects.filter(pk=catalog["fed"].pk).update(refreshed_at=refreshed_at)
        case "absence", _:
            FeedAbsence.objects.filter(machine__in=machine).delete()
            if value:
                FeedAbsence.objects.create(machine=machine.get(), lots=value, why=field, since=NOW)


def everything_told(now: datetime) -> list[Any]:
    """Of each listed machine all that an answer tells or decides by, read row by row."""
    current = Case(When(is_current(now), then=Value(True)), default=Value(False), output_field=BooleanField())
    columns = names_in([Machine._meta.get_field("answers_digest").expression]) - {"free_lots"}
    beside = ("gpu__slug", "gpu__name", "gpu__vendor", "gpu__memory_gb_nominal", "provider__name")
    rows = Machine.objects.listed().order_by("id")
    return list(rows.values_list(*sorted(columns), *beside, lots_to_sell(), current))


def everything_stored(told: list[Any]) -> str:
    """All rows, with what the time means for them."""
    models = Machine, Gpu, Provider, FeedAbsence
    return f"{told} {[list(model.objects.order_by('pk').values_list()) for model in models]}"
