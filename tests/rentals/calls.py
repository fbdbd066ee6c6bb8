"""A partner's program: requests with a key, and what every refusal has in common."""

import json
from typing import Any

from django.test import Client

from catalog.models import Machine
from rentals.api.problems import FIELD_CODES

KNOWN_TO_FIELDS = {one.code for one in FIELD_CODES}


def call(method: str, path: str, key: Any = None, body: Any = None, **headers: str) -> Any:
    """One request to /api/v1/<path>; `key` is an ApiKey of the factories or a text."""
    if key is not None:
        headers["Authorization"] = f"Bearer {getattr(key, 'text', key)}"
    sent = {} if body is None else {"data": body if isinstance(body, (str, bytes)) else json.dumps(body)}
    client = Client(raise_request_exception=False)
    url = path if path.startswith("/") else f"/api/v1/{path}"
    return client.generic(method, url, sent.get("data", ""), content_type="application/json", headers=headers)


def get(path: str, key: Any = None, **headers: str) -> Any:
    return call("GET", path, key, **headers)


def post(path: str, key: Any = None, body: Any = None, **headers: str) -> Any:
    return call("POST", path, key, body, **headers)


def order(key: Any, body: Any, idempotency_key: str | None = "k") -> Any:
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    return post("orders", key, body, **headers)


def order_body(machine: Machine, total: str = "110.00", **fields: Any) -> dict[str, Any]:
    return {"machine": machine.pk, "term_days": 7, "lots": 1, "expected_total_usd": total, **fields}


def assert_problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """The one shape of every error."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert set(body) >= {"type", "title", "status", "detail", "code", "errors", "request_id"}
    assert (body["status"], body["code"]) == (status, code)
    assert body["type"] == f"http://testserver/api/v1/errors#{code}"
    assert {error["code"] for error in body["errors"]} <= KNOWN_TO_FIELDS, body["errors"]
    assert body["detail"]
    assert body["request_id"]
    return body


def faults(response: Any) -> list[tuple[str, str]]:
    body = assert_problem(response, 400, "invalid")
    return [(error["field"], error["code"]) for error in body["errors"]]
