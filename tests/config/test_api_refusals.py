"""Errors that never reach a view of the API have its shape too: bad hosts, addresses, methods, sizes and faults."""

from typing import Any

import pytest
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.test import Client

from catalog.api import GpusView
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


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "BREW"])
def test_another_method_is_405_and_names_those_there_are(db: None, method: str) -> None:
    response = call(method, "/api/v1/gpus")
    assert_problem(response, 405, "method_not_allowed")
    assert "GET" in response.headers["Allow"]


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
