"""Texts of strangers: no addresses are kept, and a name is something that can be seen."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from catalog.feeds import ADAPTERS, Feed
from catalog.feeds.texts import clean, shown, without_addresses
from catalog.visible import has_something_to_see, name_to_see
from tests.catalog.feeding import body, row

NOW = datetime(2026, 11, 30, 4, tzinfo=UTC)

# As figures alone they are no place; but fine names of offers.
IN_FIGURES = [
    "3405803785",
    "3405803785:22",
    "16843009",
    "203-0-113-9",
    "203_0_113_9",
    "203:0:113:9",
    "203/0/113/9",
]

ADDRESSES = [
    "203.0.113.9",
    "203.0.113.9.",
    "[203.0.113.9]",
    "(203.0.113.9)",
    "203.0.113.9:8080",
    "203.0.113.9/24",
    "203 . 0 . 113 . 9",
    "２０３．０．１１３．９",
    "203。0。113。9",
    "203[.]0[.]113[.]9",
    "203(.)0(.)113(.)9",
    "203 dot 0 dot 113 dot 9",
    "203[dot]0[dot]113[dot]9",
    "203%2E0%2E113%2e9",
    "203·0·113·9",
    "203•0•113•9",
    "203۔0۔113۔9",
    "2\u03010\u03013\u0301.0\u0301.113.9",
    "2\ufe0f\u20e30\ufe0f\u20e33\ufe0f\u20e3.0.113.9",
    "ip-203-0-113-9",
    "0313.0000.0161.0011",
    "0xCB.0x0.0x71.0x9",
    "http://203.0.113.9/",
    "root@203.0.113.9",
    "ec2-203-0-113-9.compute.example.com",
    "0xcb007109",
    "2001:db8::1",
    "2001:db8::1.",
    "[2001:db8::1]:443",
    "fe80::1%eth0",
    "[fe80::1%25eth0]",
    "::1",
    "::ffff:203.0.113.9",
    "2001:0db8:0000:0000:0000:0000:0000:0001",
    "IPv6:2001:db8::1",
    "xn--e1afmkfd.example",
    "https://feed.example/?key=sesame",
    "somebody@example.com",
]

SEEN_AS_NOTHING = [
    "",
    "   ",
    "\u3164",
    "\u2800\u2800",
    "\u115f\u1160",
    "\uffa0",
    "\u200b\u200c\u200d\u2060\ufeff",
    "\u0301\u0302",
    "\u202e\u202d",
    "\u2066\u2069",
    "\u034f\ufe0f\U000e0100",
    "\u00ad\u180e\u3000",
    "\U0001d159",
    "\U000e0041\U000e007f",
    "\ue000",
]


def read(**fields: Any) -> Feed:
    return ADAPTERS["berth"].read(body([row(1, **fields)]), now=NOW)


@pytest.mark.parametrize("address", [*ADDRESSES, *IN_FIGURES])
def test_an_address_is_kept_in_no_text(address: str) -> None:
    assert without_addresses(f"Berlin {address}, DE").replace(" ", "") == "Berlin,DE"
    assert shown(address) in ("“(address)”", "“(address):22”")
    (offer,) = read(place=f"Berlin {address}, DE", name=f"Rack 7 {address}", gpu=f"RTX 4090 {address}").offers
    assert (offer.name, offer.gpu_name) == ("Rack 7", "RTX 4090")
    assert offer.place is not None
    assert offer.place.replace(" ", "") == "Berlin,DE"
    vast = {"id": 1, "machine_id": 2, "gpu_name": "RTX 4090", "num_gpus": 1, "dph_total": 0.4, "geolocation": address}
    assert ADAPTERS["vast"].read(json.dumps({"offers": [vast]}).encode(), now=NOW).offers[0].place is None


@pytest.mark.parametrize(
    "address", [*ADDRESSES, "node-203.0.113.9", "gpu-2001:db8::1", "2001:db8::1-gpu", "2001:db8::1/64"]
)
@pytest.mark.parametrize("field", ["id", "host", "gpu_ids", "gpu", "name"])
def test_what_is_only_an_address_is_no_name_and_is_not_repeated(field: str, address: str) -> None:
    fields: dict[str, Any] = {field: [address] if field == "gpu_ids" else address}
    if field == "gpu_ids":
        fields["host"] = "one"
    feed = read(**fields)
    assert not feed.offers
    (rejection,) = feed.rejections
    assert rejection.code.endswith("_invalid")
    assert "203.0.113.9" not in f"{rejection.detail} {rejection.external_id}"
    assert "::1" not in f"{rejection.detail} {rejection.external_id}"


@pytest.mark.parametrize("name", [*IN_FIGURES, "23456789:1", "0:1:0:0", "GPU-8f3a2b1c-0d1e-2f3a", "a.b-c_d", "x 4"])
def test_figures_are_fine_names_of_offers_hosts_and_gpus(name: str) -> None:
    (offer,) = read(id=name, host=name, gpu_ids=[name]).offers
    assert (offer.external_id, offer.host, offer.gpu_ids) == (name, name, {name})


@pytest.mark.parametrize("hidden", ["\u3164", "\u115f", "\ufe0f", "\u034f", "\u2800", "\u200b", "\u202e"], ids=ascii)
@pytest.mark.parametrize("field", ["id", "host"])
def test_a_name_that_hides_something_is_another_to_berth_and_the_same_to_people_so_it_is_refused(
    field: str, hidden: str
) -> None:
    feed = read(**{field: f"offer{hidden}7"})
    assert [one.code for one in feed.rejections] == [f"{field}_invalid"]


@pytest.mark.parametrize(
    "text",
    [
        "RTX 4090 × 2, Frankfurt",
        "Driver 570.124.06",
        "St.-Petersburg, RU",
        "Washington D.C.",
        "CUDA 12.8",
        "16:9",
        "9999-12-31T23:59:59-14:00",
        "Zone: A",
        "rack-1-2-3-4",
        "Unit 1234567",
        "node1.fra.example",
        "東京、JP",
        "Ⅻ ﬁne",
        "2026-11-30",
    ],
)
def test_what_is_no_address_stays_as_it_is_written(text: str) -> None:
    assert without_addresses(text) == text


def test_the_bus_address_of_a_gpu_is_its_name() -> None:
    assert read(host="one", gpu_ids=["0000:01:00.0"]).offers[0].gpu_ids == {"0000:01:00.0"}


@pytest.mark.parametrize("text", SEEN_AS_NOTHING, ids=ascii)
def test_what_shows_nothing_is_no_name_anywhere(text: str) -> None:
    assert not has_something_to_see(text)
    assert clean(text, 100) == ""
    with pytest.raises(ValidationError):
        name_to_see(text)
    for field in ("id", "gpu", "name", "host"):
        assert [one.code for one in read(**{field: text}).rejections] == [
            {"gpu": "gpu_name_invalid"}.get(field, f"{field}_invalid")
        ]
    assert read(place=text).offers[0].place is None
    for adapter, rows in (
        ("vast", {"offers": [{"id": 1, "machine_id": 2, "dph_total": 1, "gpu_name": text, "num_gpus": 1}]}),
        (
            "runpod",
            {"data": {"gpuTypes": [{"id": text, "lowestPrice": {"stockStatus": "Low", "uninterruptablePrice": 1}}]}},
        ),
    ):
        feed = ADAPTERS[adapter].read(json.dumps(rows).encode(), now=NOW)
        assert (len(feed.offers), len(feed.rejections)) == (0, 1)


@pytest.mark.parametrize("text", ["RTX 4090", "東京", "Ä", "...", "❤", "नमस्ते", "Z\u0301"])
def test_what_can_be_seen_is_a_name(text: str) -> None:
    assert has_something_to_see(text)
    name_to_see(text)


@pytest.mark.parametrize("text", ["RTX\u202e4090", "A\u200bB", "RTX\u31644090", "a\nb", "a\u3000b", "A\u2800"])
def test_a_form_refuses_what_hides_in_a_name(text: str) -> None:
    with pytest.raises(ValidationError):
        name_to_see(text)


def test_blanks_that_are_letters_to_unicode_part_words() -> None:
    assert clean("RTX\u31644090\u2800Ti\ufe0f", 100) == "RTX 4090 Ti"
