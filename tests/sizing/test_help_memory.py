"""The help page on memory shows the engine's own figures."""

import re
from html import unescape

from django.test import Client

from sizing.engine.confidence import REASONS
from sizing.explain import machines
from sizing.models import AiModel
from tests.sizing.seeded import seed


def page() -> str:
    response = Client().get("/help/memory/")
    assert response.status_code == 200
    return response.content.decode()


def test_the_worked_example_is_computed(db: None) -> None:
    seed("llama-3.1-8b")
    html = page()
    for figure in ("14.96", "0.50", "20 % of 15.46 GiB", "3.09", "1.00", "19.55", "10.57 GiB", "6.09 GiB", "23.75 GiB"):
        assert figure in html
    assert "planning rule" in html
    assert "guaranteed" not in html
    assert "24 GB nominal" in html
    assert "22.35 GiB" in html


def test_every_reason_is_told_with_what_would_raise_it(db: None) -> None:
    html = unescape(page())
    for reason in REASONS:
        assert machines.REASONS[reason] in html
        assert machines.RAISES[reason] in html
    assert "Image generation, without any other: <strong>low</strong>" in html


def test_the_example_follows_the_catalog(db: None) -> None:
    seed("llama-3.1-8b")
    AiModel.objects.filter(slug="llama-3.1-8b").update(parameters=10 * 8_030_261_248)
    assert "149.58" in page()


def test_without_the_example_s_model_the_page_still_explains(db: None) -> None:
    html = page()
    assert "How to read the confidence" in html
    assert "worked example" not in html


def test_b080_gb_stands_beside_memory_only_as_a_nominal_size(db: None) -> None:
    seed("llama-3.1-8b")
    text = re.sub(r"<[^>]+>", " ", page())
    for place in re.finditer(r"\d\s*GB\b", text):
        assert text[place.end() :].lstrip().startswith("nominal"), text[place.start() - 40 : place.end() + 20]
