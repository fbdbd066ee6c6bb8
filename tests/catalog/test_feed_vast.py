"""Vast.ai's bundles: what each row becomes, and what bodies that are none end as."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from catalog import seeding
from catalog.feeds import ADAPTERS, Feed, GpuNames, Places, Unreadable, memory_of
from catalog.feeds.vast import MOST_ASKED
from catalog.models import Gpu
from tests.catalog.feeds import VAST

NOW = datetime(2026, 11, 30, 4, tzinfo=UTC)
MIB = 2**20


def read(body: bytes | list[dict[str, Any]], now: datetime = NOW) -> Feed:
    if isinstance(body, list):
        body = json.dumps({"offers": body}).encode()
    return ADAPTERS["vast"].read(body, now=now)


def row(**changes: Any) -> dict[str, Any]:
    plain = {
        "id": 1,
        "machine_id": 7,
        "hosting_type": 0,
        "gpu_name": "RTX 4090",
        "num_gpus": 1,
        "gpu_frac": 1.0,
        "gpu_ids": [70],
        "gpu_ram": 24564,
        "dph_total": 0.4,
        "is_bid": False,
        "rentable": True,
        "rented": False,
        "geolocation": "Sweden, SE",
    }
    return {**plain, **changes}


# id: GPUs, slug of the GPU or None, MiB per GPU, tier, country, USD per hour, rentable now
LISTED = {
    "101": (1, "rtx-4090", 24564, "community", "SE", "0.403333", True),
    "102": (8, "h100-sxm5-80gb", 81559, "secure", "US", "17.066667", True),
    "105": (4, "rtx-3090", 24576, "community", "CA", "0.64", True),
    "106": (2, "rtx-a5000", None, "community", "FR", "0.46", True),
    "107": (4, "b200", 183359, "secure", "US", "18.818667", True),
    "108": (1, "a100-sxm4-80gb", 81920, "community", None, "0.9", True),
    "109": (1, "a100-pcie-40gb", 40960, "community", None, "0.62", True),
    "110": (2, "l40s", 46068, "community", None, "1.2", True),
    "111": (1, "rtx-3080-10gb", 10240, "community", "NO", "0.12", True),
    "112": (1, "rtx-3060-12gb", 12288, "community", "US", "0.07", True),
    "113": (2, "rtx-5090", 32607, "community", "IS", "0.933333", True),
    "114": (1, "rtx-5090", 32607, "community", "HU", "0.48", True),
    "115": (1, "rtx-4060-ti-16gb", 16380, "community", "GB", "0.13", True),
    "116": (4, None, 24576, "community", "AT", "0.234567", True),
    "117": (2, "rtx-4070-ti-super", 16376, "community", "RE", "0.36", True),
    "118": (6, "rtx-2080-ti", 11264, "community", "XK", "0.42", True),
    "119": (1, "rtx-4090", 49140, "community", "HK", "0.4", True),
    "120": (2, "rtx-4090", 24564, "community", "FI", "0.8", False),
    "121": (1, "rtx-3070", 8192, "community", "CN", "0.05", True),
    "125": (2, "rtx-pro-6000-blackwell-ws", 97887, "community", "SE", "2.6", True),
    "127": (1, None, 98304, "community", "CN", "1.9", True),
    "128": (8, "mi300x", 196592, "secure", "US", "15.2", True),
    "129": (1, "a40", 46068, "community", "BE", "0.4", False),
    "130": (4, "h200-sxm", 143771, "secure", "IT", "11.3", True),
    "131": (2, "h100-nvl", 95830, "community", "AU", "4.533333", True),
}
REFUSED = {"122": "price_zero", "123": "price_too_high", "124": "price_too_low", "126": "gpu_name_missing"}
MERGED = [(3, "103", "overlap", "105"), (4, "104", "overlap", "105"), (6, "103", "duplicate", "103")]


@pytest.mark.django_db
def test_each_row_of_the_sample_is_what_its_fields_say() -> None:
    seeding.load()
    slugs: dict[int | None, str] = dict(Gpu.objects.values_list("pk", "slug"))
    names, places = GpuNames.load(), Places.load()
    found = {
        offer.external_id: (
            offer.gpu_count,
            slugs.get(names.find(offer.gpu_name, offer.gpu_memory_bytes)),
            offer.gpu_memory_bytes and offer.gpu_memory_bytes // MIB,
            offer.tier,
            places.find(offer.place).country,
            str(offer.hourly_usd.normalize()),
            offer.rentable,
        )
        for offer in read(VAST).offers
    }
    assert found == LISTED


def test_each_refused_row_has_its_reason_and_each_merged_one_what_stands_for_it() -> None:
    feed = read(VAST)
    assert {one.external_id: one.code for one in feed.rejections} == REFUSED
    assert [(one.row, one.external_id, one.code, one.kept) for one in feed.merged] == MERGED
    assert feed.seen == len(feed.offers) + len(feed.rejections) + len(feed.merged) == 32


def test_only_the_bid_offer_can_be_interrupted_and_an_end_in_81_days_shortens_no_term() -> None:
    feed = read(VAST)
    assert [offer.external_id for offer in feed.offers if offer.interruptible] == ["130"]
    assert {offer.max_term_days for offer in feed.offers} == {None}


def test_no_address_of_a_host_is_kept() -> None:
    feed = read([*json.loads(VAST)["offers"], row(id=999, geolocation="203.0.113.77", machine_id=999)])
    assert "203.0.113" not in repr(feed)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"offers": null}', "rows_not_a_list"),
        (b'{"offers": {"id": 5, "gpu_name": "RTX 4090"}}', "rows_not_a_list"),
        (b'{"offers": "none"}', "rows_not_a_list"),
        (b'{"error": "invalid_request", "msg": "no such key"}', "error_body"),
        (b'{"success": false, "msg": "Unauthorized"}', "error_body"),
        (b"{}", "rows_missing"),
        (b"<html><body>502 Bad Gateway</body></html>", "html"),
        (b'{"offers": [{"id": 4, "gpu_name": "RTX 40', "cut_off"),
        (b'{"offers": [{"id": 4}', "cut_off"),
        (b'{"offers": [{"id": 4}]', "cut_off"),
        (b"", "empty_body"),
        (b" \n ", "empty_body"),
        (b"null", "not_an_object"),
        (b"[]", "not_an_object"),
        (b'{"offers": []} {}', "not_json"),
        (b'{"offers": [{"id": 4} {"id": 5}]}', "not_json"),
        (b"{'offers': []}", "not_json"),
        (b'{"offers": [{"id": 1}], "offers": []}', "repeated_key"),
        ('{"offers": []}'.encode("utf-16"), "not_utf8"),
        (b'{"offers": [{"id": ' + b"[" * 100_000, "too_deep"),
        (b'{"offers": [{"id": "' + b"a" * 2**21 + b'"}]}', "value_too_large"),
        (b'{"offers": [' + b"1," * 200_000 + b"1]}", "too_many_rows"),
        (b'{"offers": [], ' + b'"a": 1, ' * 1_000 + b'"b": 1}', "not_a_feed"),
        (b" " * (64 * 2**20 + 1), "too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_body_that_is_no_list_is_refused_as_a_whole(line: bytes, code: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(line)
    assert refused.value.code == code
    assert refused.value.detail.endswith((".", "?"))
    assert len(refused.value.detail) < 300


def test_an_empty_list_is_read_and_empty() -> None:
    assert read(b'{"offers": []}') == Feed(seen=0, offers=[], rejections=[])
    assert read(b'\xef\xbb\xbf {"offers" : [ ] , "more": null}\n').seen == 0


def test_rows_that_are_no_offers_are_refused_one_by_one() -> None:
    feed = read(b'{"offers": [null, 7, "x", {}]}')
    assert [(one.row, one.code) for one in feed.rejections] == [
        (1, "row_not_an_object"),
        (2, "row_not_an_object"),
        (3, "row_not_an_object"),
        (4, "id_missing"),
    ]


# What is written in place of the value, and the code; 1 of 1,000 rows has it.
FAULTS: list[tuple[str, str, str]] = [
    ("id", "0", "id_invalid"),
    ("id", "-4", "id_invalid"),
    ("id", "1.5", "id_invalid"),
    ("id", "true", "id_invalid"),
    ("id", '"' + "9" * 65 + '"', "id_invalid"),
    ("id", "null", "id_missing"),
    ("machine_id", "null", "host_missing"),
    ("machine_id", "[1]", "host_invalid"),
    ("gpu_name", "null", "gpu_name_missing"),
    ("gpu_name", '" \\u0000\\u202e "', "gpu_name_invalid"),
    ("gpu_name", "4090", "gpu_name_invalid"),
    ("num_gpus", "0", "gpu_count_invalid"),
    ("num_gpus", "17", "gpu_count_invalid"),
    ("num_gpus", "1.5", "gpu_count_invalid"),
    ("num_gpus", '"8"', "gpu_count_invalid"),
    ("num_gpus", "null", "gpu_count_missing"),
    ("gpu_ram", "-1", "memory_invalid"),
    ("gpu_ram", "24564000000", "memory_invalid"),
    ("gpu_ram", '"24 GB"', "memory_invalid"),
    ("gpu_ram", "NaN", "memory_invalid"),
    ("dph_total", "null", "price_missing"),
    ("dph_total", "0", "price_zero"),
    ("dph_total", "-0.4", "price_negative"),
    ("dph_total", "NaN", "price_not_a_number"),
    ("dph_total", "-Infinity", "price_not_a_number"),
    ("dph_total", "1e400", "price_not_a_number"),
    ("dph_total", '"N/A"', "price_not_a_number"),
    ("dph_total", '"NaN"', "price_not_a_number"),
    ("dph_total", '"1_000"', "price_not_a_number"),
    ("dph_total", "true", "price_not_a_number"),
    ("dph_total", "9" * 5_000, "price_not_a_number"),
    ("dph_total", "1e9", "price_too_high"),
    ("dph_total", "100.01", "price_too_high"),
    ("dph_total", "0.00009", "price_too_low"),
    ("rentable", '"yes"', "flag_invalid"),
    ("is_bid", "1", "flag_invalid"),
    ("hosting_type", "2", "tier_unknown"),
    ("hosting_type", "true", "tier_unknown"),
    ("geolocation", "{}", "place_invalid"),
    ("end_date", "1e20", "time_invalid"),
    ("end_date", '"soon"', "time_invalid"),
    ("duration", "Infinity", "time_invalid"),
]


@pytest.mark.parametrize(("field", "written", "code"), FAULTS, ids=[f"{one[0]}-{one[1][:12]}" for one in FAULTS])
def test_one_faulty_row_of_a_thousand_costs_itself_alone(field: str, written: str, code: str) -> None:
    rows = [json.dumps(row(id=at, machine_id=at)) for at in range(1, 1_001)]
    mark = json.dumps({field: row(id=600, machine_id=600)[field]})[1:-1] if field in row() else None
    rows[599] = (
        rows[599].replace(mark, f'"{field}": {written}') if mark else f'{rows[599][:-1]}, "{field}": {written}}}'
    )
    feed = read(('{"offers": [' + ", ".join(rows) + "]}").encode())
    assert (feed.seen, len(feed.offers)) == (1_000, 999)
    (refused,) = feed.rejections
    assert (refused.row, refused.code) == (600, code)
    assert f"“{field}”" in refused.detail
    assert len(refused.detail) <= 500


def test_figures_that_nobody_reads_may_be_nonsense() -> None:
    body = json.dumps({"offers": [row()]})[:-3] + ', "dlperf": NaN, "score": -Infinity, "x": 1e999, "y": "\\ud800"}]}'
    assert len(read(body.encode()).offers) == 1
    assert len(read(body.encode().replace(b"\\ud800", b"\xff")).offers) == 1


def test_a_key_given_twice_counts_only_when_both_say_the_same() -> None:
    plain = json.dumps(row())
    same, other = plain[:-1] + ', "dph_total": 0.4}', plain[:-1] + ', "dph_total": 0.1}'
    hidden, unread = plain[:-1] + ', "dph_tota\\u006c": 0.1}', plain[:-1] + ', "score": 1, "score": 2}'
    feed = read(f'{{"offers": [{same}]}}'.encode())
    assert [offer.hourly_usd for offer in feed.offers] == [Decimal("0.4")]
    for body in (other, hidden):
        feed = read(f'{{"offers": [{body}]}}'.encode())
        assert [(one.code, "dph_total" in one.detail) for one in feed.rejections] == [("repeated_key", True)]
    assert len(read(f'{{"offers": [{unread}]}}'.encode()).offers) == 1


@pytest.mark.parametrize(
    ("rentable", "rented", "sold"),
    [
        (True, False, True),
        (True, True, False),
        (False, False, False),
        (False, True, False),
        (None, False, False),
        (True, None, True),
    ],
)
def test_an_offer_can_be_rented_when_it_is_said_so_and_nobody_has_it(
    rentable: bool | None, rented: bool | None, sold: bool
) -> None:
    (offer,) = read([row(rentable=rentable, rented=rented)]).offers
    assert offer.rentable is sold


@pytest.mark.parametrize(
    ("left", "cap", "rentable"),
    [
        (timedelta(days=-1), None, False),
        (timedelta(hours=23), None, False),
        (timedelta(days=1), None, False),
        (timedelta(days=1, minutes=5), 1, True),
        (timedelta(days=7), 6, True),
        (timedelta(days=7, minutes=5), 7, True),
        (timedelta(days=30, minutes=4), 29, True),
        (timedelta(days=30, minutes=5), None, True),
        (timedelta(days=3_650), None, True),
    ],
)
def test_an_end_caps_the_term_at_its_whole_days(left: timedelta, cap: int | None, rentable: bool) -> None:
    for stated in (
        {"end_date": (NOW + left).timestamp()},
        {"end_date": None, "duration": left.total_seconds()},
        {"end_date": (NOW + left).timestamp(), "duration": left.total_seconds() + 5e6},
        {"end_date": (NOW + left).timestamp() + 5e6, "duration": left.total_seconds()},
    ):
        (offer,) = read([row(**stated)]).offers
        assert (offer.max_term_days, offer.rentable) == (cap, rentable)


def test_the_total_memory_stands_in_for_the_figure_per_gpu_and_0_is_unknown() -> None:
    rows = [
        row(gpu_ram=None, num_gpus=2, gpu_total_ram=2 * 24564),
        row(id=2, machine_id=2, gpu_ram=0, gpu_total_ram=0),
        row(id=3, machine_id=3, gpu_ram=24564, gpu_total_ram=1),
    ]
    assert [offer.gpu_memory_bytes for offer in read(rows[:2]).offers] == [24564 * MIB, None]
    assert read(rows[2:]).offers[0].gpu_memory_bytes == 24564 * MIB


@pytest.mark.parametrize(
    ("fraction", "count", "gpus"),
    [(0.25, 1, 4), (0.333, 1, 3), (0.667, 2, 3), (1, 8, 8), (0.75, 4, 5), (0, 1, None), ("0.5", 1, None), (2, 1, None)],
)
def test_the_fraction_tells_how_many_gpus_the_machine_has_and_never_too_many(
    fraction: object, count: int, gpus: int | None
) -> None:
    (offer,) = read([row(gpu_frac=fraction, num_gpus=count, gpu_ids=None)]).offers
    assert offer.host_gpus == gpus


def test_memory_is_a_report_for_community_and_a_datasheet_for_secure_never_a_measurement() -> None:
    (own,) = read([row(gpu_ram=49140)]).offers
    assert memory_of(own, 24) == (49140 * MIB, "MiB", "provider_report")
    (center,) = read([row(hosting_type=1, gpu_ram=81559, gpu_name="H100 SXM")]).offers
    assert memory_of(center, 80) == (80 * 10**9, "GB", "datasheet")
    (smaller,) = read([row(hosting_type=1, gpu_ram=20000)]).offers
    assert memory_of(smaller, 24) == (20000 * MIB, "MiB", "datasheet")
    assert memory_of(center, None) == (None, "bytes", "")
    (silent,) = read([row(gpu_ram=None)]).offers
    assert memory_of(silent, 24) == (None, "bytes", "")


def test_an_answer_as_long_as_was_asked_for_may_have_been_cut() -> None:
    question = json.loads(ADAPTERS["vast"].request("key").content or b"")
    assert question["limit"] == MOST_ASKED
    lines = ",".join(["{}"] * MOST_ASKED)
    assert read(f'{{"offers": [{lines}]}}'.encode()).truncated
    assert not read(f'{{"offers": [{lines}, {{}}]}}'.encode()).truncated
    assert not read(VAST).truncated


def test_the_question_carries_the_secret_in_its_header_alone() -> None:
    question = ADAPTERS["vast"].request("s3cret")
    assert question.headers["Authorization"] == "Bearer s3cret"
    assert b"s3cret" not in (question.content or b"")
    assert "Authorization" not in ADAPTERS["vast"].request("").headers
