"""The examples of the OpenAPI document are real requests and answers, and everything real has the shape it says.

`WRITE_API_EXAMPLES=1 pytest tests/config/test_api_examples.py` writes them anew.
"""

import json
import os
from datetime import timedelta
from typing import Any

import jsonschema
import pytest
import time_machine
from django.db import OperationalError
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from catalog.api import GpusView
from config.api_schema import EXAMPLES, read_examples
from rentals.models import Membership, Order, Organization
from rentals.throttling import KeyThrottle
from tests import api_scene
from tests.api_scene import ORDER, answer, as_published
from tests.factories import make_delivered, make_user
from tests.rentals.calls import call, get, order, post

ORDER_ID = "9b0e4d1c-5f0a-4c1e-8a53-0d6f3f2b7a10"


@pytest.fixture(scope="module")
def schema() -> Any:
    return SchemaGenerator().get_schema(request=None, public=True)


@pytest.fixture
def examples(acme: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    with time_machine.travel(api_scene.NOW, tick=False):
        key = api_scene.build(acme)
        Organization.objects.filter(pk=acme.pk).update(created_at=api_scene.NOW)
        Membership.objects.filter(organization=acme).update(created_at=api_scene.NOW)
        found: dict[str, Any] = {}
        for name, (method, path, body) in api_scene.READS.items():
            found[name] = {"response": answer(method, path, key if name in api_scene.WITH_KEY else None, body)}
            if body is not None:
                found[name]["request"] = body
        placed = answer("POST", "orders", key, ORDER, 201, **{"Idempotency-Key": "6f1c0e52"})
        found["place_order"] = {"request": ORDER, "response": placed}
        make_user("staff@example.com", is_staff=True)
        make_delivered(Order.objects.get(pk=placed["id"]), now=api_scene.NOW + timedelta(hours=1))
        found["get_order"] = {"response": answer("GET", f"orders/{placed['id']}", key)}
        for verb in ("stop", "start"):
            lot = f"orders/{placed['id']}/allocations/1/{verb}"
            found[f"{verb}_allocation"] = {"response": answer("POST", lot, key)}
        for name, path in api_scene.OF_THE_TENANT.items():
            found[name] = {"response": answer("GET", path, key)}
        found |= api_scene.keep(key)
        found["problems"] = _problems(key, monkeypatch)
        return as_published(found, {placed["id"]: ORDER_ID, key.prefix: "k3yPr3f1xAbc"[: len(key.prefix)]})


def _problems(key: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    wrong = {**api_scene.WORKLOAD, "context": 200_000}
    typed = Client().post("/api/v1/sizing", "x", content_type="text/plain")
    found = {
        "400": post("sizing", None, {"workload": wrong}),
        "401": get("orders"),
        "403": post("orders", _reading(key), {}),
        "404": get("machines/999"),
        "409": post("quotes", key, {"machine": 12, "term_days": 7, "lots": 500}),
        "413": post("sizing", None, " " * (2**20 + 1)),
        "415": typed,
        "422": order(key, {**ORDER, "lots": 3, "expected_total_usd": "361.50"}, "6f1c0e52"),
    }
    with monkeypatch.context() as broken:
        broken.setattr(KeyThrottle, "rate", "1/min", raising=False)
        found["429"] = get("key", key)
        broken.setattr(KeyThrottle, "rate", "1000000/min", raising=False)
        broken.setattr(GpusView, "get", lambda *_: 1 / 0)
        found["500"] = get("gpus")

        def away(*_: Any) -> None:
            raise OperationalError("the database is away")

        broken.setattr(GpusView, "get", away)
        found["503"] = get("gpus")
    for status, response in found.items():
        assert response.status_code == int(status), response.content
    return {status: response.json() for status, response in found.items()}


def _reading(key: Any) -> Any:
    from tests.factories import make_api_key

    return make_api_key(key.organization, "read", now=api_scene.NOW)


def test_the_committed_examples_are_what_is_answered(examples: Any) -> None:
    text = json.dumps(examples, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get("WRITE_API_EXAMPLES"):
        EXAMPLES.write_text(text, encoding="utf-8")
        read_examples.cache_clear()
    assert json.loads(EXAMPLES.read_text(encoding="utf-8")) == json.loads(text), "see the head of this file"


def test_every_operation_and_every_documented_refusal_has_an_example(schema: Any) -> None:
    examples = read_examples()
    operations = {op["operationId"]: op for methods in schema["paths"].values() for op in methods.values()}
    assert set(operations) == set(examples) - {"problems"}
    for name, operation in operations.items():
        for status, response in operation["responses"].items():
            for content in response.get("content", {}).values():
                assert content["examples"], (name, status)
        if "requestBody" in operation:
            assert operation["requestBody"]["content"]["application/json"]["examples"]


def test_every_example_has_the_shape_that_the_document_gives_it(schema: Any) -> None:
    for methods in schema["paths"].values():
        for operation in methods.values():
            bodies = [response.get("content", {}) for response in operation["responses"].values()]
            for contents in [*bodies, operation.get("requestBody", {}).get("content", {})]:
                for content in contents.values():
                    for example in content["examples"].values():
                        value = example.get("value")
                        if value is None:
                            value = schema["components"]["examples"][example["$ref"].rpartition("/")[2]]["value"]
                        validate(value, content["schema"], schema)


def validate(value: Any, shape: Any, schema: Any) -> None:
    jsonschema.Draft202012Validator({**shape, "components": schema["components"]}).validate(value)


def test_a_wrong_shape_is_seen(schema: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate({"workload": {"task": "run", "nothing": 1}}, {"$ref": "#/components/schemas/SizingRequest"}, schema)
    assert call("GET", "/api/v1/schema").status_code == 200
