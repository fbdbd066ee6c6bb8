"""What the database itself refuses, and which rows a question finds."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from catalog import countries
from catalog.models import Availability, GpuAlias, Machine, Option, Provider
from catalog.stock import LotsUnderRent, change_lots
from catalog.units import GB, GIB, MIB
from tests.factories import make_gpu, make_machine, make_provider

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wrong", "constraint"),
    [
        ({"lots": 0, "free_lots": 0}, "machine_has_a_lot"),
        ({"free_lots": 2}, "machine_free_lots_within_lots"),
        ({"gpu_count": 17}, "machine_gpu_count_1_to_16"),
        ({"gpu_memory_bytes": None}, "machine_memory_has_a_source"),
        ({"memory_source": ""}, "machine_memory_has_a_source"),
        ({"memory_source": "provider_report"}, "machine_memory_source_matches_tier"),
        ({"tier": "community", "memory_source": "provider_report", "lots": 2}, "machine_community_is_one_lot"),
        ({"hourly_usd": Decimal(0)}, "machine_prices_positive"),
        ({"price_3_days_usd": Decimal(-1)}, "machine_prices_positive"),
        ({"tier": "gold", "memory_source": "", "gpu_memory_bytes": None}, "machine_tier_and_country_known_words"),
        ({"country": ""}, "machine_tier_and_country_known_words"),
        ({"max_term_days": 0}, "machine_max_term_at_least_a_day"),
    ],
    ids=str,
)
def test_the_database_refuses(machine: Machine, wrong: dict[str, Any], constraint: str) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Machine.objects.filter(id=machine.id).update(**wrong)


def test_free_lots_never_go_below_zero(machine: Machine) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Machine.objects.filter(id=machine.id).update(free_lots=-1)


def test_names_are_unique_where_people_tell_rows_apart_by_them(machine: Machine) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make_machine(name=machine.name, provider=machine.provider, gpu=machine.gpu)
    make_machine(name=machine.name, gpu=machine.gpu)
    GpuAlias.objects.create(gpu=machine.gpu, name="4090")
    with pytest.raises(IntegrityError), transaction.atomic():
        GpuAlias.objects.create(gpu=machine.gpu, name="4090")
    GpuAlias.objects.create(gpu=make_gpu(), name="4090")


@pytest.mark.django_db
def test_a_feed_is_an_address_and_a_format() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make_provider(feed_url="https://feed.example/offers")
    with pytest.raises(IntegrityError), transaction.atomic():
        Option.objects.create(slug="free", name="Free", price_per_lot_day_usd=Decimal(0))


def test_a_gpu_or_provider_with_machines_is_not_deleted(machine: Machine) -> None:
    for owner in (machine.gpu, machine.provider):
        with pytest.raises(ProtectedError):
            owner.delete()


def fed(refreshed_at: datetime | None) -> Provider:
    return make_provider(feed_url="https://feed.example/", feed_format="native", refreshed_at=refreshed_at)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Availability.AVAILABLE),
        ({"free_lots": 0}, Availability.OUT_OF_STOCK),
        ({"online": False}, Availability.OFF_LINE),
        ({"refreshed": None}, Availability.UNCONFIRMED),
        ({"refreshed": timedelta(minutes=5)}, Availability.UNCONFIRMED),
        ({"refreshed": timedelta(minutes=4, seconds=59)}, Availability.AVAILABLE),
        ({"refreshed": timedelta(minutes=1), "free_lots": 0}, Availability.OUT_OF_STOCK),
        ({"refreshed": timedelta(minutes=1), "online": False}, Availability.OFF_LINE),
    ],
    ids=str,
)
def test_a_machine_and_the_table_agree_on_what_is_available(fields: dict[str, Any], expected: Availability) -> None:
    if "refreshed" in fields:
        age = fields.pop("refreshed")
        fields["provider"] = fed(None if age is None else NOW - age)
    machine = make_machine(**fields)
    assert machine.availability(NOW) == expected
    assert Machine.objects.available(now=NOW).exists() == (expected == Availability.AVAILABLE)


@pytest.mark.django_db
def test_available_means_listed_with_as_many_lots_as_asked() -> None:
    make_machine(name="unlisted", listed=False)
    make_machine(name="three", lots=3)
    make_machine(name="one", lots=3, free_lots=1)
    assert {m.name for m in Machine.objects.available(now=NOW)} == {"three", "one"}
    assert [m.name for m in Machine.objects.available(now=NOW, lots=2)] == ["three"]


@pytest.mark.django_db
def test_a_term_is_sold_where_it_has_a_price_and_the_longest_term_allows_it() -> None:
    make_machine(name="plain")
    make_machine(name="trial", price_3_days_usd=Decimal("47.14"))
    make_machine(name="week", max_term_days=7)
    make_machine(name="twenty", max_term_days=20, price_3_days_usd=Decimal("1.00"))
    sold = {days: {m.name for m in Machine.objects.sold_for(days)} for days in (3, 7, 30)}
    assert sold[3] == {"trial", "twenty"}
    assert sold[7] == {"plain", "trial", "week", "twenty"}
    assert sold[30] == {"plain", "trial"}
    for machine in Machine.objects.all():
        for days, names in sold.items():
            assert (machine.package(days) is not None) == (machine.name in names)


@pytest.mark.django_db
def test_eu_is_the_27_members_and_no_unknown_place() -> None:
    for country in ("DE", "IE", "NO", "GB", "CH", "RE", None):
        make_machine(name=str(country), country=country)
    codes = countries.expand(["EU"])
    assert len(codes) == 27
    assert {m.country for m in Machine.objects.in_countries(codes)} == {"DE", "IE"}


@pytest.mark.django_db
def test_b109_prices_are_ordered_as_numbers_and_b113_by_what_is_paid() -> None:
    for price in ("10.00", "3.50", "12.00", "9.00", "20.00", "4.50"):
        make_machine(price_7_days_usd=Decimal(price), gpu_count=2)
    prices = [str(m.price_7_days_usd) for m in Machine.objects.cheapest_first(7)]
    assert prices == ["3.50", "4.50", "9.00", "10.00", "12.00", "20.00"]
    make_machine(name="2 x 4090", gpu_count=2, hourly_usd=Decimal("0.80"))
    make_machine(name="1 x A6000", hourly_usd=Decimal("0.48"))
    dear = Machine.objects.at_most(Decimal("134.40"), days=7).filter(price_7_days_usd__gt=50)
    assert [m.name for m in dear.cheapest_first(7)] == ["1 x A6000", "2 x 4090"]


@pytest.mark.django_db
def test_b111_the_cheapest_comes_first_across_tiers_and_ties_keep_their_order() -> None:
    for tier, price in (("community", 100), ("secure", 90), ("community", 80), ("secure", 80)):
        make_machine(tier=tier, price_7_days_usd=Decimal(price))
    ordered = [(m.tier, int(m.price_7_days_usd)) for m in Machine.objects.cheapest_first(7)]
    assert ordered == [("community", 80), ("secure", 80), ("secure", 90), ("community", 100)]


@pytest.mark.django_db
def test_b082_a_class_and_a_counted_minimum_are_two_questions() -> None:
    for name, size in (("3090", 24_576 * MIB), ("4090", 24_564 * MIB), ("L4", 23_034 * MIB), ("sheet", 24 * GB)):
        make_machine(name=name, gpu=make_gpu(name=name, memory_gb_nominal=24), gpu_memory_bytes=size)
    make_machine(name="unknown", gpu=make_gpu(memory_gb_nominal=24), gpu_memory_bytes=None)
    assert Machine.objects.of_memory_class(24).count() == 5
    assert [m.name for m in Machine.objects.with_memory(24 * GIB)] == ["3090"]


def test_lots_move_with_the_free_ones_and_never_below_what_is_rented(machine: Machine) -> None:
    Machine.objects.filter(id=machine.id).update(lots=5, free_lots=2)
    change_lots(machine.id, 4)
    machine.refresh_from_db()
    assert (machine.lots, machine.free_lots) == (4, 1)
    with pytest.raises(LotsUnderRent) as raised:
        change_lots(machine.id, 2)
    assert (raised.value.wanted, raised.value.rented) == (2, 3)
    machine.refresh_from_db()
    assert (machine.lots, machine.free_lots) == (4, 1)
