"""What the seed files must hold, read from the files themselves and from the rows they become."""

import json
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from catalog import seeding
from catalog.models import Gpu, Machine, MemorySource, Option, Provider, Tier
from catalog.units import GB, MIB

# Llama 3.1 8B, 16 bits, 32,768 tokens, one request: what a "24 GB" card read as decimal GB cannot hold.
NEED_AT_32768_TOKENS = 25_500_329_575


@pytest.fixture
def catalog(db: None) -> None:
    seeding.load()


@pytest.mark.usefixtures("catalog")
def test_there_is_enough_to_choose_from() -> None:
    assert Gpu.objects.count() >= 70
    assert Machine.objects.count() >= 150
    assert Option.objects.count() >= 3
    machines = list(Machine.objects.all())
    places = {machine.country for machine in machines} - {None}
    assert len(places) >= 15
    assert {"DE", "FR", "US", "CA", "GB", "NO", "IS", "JP", "SG", "AU", "BR", "IN"} <= places
    assert {machine.tier for machine in machines} == set(Tier.values)
    assert {1, 2, 3, 4, 8} <= {machine.gpu_count for machine in machines}
    assert {machine.memory_source for machine in machines} == {*MemorySource.values, ""}


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("tier", Tier.values)
def test_each_tier_has_a_machine_of_unknown_memory_and_of_unknown_place(tier: str) -> None:
    assert Machine.objects.filter(tier=tier, gpu_memory_bytes=None).exists()
    assert Machine.objects.filter(tier=tier, country=None).exists()


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    "kind",
    [
        {"online": False},
        {"free_lots": 0},
        {"interruptible": True},
        {"max_term_days": 7},
        {"max_term_days": 20},
        {"price_3_days_usd__isnull": False},
        {"lots__gte": 4},
    ],
    ids=str,
)
def test_every_awkward_kind_is_there(kind: dict[str, Any]) -> None:
    assert Machine.objects.listed().filter(**kind).exists()


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("gpu", "three", "week", "month"),
    [("rtx-4090", "47.14", "110.00", "471.43"), ("rtx-6000-ada", "55.71", "130.00", "557.14")],
)
def test_the_two_machines_with_published_packages(gpu: str, three: str, week: str, month: str) -> None:
    machine = Machine.objects.get(gpu__slug=gpu, gpu_count=1, price_7_days_usd=Decimal(week))
    assert machine.package_usd(3) == Decimal(three)
    assert machine.package_usd(30) == Decimal(month)
    assert machine.gpu.memory_gb_nominal == {"rtx-4090": 24, "rtx-6000-ada": 48}[gpu]


@pytest.mark.usefixtures("catalog")
def test_24_gib_measured_and_24_gb_of_a_datasheet_lie_on_both_sides_of_a_need() -> None:
    secure = Machine.objects.filter(tier=Tier.SECURE, gpu_count=1)
    assert secure.filter(memory_source=MemorySource.DATA_CENTER, gpu_memory_bytes=24_576 * MIB).exists()
    measured = secure.filter(gpu__slug="rtx-4090", memory_source=MemorySource.DATA_CENTER).first()
    assert measured is not None
    assert measured.gpu_memory_bytes == 24_564 * MIB == 25_757_220_864
    datasheet = secure.filter(gpu__slug="rtx-4090", memory_source=MemorySource.DATASHEET).first()
    assert datasheet is not None
    assert datasheet.gpu_memory_bytes == 24 * GB
    assert datasheet.gpu_memory_bytes < NEED_AT_32768_TOKENS < measured.gpu_memory_bytes


@pytest.mark.usefixtures("catalog")
def test_invented_providers_say_so_and_no_feed_of_theirs_is_on_the_network() -> None:
    for provider in Provider.objects.all():
        assert provider.invented
        assert "Demo" in provider.name
        assert provider.feed_url == "" or provider.feed_url.startswith("demo:")


@pytest.mark.usefixtures("catalog")
def test_declared_machines_stay_when_every_list_goes_stale() -> None:
    declared = Machine.objects.filter(provider__feed_url="")
    assert declared.count() == Machine.objects.count() > 100
    assert declared.filter(tier=Tier.COMMUNITY).exists()


@pytest.mark.usefixtures("catalog")
def test_figures_of_gpus_are_of_one_device_and_have_sources() -> None:
    for gpu in Gpu.objects.all():
        assert gpu.sources, gpu
    per_device = {gpu.slug: gpu.memory_gb_nominal for gpu in Gpu.objects.filter(devices_per_card__gt=1)}
    assert per_device == {"m60": 8, "a16": 16, "mi250x": 64}
    assert {"rtx-4090", "a100-sxm4-80gb", "mi300x", "gaudi3"} <= set(Gpu.objects.values_list("slug", flat=True))


@pytest.mark.usefixtures("catalog")
def test_an_ambiguous_spelling_belongs_to_several_gpus() -> None:
    holders = Gpu.objects.filter(aliases__name="A100").values_list("memory_gb_nominal", flat=True)
    assert len(holders) > 1


def test_the_files_are_read_by_people_one_object_a_line() -> None:
    for name in seeding.FILES:
        lines = (seeding.SEEDS / name).read_text(encoding="utf-8").splitlines()
        rows = json.loads("\n".join(lines))
        assert len(lines) == len(rows) + 2


def test_prices_are_believable_for_each_gpu() -> None:
    machines = json.loads((seeding.SEEDS / "machines.json").read_text(encoding="utf-8"))
    per_gpu = Counter({row["name"]: Decimal(row["hourly_usd"]) / row["gpu_count"] for row in machines})
    assert Decimal("0.05") <= min(per_gpu.values())
    assert max(per_gpu.values()) <= Decimal("13")
