"""load_catalog: everything is checked first, nothing is written twice, and orders' stock is left alone."""

import json
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from catalog import seeding
from catalog.models import Gpu, GpuAlias, Machine

GPU = {"slug": "g-24", "name": "G 24", "vendor": "NVIDIA", "memory_gb_nominal": 24, "aliases": ["G24"]}
PROVIDER = {"slug": "north", "name": "Demo North", "invented": True}
MACHINE = {
    "provider": "north",
    "name": "G 24 × 1",
    "gpu": "g-24",
    "gpu_count": 1,
    "tier": "secure",
    "country": "DE",
    "memory": "24",
    "memory_unit": "GB",
    "memory_source": "datasheet",
    "hourly_usd": "0.654762",
    "lots": 4,
}
OPTION = {"slug": "storage", "name": "Storage", "price_per_lot_day_usd": "0.50"}


def write(directory: Path, **files: list[dict[str, Any]]) -> Path:
    rows = {"gpus": [GPU], "providers": [PROVIDER], "machines": [MACHINE], "options": [OPTION], **files}
    for name, content in rows.items():
        (directory / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return directory


@pytest.mark.django_db
def test_loading_twice_changes_nothing_the_second_time() -> None:
    call_command("load_catalog", stdout=StringIO())
    before = list(Machine.objects.values().order_by("id"))
    out = StringIO()
    call_command("load_catalog", stdout=out)
    assert list(Machine.objects.values().order_by("id")) == before
    assert "0 created, 0 updated, 195 unchanged" in out.getvalue()


@pytest.mark.django_db
def test_packages_are_filled_in_from_the_hourly_price(tmp_path: Path) -> None:
    seeding.load(write(tmp_path))
    machine = Machine.objects.get()
    assert (machine.price_7_days_usd, machine.price_30_days_usd) == (Decimal("110.00"), Decimal("471.43"))
    assert machine.price_3_days_usd is None
    assert (machine.lots, machine.free_lots) == (4, 4)


@pytest.mark.django_db
def test_a_second_load_updates_what_differs_and_leaves_the_free_lots(tmp_path: Path) -> None:
    seeding.load(write(tmp_path))
    Machine.objects.update(free_lots=1)
    report = seeding.load(write(tmp_path, machines=[{**MACHINE, "country": "FR"}]))
    machine = Machine.objects.get()
    assert (machine.country, machine.lots, machine.free_lots) == ("FR", 4, 1)
    assert report.counts["Machines"]["updated"] == 1


@pytest.mark.django_db
def test_more_lots_are_free_lots_and_lots_under_rent_stay(tmp_path: Path) -> None:
    seeding.load(write(tmp_path))
    Machine.objects.update(free_lots=1)
    seeding.load(write(tmp_path, machines=[{**MACHINE, "lots": 6}]))
    assert Machine.objects.values_list("lots", "free_lots").get() == (6, 3)
    with pytest.raises(seeding.SeedError, match="3 lots are under rent"):
        seeding.load(write(tmp_path, machines=[{**MACHINE, "lots": 2, "country": "FR"}]))
    assert Machine.objects.get().country == "DE"


@pytest.mark.django_db
def test_only_new_leaves_what_staff_made_of_a_row(tmp_path: Path) -> None:
    seeding.load(write(tmp_path))
    Machine.objects.update(price_7_days_usd=Decimal("99.00"))
    Gpu.objects.update(name="Renamed")
    GpuAlias.objects.update(name="Spelled otherwise")
    second = {**MACHINE, "name": "Another"}
    seeding.load(write(tmp_path, machines=[{**MACHINE, "country": "FR"}, second]), only_new=True)
    assert Machine.objects.get(name="G 24 × 1").price_7_days_usd == Decimal("99.00")
    assert Machine.objects.get(name="G 24 × 1").country == "DE"
    assert Machine.objects.filter(name="Another").exists()
    assert Gpu.objects.get().name == "Renamed"
    assert list(GpuAlias.objects.values_list("name", flat=True)) == ["Spelled otherwise"]


WRONG = [
    ({"tier": "gold"}, "tier"),
    ({"country": "XX"}, "country"),
    ({"country": "EU"}, "country"),
    ({"country": ""}, "country"),
    ({"memory": None}, "memory_source"),
    ({"memory_source": ""}, "memory_source"),
    ({"memory_source": "provider_report"}, "memory_source"),
    ({"memory": "0"}, "gpu_memory_bytes"),
    ({"memory": "999999999"}, "gpu_memory_bytes"),
    ({"memory_unit": "G"}, "memory_unit"),
    ({"hourly_usd": "0"}, "hourly_usd"),
    ({"hourly_usd": "-1"}, "hourly_usd"),
    ({"hourly_usd": "NaN"}, "hourly_usd"),
    ({"hourly_usd": "1e400"}, "hourly_usd"),
    ({"hourly_usd": 0.35}, "hourly_usd"),
    ({"hourly_usd": "0.12345678"}, "hourly_usd"),
    ({"price_3_days_usd": "0"}, "price_3_days_usd"),
    ({"price_30_days_usd": "1.005"}, "price_30_days_usd"),
    ({"gpu_count": 0}, "gpu_count"),
    ({"gpu_count": True}, "gpu_count"),
    ({"gpu_count": "1"}, "gpu_count"),
    ({"lots": 0}, "lots"),
    ({"free_lots": 5}, "free_lots"),
    ({"max_term_days": 0}, "max_term_days"),
    ({"name": ""}, "name"),
    ({"name": "a\u0000b"}, "name"),
    ({"gpu": "unknown"}, "gpu"),
    ({"provider": "unknown"}, "provider"),
    ({"colour": "red"}, "colour"),
    ({"tier": "community", "memory_source": "provider_report"}, "lots"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("change", "field"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_row_is_named_by_file_row_and_field_and_nothing_is_written(
    tmp_path: Path, change: dict[str, Any], field: str
) -> None:
    rows = [MACHINE, {**MACHINE, "name": "Second", **change}]
    with pytest.raises(seeding.SeedError) as raised:
        seeding.load(write(tmp_path, machines=rows))
    assert any(problem.startswith(f"machines.json, row 2, {field}: ") for problem in raised.value.problems)
    assert not Gpu.objects.exists()


@pytest.mark.django_db
def test_every_problem_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    write(tmp_path, gpus=[GPU, GPU], machines=[{**MACHINE, "tier": "gold"}], options=[{**OPTION, "max_quantity": 0}])
    with pytest.raises(CommandError) as raised:
        call_command("load_catalog", directory=tmp_path, stdout=StringIO())
    message = str(raised.value)
    assert "Nothing was loaded." in message
    assert "gpus.json, row 2, slug: the same as in row 1." in message
    assert "machines.json, row 1, tier" in message
    assert "options.json, row 1, max_quantity" in message


@pytest.mark.django_db
@pytest.mark.parametrize("content", ["", "{", "{}", "[1]", "[" * 100_000])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: str) -> None:
    write(tmp_path)
    (tmp_path / "options.json").write_text(content, encoding="utf-8")
    with pytest.raises(seeding.SeedError, match=r"options\.json: "):
        seeding.load(tmp_path)


@pytest.mark.django_db
def test_a_name_that_staff_gave_to_another_row_is_told_not_raised(tmp_path: Path) -> None:
    Gpu.objects.create(slug="other", name="G 24", vendor="NVIDIA")
    with pytest.raises(seeding.SeedError, match="stands in the way"):
        seeding.load(write(tmp_path))
    assert not Machine.objects.exists()


@pytest.mark.django_db
def test_what_a_load_changed_is_in_the_history(tmp_path: Path) -> None:
    seeding.load(write(tmp_path))
    seeding.load(write(tmp_path, machines=[{**MACHINE, "country": "FR"}]))
    assert list(Machine.history.values_list("country", flat=True)) == ["FR", "DE"]
