"""What every request meets first: methods, tracking parameters, headers of every answer, bodies nobody reads."""

import http.client
from typing import Any

import pytest
from django.test import Client

HEADERS = (
    "Content-Security-Policy",
    "Permissions-Policy",
    "Referrer-Policy",
    "X-Content-Type-Options",
    "X-Frame-Options",
)
SIZING = "/api/v1/sizing"
TOO_LARGE = "x" * 3_000_000


@pytest.mark.parametrize(
    ("method", "address", "headers", "status"),
    [
        ("GET", "/catalog/", {"host": "evil.example"}, 400),
        ("GET", SIZING, {"host": "evil.example"}, 400),
        ("GET", "/catalog", {}, 301),
        ("GET", "/catalog/?utm_source=mail", {}, 302),
        ("GET", "/no/such/page/", {}, 404),
        ("GET", "/static/app.css", {}, 200),
        ("GET", "/healthz", {}, 200),
        ("TRACE", "/catalog/", {}, 405),
        ("TRACE", SIZING, {}, 405),
        ("BREW", "/", {}, 405),
        ("POST", "/catalog/", {}, 405),
        ("POST", "/accounts/login/", {}, 413),
        ("POST", SIZING, {}, 413),
    ],
)
def test_every_answer_carries_the_headers_that_protect_a_browser(
    client: Client, db: None, method: str, address: str, headers: dict[str, str], status: int
) -> None:
    body: dict[str, Any] = {"data": TOO_LARGE, "content_type": "application/json"} if status == 413 else {}
    if address == "/accounts/login/":
        body["content_type"] = "application/x-www-form-urlencoded"
    response = client.generic(method, address, headers=headers, **body)
    assert response.status_code == status
    assert [name for name in HEADERS if name not in response.headers] == []


def test_a_foreign_host_is_told_what_is_wrong(client: Client, db: None) -> None:
    for address in ("/catalog/", SIZING):
        assert "not served under the host name" in client.get(address, headers={"host": "evil.example"}).text


def test_a_form_that_is_too_large_says_how_large_it_may_be(client: Client, db: None) -> None:
    response = client.post("/accounts/login/", {"login": TOO_LARGE})
    assert "1,048,576 bytes" in response.text
    many = client.post("/accounts/login/", {f"field{number}": "" for number in range(1001)})
    assert (many.status_code, "1,000 fields" in many.text) == (400, True)


@pytest.mark.parametrize(
    ("asked", "led_to"),
    [
        ("/catalog/?utm_source=mail&utm_medium=x&utm_campaign=y&gclid=1&fbclid=2", "/catalog/"),
        ("/launch/?task=run&UTM_Source=mail&model=a%2Bb", "/launch/?task=run&model=a%2Bb"),
        ("/?gclid", "/"),
        ("//evil.example/?gclid=1", "/evil.example/"),
    ],
)
def test_a_link_with_tracking_leads_to_the_same_page_without(client: Client, db: None, asked: str, led_to: str) -> None:
    response = client.generic("GET", "/" + asked.partition("?")[0].lstrip("/"), QUERY_STRING=asked.partition("?")[2])
    assert response.headers["Location"] == led_to


def test_every_other_unknown_name_is_still_refused(client: Client, db: None) -> None:
    assert client.get("/catalog/?utm=1").status_code == 400
    assert client.get("/launch/result/?source=mail").status_code == 400


@pytest.mark.parametrize("query", ["page=١", "page=%2B1", "page=1.0", "min_memory_gib=٢٤", "max_usd=1e3", "max_usd=٩"])
def test_numbers_of_the_catalog_are_plain_digits(client: Client, db: None, query: str) -> None:
    html = client.get(f"/catalog/?{query}").text
    assert "Pages are counted 1, 2, 3" in html or "as a plain number" in html


@pytest.mark.parametrize(
    ("headers", "content_type", "named"),
    [
        ({"content-encoding": "gzip"}, "application/json", "gzip"),
        ({"content-encoding": "br, identity"}, "application/json", "br"),
        ({}, "application/json; charset=iso-8859-1", "iso-8859-1"),
        ({}, 'application/json; charset="UTF-16"', "utf-16"),
    ],
)
def test_a_body_in_a_wrapping_nobody_reads_is_refused_by_its_name(
    client: Client, db: None, headers: dict[str, str], content_type: str, named: str
) -> None:
    response = client.post(SIZING, "{}", content_type=content_type, headers=headers)
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")
    assert named in response.json()["detail"]


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", 'application/json; charset="UTF-8"'])
def test_json_in_utf_8_may_say_so(client: Client, db: None, content_type: str) -> None:
    assert client.post(SIZING, "{}", content_type, headers={"content-encoding": "identity"}).status_code == 400


def test_a_method_that_an_address_does_not_take_is_told_in_our_words(client: Client, db: None) -> None:
    assert client.get(SIZING).json()["detail"] == "This address takes POST, OPTIONS, not GET."
    assert client.options(SIZING).json() == {"methods": ["POST", "OPTIONS"], "schema": "/api/v1/schema"}


def test_a_throttled_client_is_told_how_long_to_wait(client: Client, db: None, monkeypatch: Any) -> None:
    from rest_framework.exceptions import Throttled
    from rest_framework.views import APIView

    def throttled(self: APIView, request: Any) -> None:
        raise Throttled(wait=12.2)

    monkeypatch.setattr(APIView, "check_throttles", throttled)
    response = client.post(SIZING, "{}", content_type="application/json")
    assert (response.status_code, response.headers["Retry-After"]) == (429, "13")
    assert response.json()["detail"] == "Wait 13 s, then send it again."


@pytest.mark.parametrize("address", [SIZING, "/accounts/login/", "/no/such/page/"])
def test_a_refused_body_leaves_the_connection_usable(gunicorn: int, address: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gunicorn, timeout=60)
    connection.connect()
    first = connection.sock
    for _ in range(3):
        connection.request("POST", address, TOO_LARGE, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        assert response.status in (403, 404, 413)
        assert connection.sock is first
    connection.close()
