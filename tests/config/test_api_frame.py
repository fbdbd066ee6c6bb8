"""What every answer of the API carries: its id, what is left of the rate, who may keep it; and 304."""

from typing import Any

import pytest
from django.test import Client

from rentals.throttling import AddressThrottle, KeyThrottle
from tests.factories import make_api_key, make_machine, make_provider
from tests.rentals.calls import assert_problem, call, get, post

RATE = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


@pytest.fixture
def key(acme: Any) -> Any:
    return make_api_key(acme)


def test_every_answer_says_what_is_left_of_the_rate_and_its_id(acme: Any, key: Any) -> None:
    reading = make_api_key(acme, "read")
    answers = {
        200: get("machines"),
        400: get("machines?x=1"),
        401: get("orders"),
        403: post("orders", reading, {}),
        404: get("machines/999999"),
        405: call("DELETE", "machines"),
        415: Client().post("/api/v1/sizing", "x", content_type="text/plain"),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        for name in RATE:
            assert answer.headers[name].isdigit(), (status, name)
        assert len(answer.headers["X-Request-ID"]) >= 32
        if status != 200:
            assert answer.json()["request_id"] == answer.headers["X-Request-ID"]
    for nowhere in (get("nothing"), call("POST", "/api/"), get("key", "berth_wrong")):
        assert nowhere.headers["RateLimit-Limit"]


def test_the_rate_counts_down_and_retry_after_comes_with_429(key: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyThrottle, "rate", "3/min", raising=False)
    answers = [get("key", key) for _ in range(4)]
    assert [answer.headers["RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert {answer.headers["RateLimit-Limit"] for answer in answers} == {"3"}
    assert all(0 < int(answer.headers["RateLimit-Reset"]) <= 65 for answer in answers)
    assert_problem(answers[-1], 429, "throttled")
    assert int(answers[-1].headers["Retry-After"]) >= 1


def test_refused_requests_are_counted_too(acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks without a key, with a wrong one or past its scope is limited like everybody else."""
    monkeypatch.setattr(AddressThrottle, "rate", "2/min", raising=False)
    monkeypatch.setattr(KeyThrottle, "rate", "2/min", raising=False)
    assert [get("orders").status_code for _ in range(3)] == [401, 401, 429]
    reading = make_api_key(acme, "read")
    assert [post("orders", reading, {}).status_code for _ in range(3)] == [403, 403, 429]


def test_the_catalog_is_asked_for_again_by_its_tag(db: None, key: Any) -> None:
    machine = make_machine()
    one = (f"machines/{machine.pk}", f"gpus/{machine.gpu.slug}")
    for path in ("machines", "gpus", "options", "models", "schema", "errors", *one):
        first = get(path)
        assert first.headers["Cache-Control"] == "no-cache, public", path
        assert "Authorization" in first.headers["Vary"]
        again = get(path, **{"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]
        assert again.headers["RateLimit-Remaining"]
        assert again.headers["X-Request-ID"]
        assert get(path, **{"If-None-Match": '"another"'}).status_code == 200
    tag = get("machines").headers["ETag"]
    assert get("machines?limit=1", **{"If-None-Match": f'W/"x", {tag}'}).status_code == 304
    assert get("machines", key).headers["Cache-Control"] == "no-cache, private"


def test_another_price_is_another_tag(db: None) -> None:
    machine = make_machine(provider=make_provider("north"))
    tag = get("machines").headers["ETag"]
    machine.price_7_days_usd += 1
    machine.save()
    assert get("machines", **{"If-None-Match": tag}).status_code == 200


def test_what_belongs_to_a_tenant_and_every_refusal_is_kept_by_nobody(key: Any) -> None:
    for answer in (get("key", key), get("orders", key), get("orders"), get("nothing"), get("machines?x=1")):
        assert "no-store" in answer.headers["Cache-Control"]
        assert "ETag" not in answer.headers


def test_no_other_site_may_read_the_api_with_a_browser(db: None) -> None:
    for method in ("GET", "OPTIONS"):
        answer = call(method, "machines", Origin="https://elsewhere.example")
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_pages_carry_their_id_too(db: None) -> None:
    assert len(Client().get("/catalog/").headers["X-Request-ID"]) >= 32
