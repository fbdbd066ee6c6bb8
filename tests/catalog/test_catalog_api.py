"""The catalog over the API: public, in pages without repeats or gaps, strict about what it is asked."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from catalog.units import GIB
from tests.factories import make_gpu, make_machine, make_option, make_provider


def get(path: str) -> Any:
    url = path if path.startswith("/") else f"/api/v1/{path}"
    return Client(raise_request_exception=False).get(url)


def walk(path: str) -> list[Any]:
    rows: list[Any] = []
    while path:
        page = get(path).json()
        rows += page["results"]
        path = (page["next"] or "").removeprefix("http://testserver")
    return rows


@pytest.mark.parametrize("sort", ["price", "-price", "-memory", "name"])
def test_every_page_of_machines_at_equal_prices_holds_new_ones(db: None, sort: str) -> None:
    """B175: 237 rows at one price."""
    gpu, provider = make_gpu(), make_provider()
    for number in range(237):
        memory = None if number % 3 == 0 else 24 * GIB
        make_machine(gpu=gpu, provider=provider, name=f"M{number % 5} {number}", gpu_memory_bytes=memory)
    ids = [row["id"] for row in walk(f"machines?sort={sort}&limit=50")]
    assert len(ids) == len(set(ids)) == 237


def test_a_machine_has_its_facts_and_whether_it_can_be_had(machine: Any) -> None:
    found = get(f"machines/{machine.pk}").json()
    assert found == get("machines").json()["results"][0]
    assert found["prices_usd"] == {"3": None, "7": "110.00", "30": "471.43"}
    assert found["package_hourly_usd"] == {"3": None, "7": "0.6548", "30": "0.6548"}
    assert (found["availability"], found["memory_gib_per_gpu"], found["gpu"]) == ("available", "24.00", "rtx-4090")
    assert found["html_url"] == f"http://testserver/catalog/machines/{machine.pk}/"


def test_filters_are_those_of_the_page(db: None) -> None:
    cheap = make_machine(price_7_days_usd=Decimal("10.00"), country="FR")
    dear = make_machine(price_7_days_usd=Decimal("20.00"), country="US", free_lots=0)
    make_machine(listed=False)

    def ids(query: str) -> list[int]:
        return [row["id"] for row in get(f"machines?{query}").json()["results"]]

    assert ids("") == [cheap.pk, dear.pk]
    assert ids("sort=-price") == [dear.pk, cheap.pk]
    assert ids("available=true") == ids("max_usd=10.00") == ids("countries=EU") == [cheap.pk]
    assert ids("countries=US&countries=FR") == [cheap.pk, dear.pk]
    assert ids("tier=community") == ids("term_days=3") == []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("machines?tier=gold", "tier"),
        ("machines?teir=secure", "teir"),
        ("machines?page=2", "page"),
        ("machines?gpu=%00", "gpu"),
        ("machines?countries=XX", "countries"),
        ("machines?max_usd=NaN", "max_usd"),
        ("machines?limit=1000", "limit"),
        ("machines?cursor=%00", "cursor"),
        ("gpus?limit=x", "limit"),
        ("options?sort=name", "sort"),
    ],
)
def test_a_bad_parameter_is_named(machine: Any, path: str, field: str) -> None:
    response = get(path)
    assert response.status_code == 400
    assert [error["field"] for error in response.json()["errors"]] == [field]


def test_slugs_with_dots_lead_to_one_row(db: None) -> None:
    make_gpu("rtx-6000.ada_48")
    make_option("storage-0.5tb", price_per_lot_day_usd=Decimal("0.033333"))
    make_option("gone", name="Gone", listed=False)
    assert get("gpus/rtx-6000.ada_48").json() == get("gpus").json()["results"][0]
    assert get("options/storage-0.5tb").json()["price_per_lot_day_usd"] == "0.033333"
    assert [row["slug"] for row in get("options").json()["results"]] == ["storage-0.5tb"]
    assert get("options/gone").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["gpus/none", "gpus/a%00b", "gpus/%F0%9F%94%91", "machines/0", f"machines/{10**30}", "machines/x", "gpus/a/b"],
)
def test_what_is_not_there_is_404_in_json(db: None, path: str) -> None:
    response = get(path)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_unlisted_machines_are_nowhere(db: None) -> None:
    hidden = make_machine(listed=False)
    assert get(f"machines/{hidden.pk}").status_code == 404
    assert get("machines").json() == {"results": [], "next": None}


def test_no_number_has_a_point(machine: Any) -> None:
    """B176."""
    make_option()
    for path in ("machines", "gpus", "options"):
        json.loads(get(path).content, parse_float=lambda text: pytest.fail(f"a float: {text}"))
