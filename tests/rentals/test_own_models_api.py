"""Models of one's own over the API: by files or by figures, kept once, named in workloads."""

import json
from typing import Any

import pytest
from django.test import Client

from rentals.models import AuditEvent, OwnModel
from rentals.own_models import MOST_MODELS
from tests.factories import make_api_key, make_own_model
from tests.rentals.calls import assert_problem, call, faults, get, post
from tests.sizing.own_files import config, index, quantized

CONFIG = json.loads(config())
BODY: dict[str, Any] = {"config": CONFIG, "name": "My Llama"}


def test_a_model_is_kept_read_used_and_deleted(acme: Any, key: Any) -> None:
    answer = post("own-models", key, BODY)
    assert answer.status_code == 201
    kept = answer.json()
    read = post("models/read", None, BODY).json()
    assert kept["figures"] == read["figures"]
    assert kept["reading"] == {name: read[name] for name in kept["reading"]}
    assert (kept["slug"], kept["model"], kept["name"]) == ("my-llama", "own:my-llama", "My Llama")
    assert (kept["problem"], kept["created_by"]) == (None, f"API key batch ({key.prefix})")
    assert answer.headers["Location"] == "/api/v1/own-models/my-llama"
    assert get("own-models/my-llama", key).json() == kept
    listed = {name: value for name, value in kept.items() if name != "reading"}
    assert get("own-models", key).json() == {"results": [listed], "next": None}
    workload = {"task": "run", "model": kept["model"]}
    assert post("sizing", key, {"workload": workload}).json()["total_gib"] == "19.55"
    client = Client()
    client.force_login(acme.owner)
    assert client.get(kept["html_url"].removeprefix("http://testserver")).status_code == 200
    assert call("DELETE", "own-models/my-llama", key).status_code == 204
    assert_problem(call("DELETE", "own-models/my-llama", key), 404, "not_found")
    assert faults(post("sizing", key, {"workload": workload})) == [("workload.model", "unknown_model")]
    trail = AuditEvent.objects.filter(organization=acme, action__startswith="own_model.").order_by("id")
    assert [(event.action, event.via) for event in trail] == [("own_model.added", "api"), ("own_model.deleted", "api")]


def test_the_same_model_again_is_the_one_that_is_kept(acme: Any, key: Any) -> None:
    make_own_model(acme, "My Llama")
    assert (post("own-models", key, BODY).status_code, OwnModel.objects.count()) == (200, 1)
    other = post("own-models", key, {**BODY, "config": {**CONFIG, "max_position_embeddings": 8192}})
    assert (other.status_code, other.json()["slug"]) == (201, "my-llama-2")


@pytest.mark.parametrize("stored", [False, True])
def test_figures_that_are_stated_size_as_those_that_were_read(acme: Any, key: Any, stored: bool) -> None:
    files = (quantized(), index(5_700_000_000)) if stored else (config(),)
    make_own_model(acme, "Read", files=files)
    read = get("own-models/read", key).json()
    answer = post("own-models", key, {"figures": {**read["figures"], "name": "Stated"}})
    stated = answer.json()
    assert answer.status_code == 201, stated
    assert stated["figures"] == {**read["figures"], "name": "Stated"}
    assert {one["rule"] for one in stated["reading"]["provenance"]} == {"Stated as it is: no file was read."}
    totals = {
        post("sizing", key, {"workload": {"task": "run", "model": model}}).json()["total_bytes"]
        for model in ("own:read", "own:stated")
    }
    assert len(totals) == 1
    client = Client()
    client.force_login(acme.owner)
    page = client.get("/o/acme/models/stated/").content.decode()
    assert ("5,700,000,000 bytes" in page) is stored
    assert ("No index or header was given" in page) is not stored


FIGURES: dict[str, Any] = {
    "name": "X", "architecture": "x", "parameters": 10**9, "layers": 4, "hidden_size": 64, "attention_heads": 4,
    "vocab_size": 100, "max_context": 4096,
    "cache_groups": [{"layers": 4, "elements_per_token": 128, "kv_heads": 4}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("config", "required")]),
        ([], [("body", "invalid")]),
        ({"config": "text"}, [("config", "invalid")]),
        ({"config": {**CONFIG, "num_hidden_layers": 0}}, [("config.num_hidden_layers", "unreadable_model")]),
        ({"config": CONFIG, "name": " x "}, [("name", "invalid")]),
        ({"config": CONFIG, "nmae": "x"}, [("nmae", "unknown_field")]),
        ({"figures": FIGURES, "config": CONFIG}, [("config", "repeated")]),
        ({"figures": FIGURES, "name": "x"}, [("name", "repeated")]),
        ({"figures": []}, [("figures", "invalid")]),
        ({"figures": {**FIGURES, "layers": 4.5}}, [("figures.layers", "unreadable_model")]),
        ({"figures": {**FIGURES, "parameters": 2**70}}, [("figures.parameters", "unreadable_model")]),
        ({"figures": {**FIGURES, "name": "a\0b"}}, [("figures.name", "unreadable_model")]),
        ({"figures": {**FIGURES, "colour": 1}}, [("figures.colour", "unreadable_model")]),
        ({"figures": {**FIGURES, "cache_groups": [{}]}}, [("figures.cache_groups", "unreadable_model")]),
    ],
)
def test_what_is_no_model_is_refused_at_its_field(key: Any, body: Any, expected: list[tuple[str, str]]) -> None:
    assert faults(post("own-models", key, body)) == expected
    assert not OwnModel.objects.exists()


def test_there_are_only_so_many(acme: Any, key: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_MODELS > 1
    monkeypatch.setattr("rentals.own_models.MOST_MODELS", 1)
    make_own_model(acme, "Another")
    assert_problem(post("own-models", key, BODY), 409, "limit_reached")


def test_a_model_that_cannot_be_read_any_more_says_so(acme: Any, key: Any) -> None:
    own = make_own_model(acme)
    OwnModel.objects.filter(pk=own.pk).update(figures={"name": "of another time"})
    assert "bring it again" in get(f"own-models/{own.slug}", key).json()["problem"]


def test_scopes_and_organizations_are_kept_apart(acme: Any, globex: Any, key: Any) -> None:
    make_own_model(acme)
    make_own_model(globex, "Theirs")
    reading, ordering = make_api_key(acme, "read"), make_api_key(acme, "order")
    assert [row["slug"] for row in get("own-models", reading).json()["results"]] == ["my-llama"]
    assert get("own-models/my-llama", reading).status_code == 200
    assert_problem(get("own-models", ordering), 403, "forbidden")
    assert_problem(post("own-models", reading, BODY), 403, "forbidden")
    assert_problem(call("DELETE", "own-models/my-llama", reading), 403, "forbidden")
    for method in ("GET", "DELETE"):
        assert_problem(call(method, "own-models/theirs", key), 404, "not_found")
    assert OwnModel.objects.filter(organization=globex).count() == 1
