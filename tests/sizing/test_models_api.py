"""The models over the API: what can be asked about, and what cannot be sized and why."""

import pytest
from django.test import Client

from tests.factories import make_ai_model


def test_models_are_listed_and_found_by_their_slugs(db: None) -> None:
    make_ai_model()
    make_ai_model("no-layout", cache_groups=[])
    listed = Client().get("/api/v1/models").json()["results"]
    assert [row["slug"] for row in listed] == ["llama-3.1-8b", "no-layout"]
    assert Client().get("/api/v1/models/llama-3.1-8b").json() == listed[0]
    assert (listed[0]["parameters"], listed[0]["missing_figure"]) == (8_030_261_248, None)
    assert "run" in listed[0]["tasks"]
    assert (listed[1]["tasks"], listed[1]["missing_figure"]) == ([], "cache_groups")
    assert Client().get("/api/v1/models?kind=speech").json()["results"] == []
    assert len(Client().get("/api/v1/models?limit=1").json()["results"]) == 1


@pytest.mark.parametrize("slug", ["none", "a%00b", "LLAMA", "%F0%9F%94%91"])
def test_an_unknown_model_is_404(db: None, slug: str) -> None:
    assert Client().get(f"/api/v1/models/{slug}").json()["code"] == "not_found"


@pytest.mark.parametrize(("query", "field"), [("kind=video", "kind"), ("family=x", "family"), ("limit=0", "limit")])
def test_a_bad_parameter_is_named(db: None, query: str, field: str) -> None:
    response = Client().get(f"/api/v1/models?{query}")
    assert (response.status_code, response.json()["errors"][0]["field"]) == (400, field)
