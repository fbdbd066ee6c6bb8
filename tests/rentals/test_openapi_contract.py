"""The committed OpenAPI document is what is served, and a change that would break a client of v1 is seen."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from rentals.api.changes import breaking_changes
from rentals.management.commands import write_openapi
from rentals.management.commands.write_openapi import FILE, document


@pytest.fixture(scope="module")
def committed() -> Any:
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_nothing_in_the_present_document_breaks_a_client_of_the_committed_one(committed: Any) -> None:
    assert breaking_changes(committed, document()) == []


def test_the_committed_document_is_the_present_one(committed: Any) -> None:
    assert committed == document(), "run manage.py write_openapi"


def schemas(of: Any) -> Any:
    return of["components"]["schemas"]


def order(of: Any) -> Any:
    return of["paths"]["/api/v1/orders"]["post"]


BREAKING: dict[str, Callable[[Any], Any]] = {
    "GET /api/v1/gpus: gone": lambda new: new["paths"].pop("/api/v1/gpus"),
    "operationId is buy, was place_order": lambda new: order(new).update(operationId="buy"),
    "parameter state is gone": lambda new: new["paths"]["/api/v1/orders"]["get"].update(parameters=[]),
    "422 is gone": lambda new: order(new)["responses"].pop("422"),
    "total_usd: is gone": lambda new: schemas(new)["Order"]["properties"].pop("total_usd"),
    "total_usd: may be number": lambda new: schemas(new)["Order"]["properties"]["total_usd"].update(type="number"),
    "total_usd: may be missing": lambda new: schemas(new)["Order"]["required"].remove("total_usd"),
    "lots: is required": lambda new: schemas(new)["OrderRequest"]["required"].append("lots"),
    "misfit_acknowledged: is gone": lambda new: schemas(new)["OrderRequest"]["properties"].pop("misfit_acknowledged"),
    "maximum is 5, was": lambda new: schemas(new)["OrderRequest"]["properties"]["lots"].update(maximum=5),
    "no longer takes notebook": lambda new: schemas(new)["Task"]["enum"].remove("notebook"),
    "parameter colour is required": lambda new: new["paths"]["/api/v1/gpus"]["get"]["parameters"].append(
        {"in": "query", "name": "colour", "required": True, "schema": {"type": "string"}}
    ),
}
ALLOWED: dict[str, Callable[[Any], Any]] = {
    "a new operation": lambda new: new["paths"].update({"/api/v1/new": {"get": order(new)}}),
    "a new field of an answer": lambda new: schemas(new)["Order"]["properties"].update(colour={"type": "string"}),
    "a new optional field": lambda new: schemas(new)["OrderRequest"]["properties"].update(colour={"type": "string"}),
    "a new word of a request": lambda new: schemas(new)["Task"]["enum"].append("dream"),
    "a wider limit": lambda new: schemas(new)["OrderRequest"]["properties"]["lots"].update(maximum=10**6),
    "another description": lambda new: order(new).update(description="Other words."),
}


@pytest.mark.parametrize("what", BREAKING)
def test_a_breaking_change_is_named(committed: Any, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = copy.deepcopy(committed)
    BREAKING[what](new)
    found = breaking_changes(committed, new)
    assert any(what in one for one in found), found
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(committed), encoding="utf-8")
    monkeypatch.setattr(write_openapi, "FILE", file)
    monkeypatch.setattr(write_openapi, "document", lambda: new)
    with pytest.raises(CommandError, match="would break clients"):
        call_command("write_openapi")
    assert json.loads(file.read_text(encoding="utf-8")) == committed


@pytest.mark.parametrize("what", ALLOWED)
def test_what_may_change_within_a_version_may(committed: Any, what: str) -> None:
    new = copy.deepcopy(committed)
    ALLOWED[what](new)
    assert breaking_changes(committed, new) == []
