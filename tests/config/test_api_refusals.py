"""Errors that never reach a view of the API have its shape too: bad hosts, addresses, methods, sizes and faults."""

from typing import Any

import pytest
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.test import Client
from rest_framework.renderers import JSONRenderer

from catalog.api import GpusView
from config.api_errors import problem_response
from config.rental_problems import RefusedWish
from rentals.errors import InvalidWebhook
from tests.factories import make_api_key, make_endpoint
from tests.rentals.calls import assert_problem, call, get, post


def test_a_host_that_is_not_ours_is_a_problem_and_has_its_id() -> None:
    response = Client().get("/api/v1/gpus", headers={"Host": "elsewhere.example"})
    problem = assert_problem(response, 400, "invalid")
    assert problem["request_id"] == response.headers["X-Request-ID"]
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.parametrize(
    "path", ["/api/", "/api/v1/", "/api/v2/gpus", "/api/v1/gpus/", "/api/v1/machines/x", "/api/v1/machines/-1",
             "/api/v1/orders/1", "/api/v1/%00", "/api/v1/%ff", "/api/v1/gpus/..%2f", f"/api/v1/machines/{10**20}"],
)  # fmt: skip
def test_an_address_that_is_none_is_404_whatever_the_method(db: None, path: str) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
        response = call(method, path)
        assert response.status_code in (404, 405), (method, response.status_code)
        assert_problem(response, response.status_code, response.json()["code"])
    assert_problem(call("GET", path), 404, "not_found")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "BREW"])
@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("gpus", "GET, HEAD, OPTIONS"),
        ("sizing", "POST, OPTIONS"),
        ("schema", "GET, HEAD, OPTIONS"),
        ("docs", "GET, HEAD"),
    ],
)
def test_another_method_is_405_and_names_those_there_are(db: None, method: str, address: str, allowed: str) -> None:
    response = call(method, address)
    assert_problem(response, 405, "method_not_allowed")
    assert response.headers["Allow"] == allowed


@pytest.mark.parametrize("address", ["schema", "docs", "errors", "sizing/vectors"])
def test_a_parameter_that_nobody_reads_is_refused(db: None, address: str) -> None:
    assert assert_problem(get(f"{address}?lang=de"), 400, "invalid")["errors"][0]["field"] == "lang"


def test_half_a_character_in_a_sentence_of_a_refusal_is_sent_as_the_sign_of_an_unknown_one() -> None:
    error = RefusedWish(InvalidWebhook("events", "There is no event \ud83d."))
    response = problem_response(error, {"request": None, "view": None})
    assert response is not None
    assert JSONRenderer().render(response.data)
    assert response.data["detail"] == response.data["errors"][0]["detail"] == "There is no event ?."


AUTHORIZATIONS = ("Bearer", "Bearer ", "Bearer \0", "Bearer \ud800", "Bearer é", "Bearer " + "x" * 100_000,
                  "Bearer berth_a_b", "Bearer berth_", "bearer\tberth_x_y", "Bearer a, Bearer b")  # fmt: skip


@pytest.mark.parametrize("value", AUTHORIZATIONS)
def test_nobody_s_key_is_refused_and_never_repeated(db: None, value: str) -> None:
    response = get("key", Authorization=value)
    assert_problem(response, 401, "unauthenticated")
    text = value.partition(" ")[2].strip()
    assert len(text) < 2 or text not in response.text


def test_a_secret_in_the_wrong_place_is_not_repeated(db: None, acme: Any) -> None:
    """It is named up to the part by which it is looked up."""
    key, webhook = make_api_key(acme), make_endpoint(acme)
    workload = {"task": "run", "model": key.text}
    basket = {"machine": 1, "term_days": 7, "options": [{"option": key.text}]}
    answers = [
        get(f"machines?{key.text}=1"),
        get(f"machines?tier={key.text}"),
        get(f"gpus/{key.text}"),
        call("POST", "sizing", None, {}, **{"Content-Encoding": key.text}),
        post("sizing", None, {"workload": workload}),
        post("sizing", None, {"workload": workload, key.text: 1}),
        post("sizing", None, f'{{"{key.text}": 1, "{key.text}": 2}}'),
        post("sizing", None, {"workload": {"task": webhook.text}}),
        post("quotes", key, basket),
        post("orders", key, {**basket, "expected_total_usd": key.text}, **{"Idempotency-Key": "é" + key.text}),
        get("key", f"{key.text}x"),
        call("POST", "sizing", None, {}, Authorization=f"Basic {key.text}"),
    ]
    # Their beginnings too: names are cut where they are repeated.
    secrets = [key.text.rpartition("_")[2][:6], webhook.text.removeprefix("whsec_")[:6]]
    for answer in answers:
        assert answer.status_code >= 400
        assert not [secret for secret in secrets if secret in answer.text], answer.text
    assert "berth_" in answers[0].text


@pytest.mark.parametrize("value", ["\0", "\ud800", '"é"', "*", "W/*", '"' * 5000, '"a", ' * 5000, "", ","])
def test_an_odd_tag_is_only_another_tag(db: None, value: str) -> None:
    assert get("gpus", **{"If-None-Match": value}).status_code == (304 if value == "*" else 200)


@pytest.mark.parametrize(
    "path",
    ["gpus/%00", "gpus/a%00b", "models/%ff", "models/%ED%A0%80", "options/" + "x" * 8000, "machines/" + "9" * 4000,
     "orders/%00", "orders/" + "0" * 4000, "gpus//", "./gpus", "gpus/%2e%2e/machines", "%2f%2f"],
)  # fmt: skip
def test_an_odd_address_is_404(db: None, path: str) -> None:
    assert_problem(get(path), 404, "not_found")


@pytest.mark.parametrize("query", ["limit=1&limit=2", "cursor=a&cursor=a", "limit=1&limit=1"])
def test_a_parameter_is_given_once(db: None, query: str) -> None:
    problem = assert_problem(get(f"gpus?{query}"), 400, "invalid")
    assert problem["errors"][0]["code"] == "repeated"


@pytest.mark.parametrize(
    ("content_type", "status"),
    [("text/plain", 415), ("application/xml", 415), ("multipart/form-data; boundary=x", 415),
     ("application/x-www-form-urlencoded", 415), ("application/json; charset=latin-1", 415), ("", 415),
     ("application/json; charset=UTF-8", 400), ("application/json", 400)],
)  # fmt: skip
def test_a_body_that_is_no_json_is_415(db: None, content_type: str, status: int) -> None:
    response = Client().generic("POST", "/api/v1/sizing", b"{}", content_type=content_type)
    assert_problem(response, status, "unsupported_media_type" if status == 415 else "invalid")


def test_a_body_beyond_one_mebibyte_is_413(db: None) -> None:
    assert_problem(post("sizing", None, "[" + " " * 2**20 + "]"), 413, "payload_too_large")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(RequestDataTooBig("private"), 413, "payload_too_large"), (SuspiciousOperation("private"), 400, "invalid"),
     (ZeroDivisionError("private"), 500, "server_error")],
)  # fmt: skip
def test_django_s_own_errors_and_ours_say_nothing_private(
    db: None, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(GpusView, "get", fails)
    response = get("gpus")
    assert_problem(response, status, code)
    assert b"private" not in response.content
    # Outside of the views too, where a middleware meets it.
    monkeypatch.setattr("config.uploads.stated_length", lambda request: 0)
    monkeypatch.setattr("django.middleware.common.CommonMiddleware.process_request", fails)
    assert_problem(get("gpus"), status, code)


def test_more_parameters_than_are_read_is_400(db: None) -> None:
    query = "&".join(f"a{number}=1" for number in range(2000))
    assert_problem(get(f"gpus?{query}"), 400, "invalid")


@pytest.mark.parametrize(
    "body", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": -Infinity}', "[" * 10_000 + "]" * 10_000, b"\xff", "{", "",
             '{"a": ' + "9" * 5000 + "}"],
)  # fmt: skip
@pytest.mark.parametrize("address", ["sizing", "recommendations", "calculator", "calculator/stages", "models/read"])
def test_json_that_two_readers_could_read_differently_is_refused_everywhere(db: None, address: str, body: Any) -> None:
    response = post(address, None, body)
    assert response.status_code == 400
    assert_problem(response, 400, response.json()["code"])
