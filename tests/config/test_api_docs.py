"""The OpenAPI document: made without a warning, true to what is answered, and shown on a page without network."""

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver

UNDOCUMENTED = {"api-nowhere", "api-schema", "api-docs"}


@pytest.fixture(scope="module")
def schema() -> Any:
    return json.loads(Client().get("/api/v1/schema").content)


def test_the_document_is_made_without_a_warning(tmp_path: Any) -> None:
    """B181."""
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yaml"))


def test_the_document_is_openapi_3_1_and_public(schema: Any) -> None:
    assert schema["openapi"] == "3.1.0"
    assert schema["components"]["securitySchemes"]["apiKey"]["scheme"] == "bearer"


def test_the_document_names_the_server_that_was_asked(settings: Any, schema: Any) -> None:
    assert schema["servers"] == [{"url": "http://testserver"}]
    settings.ALLOWED_HOSTS, settings.SECURE_PROXY_SSL_HEADER = ["berth.example"], ("HTTP_X_FORWARDED_PROTO", "https")
    headers = {"host": "berth.example", "x-forwarded-proto": "https"}
    assert Client().get("/api/v1/schema", headers=headers).json()["servers"] == [{"url": "https://berth.example"}]


def test_every_address_of_the_api_is_described(schema: Any) -> None:
    described = {
        name for name in get_resolver().reverse_dict if isinstance(name, str) and name.startswith("api-")
    } - UNDOCUMENTED  # fmt: skip
    paths = {path.split("{")[0] for path in schema["paths"]}
    assert len(schema["paths"]) == len(described)
    assert "/api/v1/orders" in paths


def test_each_operation_documents_its_refusals_and_who_may_ask(schema: Any) -> None:
    order = schema["paths"]["/api/v1/orders"]["post"]
    assert set(order["responses"]) >= {"201", "400", "401", "403", "404", "409", "413", "415", "422", "429", "503"}
    assert order["security"] == [{"apiKey": []}]
    key = next(parameter for parameter in order["parameters"] if parameter["name"] == "Idempotency-Key")
    assert (key["in"], key["required"], key["schema"]["maxLength"]) == ("header", True, 255)
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert set(operation["responses"]) >= {"400", "401", "429", "500", "503"}, operation["operationId"]
    assert {} in schema["paths"]["/api/v1/machines"]["get"]["security"]


def test_the_page_has_a_policy_of_its_own_and_needs_no_network(db: None) -> None:
    page, elsewhere = Client().get("/api/v1/docs"), Client().get("/help/memory/")
    assert page.status_code == 200
    assert "style-src 'self' 'unsafe-inline'" in page.headers["Content-Security-Policy"]
    assert "script-src 'self';" in page.headers["Content-Security-Policy"] + ";"
    assert "unsafe-inline" not in elsewhere.headers["Content-Security-Policy"]
    assert b"http://" not in page.content
    assert b"https://" not in page.content
    script = Client().get("/api/v1/docs?script=")
    assert script.status_code == 200
    assert b"/api/v1/schema" in script.content
