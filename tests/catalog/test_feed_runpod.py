"""RunPod's GPU types: what of them can be rented, as which tier, where, and for how much."""

import copy
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from catalog import seeding
from catalog.feeds import ADAPTERS, Feed, GpuNames, Unreadable
from catalog.models import Gpu
from tests.catalog.feeds import RUNPOD

NOW = datetime(2026, 11, 30, 4, tzinfo=UTC)
TYPES = {row["id"]: row for row in json.loads(RUNPOD)["data"]["gpuTypes"]}


def read(*rows: dict[str, Any]) -> Feed:
    return ADAPTERS["runpod"].read(json.dumps({"data": {"gpuTypes": rows}}).encode(), now=NOW)


def rtx_4090(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(TYPES["NVIDIA GeForce RTX 4090"]) | changes


def lowest(**changes: Any) -> dict[str, Any]:
    return TYPES["NVIDIA GeForce RTX 4090"]["lowestPrice"] | changes


@pytest.mark.django_db
def test_each_type_is_what_can_be_rented_of_it() -> None:
    seeding.load()
    slugs: dict[int | None, str] = dict(Gpu.objects.values_list("pk", "slug"))
    names = GpuNames.load()
    feed = ADAPTERS["runpod"].read(RUNPOD, now=NOW)
    found = [
        (
            slugs.get(names.find(offer.gpu_name, offer.gpu_memory_bytes)),
            offer.gpu_count,
            offer.tier,
            offer.place,
            (offer.gpu_memory_bytes or 0) // 10**9,
            str(offer.hourly_usd.normalize()),
        )
        for offer in feed.offers
    ]
    assert found == [
        ("rtx-4090", 4, "community", "SE", 24, "1.36"),
        ("rtx-a4000", 1, "community", "BG", 16, "0.17"),
        ("h100-sxm5-80gb", 4, "community", "US", 80, "10.76"),
        ("h200-nvl", 4, "secure", "US", 143, "13.56"),
        (None, 4, "secure", "US", 24, "2.4"),
    ]
    assert [(one.row, one.code) for one in feed.rejections] == [
        (2, "not_in_stock"),
        (3, "not_in_stock"),
        (5, "tier_unknown"),
        (6, "not_in_stock"),
        (10, "not_in_stock"),
        (11, "not_in_stock"),
    ]
    assert feed.seen == len(feed.offers) + len(feed.rejections) == 11


def test_our_own_question_asks_for_each_tier_and_gets_an_offer_of_each() -> None:
    query = json.loads(ADAPTERS["runpod"].request("key").content or b"")["query"]
    assert "secureLowest: lowestPrice" in query
    assert "communityLowest: lowestPrice" in query
    both = {
        "lowestPrice": None,
        "secureLowest": lowest(uninterruptablePrice="0.74", countryCode=None, availableGpuCounts=[1, 2]),
        "communityLowest": lowest(),
    }
    feed = read(rtx_4090(**both, nodeGroupDatacenters=[{"id": "EU-RO-1"}]))
    assert [(offer.tier, offer.place, offer.gpu_count, offer.hourly_usd) for offer in feed.offers] == [
        ("secure", "EU-RO-1", 2, Decimal("1.48")),
        ("community", "SE", 4, Decimal("1.36")),
    ]
    assert len({offer.external_id for offer in feed.offers}) == 2
    several = read(rtx_4090(**both, nodeGroupDatacenters=[{"id": "EU-RO-1"}, {"id": "US-TX-3"}]))
    assert several.offers[0].place is None


def test_one_faulty_tier_does_not_cost_the_other() -> None:
    both = {"secureLowest": lowest(uninterruptablePrice=-1), "communityLowest": lowest(), "lowestPrice": None}
    feed = read(rtx_4090(**both))
    assert [offer.tier for offer in feed.offers] == ["community"]
    assert [(one.row, one.code) for one in feed.rejections] == [(1, "price_negative")]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"lowestPrice": lowest(stockStatus=None)}, "not_in_stock"),
        ({"lowestPrice": lowest(uninterruptablePrice=None)}, "not_in_stock"),
        ({"lowestPrice": lowest(stockStatus="Plenty")}, "stock_invalid"),
        ({"lowestPrice": 0.34}, "stock_invalid"),
        ({"lowestPrice": lowest(uninterruptablePrice=0)}, "price_zero"),
        ({"lowestPrice": lowest(uninterruptablePrice="free")}, "price_not_a_number"),
        ({"lowestPrice": lowest(uninterruptablePrice=0.35)}, "tier_unknown"),
        ({"communityCloud": False}, "tier_unknown"),
        ({"communityPrice": 0}, "tier_unknown"),
        ({"securePrice": 0.34}, "tier_unknown"),
        ({"communityCloud": "yes"}, "flag_invalid"),
        ({"lowestPrice": lowest(availableGpuCounts=[8])}, "not_in_stock"),
        ({"lowestPrice": lowest(availableGpuCounts=[0])}, "gpu_count_invalid"),
        ({"lowestPrice": lowest(availableGpuCounts="1,2")}, "gpu_count_invalid"),
        ({"lowestPrice": None, "communityLowest": lowest(), "communityPrice": None}, "not_sold"),
        ({"id": None}, "id_missing"),
        ({"memoryInGb": -24}, "memory_invalid"),
    ],
    ids=str,
)
def test_what_cannot_be_rented_or_told_is_refused(changes: dict[str, Any], code: str) -> None:
    feed = read(rtx_4090(**changes))
    assert ([one.code for one in feed.rejections], feed.offers) == ([code], [])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"communityCloud": False}, "0.34, the list price of community, but “communityCloud” is false"),
        ({"communityCloud": None}, "“communityCloud” is null: that tier is switched off"),
        ({"securePrice": 0.34}, "the list price of both tiers"),
        ({"lowestPrice": lowest(uninterruptablePrice=0.35)}, "of no tier (secure 0.74, community 0.34)"),
        ({"lowestPrice": None, "communityLowest": lowest(), "communityPrice": 0}, "“communityPrice” is 0: that means"),
        ({"lowestPrice": None, "communityLowest": lowest(), "communityCloud": False}, "“communityCloud” is false"),
        ({"id": ""}, "“id” is blank; give"),
        ({"id": " \u3164"}, "“id” is blank; give"),
        ({"lowestPrice": lowest(uninterruptablePrice="")}, "“uninterruptablePrice” is blank; give an amount"),
        ({"lowestPrice": lowest(stockStatus="")}, "“stockStatus” is blank; known are High"),
    ],
    ids=str,
)
def test_a_refusal_says_what_is_off_or_blank(changes: dict[str, Any], words: str) -> None:
    (rejection,) = read(rtx_4090(**changes)).rejections
    assert words in rejection.detail


def test_an_id_that_is_too_long_together_is_refused_with_its_reason() -> None:
    fits = "x" * (120 - len("NVIDIA GeForce RTX 4090/community//4"))
    feed = read(rtx_4090(lowestPrice=lowest(countryCode=f"{fits}y")), rtx_4090(lowestPrice=lowest(countryCode=fits)))
    assert [len(offer.external_id) for offer in feed.offers] == [120]
    (rejection,) = feed.rejections
    assert (rejection.row, rejection.code, rejection.external_id) == (1, "id_invalid", "NVIDIA GeForce RTX 4090")
    assert "has 121 characters; Berth keeps 120" in rejection.detail


def test_a_type_without_counts_is_one_gpu_and_memory_0_is_unknown() -> None:
    (offer,) = read(rtx_4090(lowestPrice=lowest(availableGpuCounts=None), memoryInGb=0)).offers
    assert (offer.gpu_count, offer.gpu_memory_bytes, offer.hourly_usd) == (1, None, Decimal("0.34"))


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"errors": [{"message": "bad key"}], "data": None}, "error_body", "bad key"),
        ({"data": {}}, "rows_missing", "data.gpuTypes"),
        ({"data": []}, "not_an_object", "data"),
        ({"data": {"gpuTypes": None}}, "rows_not_a_list", "null"),
        ({"gpuTypes": []}, "rows_missing", "data.gpuTypes"),
    ],
    ids=str,
)
def test_a_body_without_types_is_refused_as_a_whole(body: Any, code: str, words: str) -> None:
    with pytest.raises(Unreadable, match=words) as refused:
        ADAPTERS["runpod"].read(json.dumps(body).encode(), now=NOW)
    assert refused.value.code == code
