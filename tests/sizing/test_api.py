"""The API's two questions, and what it answers to bodies that are none."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from rest_framework.throttling import AnonRateThrottle

from catalog.units import GB, GIB
from sizing.json_input import PREFERENCE_KINDS, WORKLOAD_KINDS
from tests.factories import make_machine
from tests.sizing.seeded import seed

WORKLOAD = {"task": "run", "model": "llama-3.1-8b", "precision_bits": 16, "context": 4096, "requests": 1}


@pytest.fixture(autouse=True)
def models(db: None) -> None:
    seed("llama-3.1-8b", "starcoder2-15b")


def post(address: str, body: Any, **headers: Any) -> Any:
    sent = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return Client(raise_request_exception=False).post(
        f"/api/v1/{address}", sent, content_type=headers.pop("content_type", "application/json"), **headers
    )


def errors_of(response: Any) -> list[tuple[str, str]]:
    assert_problem(response, 400)
    return [(error["field"], error["code"]) for error in response.json()["errors"]]


def assert_problem(response: Any, status: int) -> None:
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/problem+json"
    body = response.json()
    assert set(body) >= {"type", "title", "status", "detail", "code", "errors", "request_id"}
    assert body["status"] == status
    assert body["type"].endswith(f"/errors#{body['code']}")
    assert body["request_id"]


def test_the_worked_example_is_the_memory_block() -> None:
    memory = post("sizing", {"workload": WORKLOAD}).json()
    assert list(memory) == [
        "gpus", "total_bytes", "total_gib", "rounding_note", "lines", "splits", "assumptions", "sources",
        "html_url",
    ]  # fmt: skip
    assert (memory["gpus"], memory["total_bytes"], memory["total_gib"]) == (1, 20990613914, "19.55")
    assert memory["rounding_note"] is None
    assert [line["gib"] for line in memory["lines"]] == ["14.96", "0.50", "3.09", "1.00"]
    assert memory["lines"][0] == {
        "code": "weights",
        "label": "Model weights",
        "formula": "8,030,261,248 parameters (8,030 million) × 2 bytes",
        "bytes": 16060522496,
        "gib": "14.96",
    }
    assert memory["lines"][2]["formula"] == "20 % of 15.46 GiB"
    assert memory["splits"][0] == {"gpus": 2, "per_gpu_bytes": 11032177869, "per_gpu_gib": "10.27"}
    assert [split["gpus"] for split in memory["splits"]] == [2, 4, 8, 16]
    assert memory["sources"][0]["url"].startswith("https://huggingface.co/")


def test_defaults_stand_for_what_is_not_given() -> None:
    assert post("sizing", {"workload": {"task": "run", "model": "llama-3.1-8b"}}).json()["total_gib"] == "19.55"


def test_a_legal_split_is_sized_and_an_illegal_one_names_the_legal() -> None:
    memory = post("sizing", {"workload": WORKLOAD, "gpus": 2}).json()
    assert (memory["gpus"], memory["total_bytes"]) == (2, 2 * 11032177869)
    for gpus in (3, 0, -2, 32, 10**30):
        response = post("sizing", {"workload": WORKLOAD, "gpus": gpus})
        assert errors_of(response) == [("gpus", "illegal_split")]
        assert "1, 2, 4, 8 or 16 GPUs" in response.json()["errors"][0]["detail"]


def test_recommendations_have_the_agreed_shape() -> None:
    machine = make_machine(
        price_7_days_usd=Decimal("110.00"), price_3_days_usd=Decimal("47.14"), price_30_days_usd=Decimal("471.43"),
        lots=3, gpu_memory_bytes=25757220864,
    )  # fmt: skip
    preferences = {
        "budget_usd": "300.00", "max_hourly_usd": "2.00", "tier": "any", "countries": ["EU"], "term_days": 7, "lots": 1,
    }  # fmt: skip
    answer = post("recommendations", {"workload": WORKLOAD, "preferences": preferences}).json()
    assert [
        name for name in answer if name not in ("changes", "limits")
    ] == [
        "memory", "recommended_count", "recommended", "alternatives", "not_considered", "nearest_miss", "constraints",
        "engine_version", "catalog_version", "fingerprint", "html_url",
    ]  # fmt: skip
    page = Client().get(answer["html_url"].removeprefix("http://testserver"))
    assert page.status_code == 200
    assert answer["fingerprint"] in page.content.decode()
    assert answer["recommended_count"] == 1
    best = answer["recommended"][0]
    assert best["machine"] == {
        "id": machine.pk, "name": machine.name, "provider": machine.provider.name, "tier": "secure", "country": "DE",
        "gpu": machine.gpu.slug, "gpu_count": 1, "memory_bytes_per_gpu": 25757220864, "memory_source": "data_center",
        "free_lots": 3, "interruptible": False, "max_term_days": None,
        "prices_usd": {"3": "47.14", "7": "110.00", "30": "471.43"},
        "html_url": f"http://testserver/catalog/machines/{machine.pk}/",
    }  # fmt: skip
    assert (best["gpus_used"], best["need_bytes_per_gpu"], best["headroom_bytes"]) == (1, 20990613914, 4766606950)
    assert (best["package_usd"], best["package_hourly_usd"]) == ("110.00", "0.6548")
    assert best["confidence"] == {"level": "high", "reasons": [], "raise": []}
    assert best["budget_covers"] == {
        "hours": "458.18", "whole_terms": 2, "text": "19 days 2 h at $0.65/h; 2 × 7 days",
    }  # fmt: skip
    assert [limit["code"] for limit in best["limits"]] == ["reservation_limit"]
    eight = answer["alternatives"]["precisions"]
    assert eight == []
    constraints = {constraint["code"]: constraint["value"] for constraint in answer["constraints"]}
    assert (constraints["countries"], constraints["budget_usd"]) == (["EU"], "300.00")
    assert answer["fingerprint"].startswith("sha256:")


def test_an_alternative_says_what_it_misses_and_by_how_much() -> None:
    make_machine(price_7_days_usd=Decimal("110.00"))
    wished = {"max_hourly_usd": "0.50", "budget_usd": "100.00", "tier": "community"}
    answer = post("recommendations", {"workload": WORKLOAD, "preferences": wished}).json()
    misses = {miss["code"]: miss["by"] for miss in answer["alternatives"]["machines"][0]["misses"]}
    assert misses == {"max_hourly_usd": "0.1548", "budget_usd": "10.00", "tier": None}
    assert answer["alternatives"]["machines"][0]["budget_covers"]["whole_terms"] == 0


def test_between_gb_and_gib_the_measured_machine_fits_and_the_nominal_one_does_not() -> None:
    measured = make_machine(gpu_memory_bytes=24 * GIB)
    make_machine(gpu_memory_bytes=24 * GB, memory_source="datasheet", memory_unit="GB")
    answer = post("recommendations", {"workload": {**WORKLOAD, "context": 32768}}).json()
    assert answer["memory"]["total_gib"] == "23.75"
    assert [one["machine"]["id"] for one in answer["recommended"]] == [measured.pk]
    assert answer["not_considered"][0]["code"] == "too_small"


def test_when_nothing_fits_the_nearest_machine_is_named_with_what_it_lacks() -> None:
    make_machine(gpu_memory_bytes=16 * GIB, gpu_count=1)
    answer = post("recommendations", {"workload": WORKLOAD}).json()
    assert answer["recommended"] == []
    assert answer["nearest_miss"]["lacking_bytes"] == 20990613914 - 16 * GIB
    assert "19.55 GiB needed on one GPU, 16.00 GiB there, 3.55 GiB too little" in answer["nearest_miss"]["text"]
    changes = [(change["field"], change["value"], change["machines"]) for change in answer["changes"]]
    assert ("precision_bits", 8, 1) in changes


def test_every_money_is_a_text_and_no_number_has_a_point() -> None:
    make_machine()
    sent = post("recommendations", {"workload": WORKLOAD, "preferences": {"budget_usd": "300.00"}})
    json.loads(sent.content, parse_float=lambda text: pytest.fail(f"a float: {text}"))


TUNE = {"task": "fine_tune", "model": "llama-3.1-8b"}
BAD = [
    ({}, [("workload", "required")]),
    ({"workload": None}, [("workload", "required")]),
    ({"workload": []}, [("workload", "invalid")]),
    ({"workload": {}}, [("workload.task", "required"), ("workload.model", "required")]),
    ({"workload": WORKLOAD, "budget": 1}, [("budget", "unknown_field")]),
    ({"workload": {**WORKLOAD, "contxt": 1}}, [("workload.contxt", "unknown_field")]),
    ({"workload": {**WORKLOAD, "context": 131073}}, [("workload.context", "max_value")]),
    ({"workload": {**WORKLOAD, "context": 0}}, [("workload.context", "min_value")]),
    ({"workload": {**WORKLOAD, "context": -1}}, [("workload.context", "min_value")]),
    ({"workload": {**WORKLOAD, "context": 10**40}}, [("workload.context", "max_value")]),
    ({"workload": {**WORKLOAD, "context": 4096.0}}, [("workload.context", "invalid")]),
    ({"workload": {**WORKLOAD, "context": "4096"}}, [("workload.context", "invalid")]),
    ({"workload": {**WORKLOAD, "context": True}}, [("workload.context", "invalid")]),
    ({"workload": {**WORKLOAD, "context": None}}, [("workload.context", "required")]),
    ({"workload": {**WORKLOAD, "context": [1]}}, [("workload.context", "invalid")]),
    ({"workload": {**WORKLOAD, "context": {"a": 1}}}, [("workload.context", "invalid")]),
    ({"workload": {**WORKLOAD, "requests": 100001}}, [("workload.requests", "max_value")]),
    ({"workload": {**WORKLOAD, "precision_bits": 5}}, [("workload.precision_bits", "invalid_choice")]),
    ({"workload": {**WORKLOAD, "precision_bits": "16"}}, [("workload.precision_bits", "invalid")]),
    ({"workload": {**WORKLOAD, "model": "lama"}}, [("workload.model", "unknown_model")]),
    ({"workload": {**WORKLOAD, "model": "a\0b"}}, [("workload.model", "unknown_model")]),
    ({"workload": {**WORKLOAD, "model": "\ud800"}}, [("workload.model", "unknown_model")]),
    ({"workload": {**WORKLOAD, "model": 5}}, [("workload.model", "invalid")]),
    ({"workload": {**WORKLOAD, "model": "starcoder2-15b"}}, [("workload.model", "not_sizable")]),
    (
        {"workload": {**WORKLOAD, "task": "fine_tune"}},
        [("workload.context", "other_task"), ("workload.requests", "other_task")],
    ),
    ({"workload": {"task": "fine_tune", "model": "llama-3.1-8b", "rank": 0}}, [("workload.rank", "min_value")]),
    ({"workload": {"task": "fine_tune", "model": "llama-3.1-8b", "rank": "16"}}, [("workload.rank", "invalid")]),
    ({"workload": {**TUNE, "target_modules": "q,v"}}, [("workload.target_modules", "invalid")]),
    ({"workload": {**TUNE, "target_modules": []}}, [("workload.target_modules", "required")]),
    ({"workload": {**TUNE, "target_modules": [["q"]]}}, [("workload.target_modules[0]", "invalid")]),
    ({"workload": {**TUNE, "target_modules": ["experts"]}}, [("workload.target_modules", "invalid_choice")]),
    ({"workload": {**TUNE, "method": "full"}}, [("workload.method", "not_sizable")]),
    ({"workload": {"task": "image", "model": "llama-3.1-8b"}}, [("workload.model", "wrong_kind")]),
    ({"workload": {"task": "notebook"}}, [("workload.gpu_memory_gib", "required")]),
    ({"workload": {"task": "notebook", "gpu_memory_gb": 24}}, [("workload.gpu_memory_gb", "invalid")]),
    ({"workload": {**WORKLOAD, "task": "sing"}}, [("workload.task", "invalid_choice")]),
    ({"workload": {**WORKLOAD, "reserve_gib": 2.5, "reserve_reason": "a"}}, [("workload.reserve_gib", "invalid")]),
    ({"workload": {**WORKLOAD, "reserve_gib": "2.5"}}, [("workload.reserve_reason", "required")]),
    ({"workload": {**WORKLOAD, "\0\ud800": 1}}, [("workload.��", "unknown_field")]),
    ({"workload.context": 1, "workload": 5}, [("workload.context", "unknown_field"), ("workload", "invalid")]),
    ([], [("body", "invalid")]),
    ("null", [("body", "invalid")]),
    ("5", [("body", "invalid")]),
]


@pytest.mark.parametrize(("body", "expected"), BAD, ids=[str(number) for number in range(len(BAD))])
@pytest.mark.parametrize("address", ["sizing", "recommendations"])
def test_a_bad_body_names_each_field_and_its_fault(address: str, body: Any, expected: Any) -> None:
    response = post(address, body)
    found = errors_of(response)
    assert [field.replace("?", "�") for field, _ in found] == [field for field, _ in expected]
    assert [code for _, code in found] == [code for _, code in expected]
    assert all(error["detail"].endswith((".", "?")) for error in response.json()["errors"])


@pytest.mark.parametrize(
    ("preferences", "expected"),
    [
        ({"budget_usd": 300}, ("preferences.budget_usd", "invalid")),
        ({"budget_usd": 300.0}, ("preferences.budget_usd", "invalid")),
        ({"budget_usd": True}, ("preferences.budget_usd", "invalid")),
        ({"budget_usd": "-1"}, ("preferences.budget_usd", "min_value")),
        ({"budget_usd": "NaN"}, ("preferences.budget_usd", "invalid")),
        ({"budget_usd": "1e3"}, ("preferences.budget_usd", "invalid")),
        ({"max_hourly_usd": "0.12345"}, ("preferences.max_hourly_usd", "max_decimal_places")),
        ({"term_days": 14}, ("preferences.term_days", "invalid_choice")),
        ({"term_days": "7 days"}, ("preferences.term_days", "invalid")),
        ({"lots": 0}, ("preferences.lots", "min_value")),
        ({"lots": True}, ("preferences.lots", "invalid")),
        ({"tier": "gold"}, ("preferences.tier", "invalid_choice")),
        ({"countries": "EU"}, ("preferences.countries", "invalid")),
        ({"countries": ["XX"]}, ("preferences.countries", "invalid_choice")),
        ({"countries": [1]}, ("preferences.countries[0]", "invalid")),
        ({"country": ["DE"]}, ("preferences.country", "unknown_field")),
    ],
)
def test_a_bad_preference_names_its_field(preferences: Any, expected: tuple[str, str]) -> None:
    assert errors_of(post("recommendations", {"workload": WORKLOAD, "preferences": preferences})) == [expected]


def test_the_published_maximum_is_named_in_the_words_of_the_pages() -> None:
    response = post("sizing", {"workload": {**WORKLOAD, "context": 131073}})
    detail = response.json()["errors"][0]["detail"]
    assert detail == "Context must be 131,072 or less (published maximum of Llama 3.1 8B)."


def test_every_field_of_the_forms_has_a_kind() -> None:
    from sizing.forms import PREFERENCE_NAMES, WORKLOAD_NAMES

    assert (set(WORKLOAD_KINDS), set(PREFERENCE_KINDS)) == (set(WORKLOAD_NAMES), set(PREFERENCE_NAMES))


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b'{"workload": {"task": "run", "task": "run"}}',
        b'{"workload": NaN}',
        b'{"workload": -Infinity}',
        b"[" * 100_000,
        b"[" * 30 + b"]" * 30,
        b'{"gpus": ' + b"9" * 5000 + b"}",
        b"",
        b"\xef\xbb\xbf{}",
    ],
)
def test_what_is_no_strict_json_is_refused(body: bytes) -> None:
    response = post("sizing", body)
    assert_problem(response, 400)


def test_a_number_beyond_floats_is_refused_at_its_field() -> None:
    body = b'{"workload": {"task": "run", "model": "llama-3.1-8b", "context": 1e999}}'
    assert errors_of(post("sizing", body)) == [("workload.context", "invalid")]


def test_errors_outside_the_body_have_the_same_shape() -> None:
    client = Client(raise_request_exception=False)
    assert_problem(client.get("/api/v1/sizing"), 405)
    assert client.get("/api/v1/sizing").headers["Allow"] == "POST, OPTIONS"
    assert_problem(client.get("/api/v1/nowhere"), 404)
    assert_problem(client.post("/api/v1/sizing/", "{}", content_type="application/json"), 404)
    assert_problem(client.get("/api/"), 404)
    assert_problem(post("sizing", "a=1", content_type="application/x-www-form-urlencoded"), 415)
    assert_problem(post("sizing", b" " * (1024 * 1024 + 1)), 413)
    assert_problem(client.get("/api/v1/sizing", headers={"Accept": "text/html"}), 405)
    assert_problem(client.get("/api/v1/nowhere", headers={"Host": "not.ours"}), 400)


def test_a_fault_of_ours_is_a_problem_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr("sizing.api.recommend", broken)
    response = post("recommendations", {"workload": WORKLOAD})
    assert_problem(response, 500)
    assert "secret" not in response.content.decode()


def test_the_limit_counts_addresses_and_not_what_a_header_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AnonRateThrottle, "rate", "3/min", raising=False)
    answers = [post("sizing", {"workload": WORKLOAD}, headers={"X-Forwarded-For": f"10.0.0.{one}"}) for one in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert_problem(answers[-1], 429)
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60


def test_behind_a_proxy_the_address_that_the_proxy_saw_counts(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": 1}
    monkeypatch.setattr(AnonRateThrottle, "rate", "2/min", raising=False)

    def status(forwarded: str) -> int:
        return post("sizing", {"workload": WORKLOAD}, headers={"X-Forwarded-For": forwarded}).status_code

    assert [status(f"10.0.0.{one}, 192.0.2.1") for one in range(3)] == [200, 200, 429]
    assert status("10.0.0.1, 192.0.2.2") == 200


def test_the_type_of_an_error_leads_somewhere() -> None:
    body = post("sizing", {}).json()
    listed = Client().get("/api/v1/errors").json()["errors"]
    assert body["type"] == "http://testserver/api/v1/errors#invalid"
    assert "invalid" in [error["code"] for error in listed]


@pytest.mark.parametrize(
    ("countries", "field", "detail"),
    [
        ([1], "countries[0]", "Countries: entry 0 of the list must be a text, not a number."),
        (["DE", None], "countries[1]", "Countries: entry 1 of the list must be a text, not null."),
        (["DE", ["FR"]], "countries[1]", "Countries: entry 1 of the list must be a text, not a list."),
        ("DE", "countries", "Countries must be a list of texts, not a text."),
        ([""], "countries", "Countries has an empty value: give codes, or leave it out for anywhere."),
    ],
)
def test_a_wrong_country_is_named_by_its_place(countries: Any, field: str, detail: str) -> None:
    response = post("recommendations", {"workload": WORKLOAD, "preferences": {"countries": countries}})
    assert response.status_code == 400
    assert [(error["field"], error["detail"]) for error in response.json()["errors"]] == [
        (f"preferences.{field}", detail)
    ]


@pytest.mark.parametrize(
    "reserve", [{"reserve_gib": 2.5}, {"reserve_gib": True}, {"reserve_gib": 2, "reserve_reason": 1}]
)
def test_a_reserve_of_the_wrong_kind_is_not_asked_for_its_reason_too(reserve: dict[str, Any]) -> None:
    errors = post("sizing", {"workload": {**WORKLOAD, **reserve}}).json()["errors"]
    assert {error["code"] for error in errors} == {"invalid"}
    assert [error["field"] for error in errors] == [f"workload.{name}" for name in reserve]
