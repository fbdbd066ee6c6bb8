"""Berth's own format, and the page that describes it and all formats."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from catalog import querysets
from catalog.feeds import ADAPTERS, Feed, berth_format, offers, runpod, vast
from catalog.feeds.json_rows import WINDOWS_BYTES
from catalog.feeds.offers import Offer
from catalog.models import Machine
from catalog.pricing import TERMS_DAYS

ROOT = Path(berth_format.__file__).parent
PAGE = (ROOT.parent.parent / "docs" / "feeds.md").read_text(encoding="utf-8")
NOW = datetime(2026, 11, 30, 4, tzinfo=UTC)


def read(*rows: dict[str, Any], now: datetime = NOW) -> Feed:
    return ADAPTERS["berth"].read(json.dumps({"offers": rows}).encode(), now=now)


def row(**changes: Any) -> dict[str, Any]:
    plain = {"id": "a", "gpu": "RTX 4090", "gpu_count": 1, "tier": "community", "hourly_usd": "0.40"}
    return {**plain, **changes}


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}")[1].split("\n## ")[0]


def test_the_example_of_the_page_is_two_offers() -> None:
    example = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert example
    feed = ADAPTERS["berth"].read(example[1].encode(), now=NOW)
    assert (feed.seen, feed.rejections, feed.merged) == (2, [], [])
    assert feed.offers == [
        Offer(
            row=1,
            external_id="fra-4090-01",
            name="RTX 4090 × 2, Frankfurt",
            gpu_name="RTX 4090",
            gpu_count=2,
            gpu_memory_bytes=24564 * 2**20,
            memory_unit="MiB",
            tier="community",
            place="Frankfurt, DE",
            hourly_usd=Decimal("0.800000"),
            ends_at=datetime(2027, 1, 31, 12, tzinfo=UTC),
            host="fra-01",
            host_gpus=4,
            gpu_ids=frozenset({"fra-01-0", "fra-01-1"}),
        ),
        Offer(
            row=2,
            external_id="osl-h100",
            name="H100 SXM × 8, offer osl-h100",
            gpu_name="H100 SXM",
            gpu_count=8,
            gpu_memory_bytes=80 * 10**9,
            memory_unit="GB",
            tier="secure",
            place="NO",
            hourly_usd=Decimal("17.200000"),
            price_3_days_usd=Decimal("1238.40"),
            price_7_days_usd=Decimal("2750.00"),
            price_30_days_usd=Decimal("11000.00"),
            lots=4,
            free_lots=3,
        ),
    ]


def test_the_page_has_every_field_and_no_other() -> None:
    listed = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section("The Berth format"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(listed))) == set(berth_format.Row.__struct_fields__)


@pytest.mark.parametrize(("title", "row_type"), [("Vast.ai bundles", vast.Row), ("RunPod GPU types", runpod.Row)])
def test_the_page_says_how_each_field_that_is_read_is_understood(title: str, row_type: Any) -> None:
    switches = {"secureCloud", "communityCloud", "securePrice", "communityPrice", "nodeGroupDatacenters"}
    limits = {"maxGpuCountSecureCloud", "maxGpuCountCommunityCloud", "minPodGpuCount"}
    named = set(re.findall(r"`(\w+)`", section(title)))
    assert set(row_type.__struct_fields__) - named <= switches | limits


def test_the_page_has_every_code_and_no_other() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("*.py") if path.name != "demo.py")
    given = set(re.findall(r'(?:Fault|Unreadable)\(\s*"(\w+)"', source)) | {"id_conflict"}
    for prefix in ("id", "host", "gpu_name", "gpu_ids", "name"):
        assert f', "{prefix}")' in source or f', "{prefix}", ' in source
        given |= {f"{prefix}_missing", f"{prefix}_invalid"}
    listed = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section("Why a row"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(listed))) == given


def test_the_page_has_the_limits() -> None:
    rules = section("What holds for every format")
    for figure in (offers.MOST_BYTES, offers.MOST_ROWS, WINDOWS_BYTES[-1]):
        assert f"{figure:,}" in rules
    for price in (offers.LEAST_USD_PER_GPU_HOUR, offers.MOST_USD_PER_GPU_HOUR):
        assert f"{price} USD" in rules
    assert f"{vast.MOST_ASKED:,}" in section("Vast.ai bundles")
    assert f"within {offers.LONGEST_TERM_DAYS} days" in rules
    assert max(TERMS_DAYS) == offers.LONGEST_TERM_DAYS
    assert querysets.FRESH_FOR == offers.ORDER_SLACK
    assert Machine._meta.get_field("name").max_length == offers.LONGEST_NAME


def test_what_is_not_given_is_what_the_page_says() -> None:
    (offer,) = read(row()).offers
    assert (offer.gpu_memory_bytes, offer.place, offer.lots, offer.free_lots) == (None, None, 1, None)
    assert (offer.rentable, offer.interruptible, offer.max_term_days) == (True, False, None)
    assert (offer.price_3_days_usd, offer.price_7_days_usd, offer.price_30_days_usd) == (None, None, None)


@pytest.mark.parametrize(
    ("field", "value", "size"),
    [
        ("gpu_memory_bytes", 25757220864, 25757220864),
        ("gpu_memory_mib", 24564, 25757220864),
        ("gpu_memory_gib", 23.5, 25232932864),
        ("gpu_memory_gb", 24, 24_000_000_000),
        ("gpu_memory_gb", 0, None),
        ("gpu_memory_gb", None, None),
    ],
)
def test_memory_is_counted_in_the_unit_of_its_field(field: str, value: Any, size: int | None) -> None:
    (offer,) = read(row(**{field: value})).offers
    assert offer.gpu_memory_bytes == size


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"gpu_memry_gb": 24}, "unknown_field", "Did you mean gpu_memory_gb?"),
        ({"zzz": 24}, "unknown_field", "Known are available_until, free_lots, "),
        ({"gpu_memory_gb": 24, "gpu_memory_gib": 24}, "memory_invalid", "give it once"),
        ({"gpu_memory_gb": "24"}, "memory_invalid", "“24”"),
        ({"gpu_memory_bytes": 24}, "memory_invalid", "256 MiB"),
        ({"hourly_usd": 0.4}, "price_not_text", "in quotes"),
        ({"hourly_usd": "0"}, "price_zero", "never free"),
        ({"hourly_usd": "0,40"}, "price_not_a_number", "0,40"),
        ({"hourly_usd": None}, "price_missing", "hourly_usd"),
        ({"price_7_days_usd": "6.72"}, "package_price_invalid", "67.20"),
        ({"price_7_days_usd": "1e29"}, "package_price_invalid", "67.20"),
        ({"price_30_days_usd": "100.001"}, "package_price_invalid", "two decimals"),
        ({"price_3_days_usd": 20}, "price_not_text", "price_3_days_usd"),
        ({"tier": "verified"}, "tier_unknown", "community"),
        ({"tier": None}, "tier_unknown", "null"),
        ({"lots": 2}, "lots_invalid", "community"),
        ({"tier": "secure", "lots": 0}, "lots_invalid", "from 1"),
        ({"tier": "secure", "lots": 2, "free_lots": 3}, "lots_invalid", "more than"),
        ({"tier": "secure", "lots": 2, "host": "h"}, "host_invalid", "lots"),
        ({"gpu_ids": ["x"]}, "host_missing", "host"),
        ({"host": "h", "gpu_ids": ["x", "y"]}, "gpu_ids_invalid", "each of the 1"),
        ({"host": "h", "gpu_ids": "x"}, "gpu_ids_invalid", "each of the 1"),
        ({"host": "h", "gpu_ids": [None]}, "gpu_ids_missing", "gpu_ids"),
        ({"host": "h", "host_gpu_count": 0}, "lots_invalid", "host_gpu_count"),
        ({"name": 7}, "name_invalid", "name"),
        ({"id": " a"}, "id_invalid", "64 characters"),
        ({"available_until": "2026-12-31"}, "time_invalid", "T12:00:00Z"),
        ({"available_until": "2026-12-31T00:00:00"}, "time_invalid", "T12:00:00Z"),
        ({"available_until": "9999-12-31T23:59:59-14:00"}, "time_invalid", "9999"),
        ({"available_until": 1796000000}, "time_invalid", "1796000000"),
        ({"rentable": "false"}, "flag_invalid", "true or false"),
        ({"place": ["DE"]}, "place_invalid", "a list"),
    ],
    ids=str,
)
def test_a_fault_names_its_field_and_the_way_out(changes: dict[str, Any], code: str, words: str) -> None:
    feed = read(row(id="good"), row(**changes))
    assert [offer.external_id for offer in feed.offers] == ["good"]
    (refused,) = feed.rejections
    assert (refused.row, refused.code) == (2, code)
    assert words in refused.detail


def test_texts_are_clean_before_they_are_kept() -> None:
    nasty = "RTX\u202e 4090\x00\r\n <script>x</script>\u200b" + "y" * 500
    (offer,) = read(row(gpu=nasty, name=nasty, place="Berlin\x07 10.0.0.1, DE")).offers
    assert offer.gpu_name.startswith("RTX 4090 <script>x</script>y")
    assert offer.name == offer.gpu_name
    assert len(offer.gpu_name) == 120
    assert offer.place == "Berlin , DE"


def test_slices_of_a_host_are_sold_once() -> None:
    slices = [row(id="1", host="h", gpu_ids=[0]), row(id="2", host="h", gpu_ids=["0", "1"], gpu_count=2)]
    feed = read(*slices)
    assert [offer.external_id for offer in feed.offers] == ["2"]
    assert feed.seen == len(feed.offers) + len(feed.merged) == 2


def test_fields_beside_the_offers_are_the_sender_s_own() -> None:
    body = {"generated_at": "2026-11-30T04:00:00Z", "offers": [row()], "page": {"of": 1}}
    assert len(ADAPTERS["berth"].read(json.dumps(body).encode(), now=NOW).offers) == 1
