"""The wizard's page: three steps, no default task, errors where they are, the address as the state."""

import html
import re

import pytest

from catalog.units import GIB
from tests import factories

GOOD = {"task": "run", "model": "llama-3.1-8b"}


@pytest.fixture(autouse=True)
def _shop(db):
    factories.make_ai_model()
    factories.make_machine(name="Measured 24 GiB")


def text_of(response) -> str:
    assert response.status_code == 200
    return html.unescape(response.content.decode())


@pytest.mark.parametrize("legend", ["What you want to do", "Which model", "Budget and preferences"])
def test_the_three_steps_are_fieldsets_with_their_legends(client, legend):
    assert re.search(rf"<legend>{legend}</legend>", text_of(client.get("/launch/")))


def test_no_task_is_chosen_for_anybody(client):
    tasks = re.findall(r'<input type="radio" name="task"[^>]*>', text_of(client.get("/launch/")))
    assert len(tasks) == 4
    assert not any("checked" in task for task in tasks)


def test_the_answers_in_the_address_are_filled_in_and_not_judged(client):
    text = text_of(client.get("/launch/", {**GOOD, "context": "999999999", "budget_usd": "12,50", "countries": ["EU"]}))
    assert re.search(r'name="context" value="999999999"', text)
    assert re.search(r'name="budget_usd" value="12,50"', text)
    assert re.search(r'value="EU" id="id_countries_0" checked', text)
    assert re.search(r'<option value="llama-3.1-8b" selected>', text)
    assert "There is a problem" not in text


def test_the_facts_of_the_chosen_model_are_told_with_their_source(client):
    text = text_of(client.get("/launch/", GOOD))
    assert "8,030,261,248 parameters · Llama 3.1 Community License · maximum context 131,072 tokens" in text
    assert "data it was sized with" in text


def test_an_option_names_parameters_and_license_and_a_model_without_a_figure_is_disabled_with_the_reason(client):
    factories.make_ai_model("secretive", name="Secretive 7B", cache_groups=[])
    text = text_of(client.get("/launch/", {"task": "run"}))
    assert "Llama 3.1 8B · 8.03 billion parameters · Llama 3.1 Community License" in text
    assert re.search(r'<option value="secretive" disabled>[^<]*its cache layout is not published', text)


def test_wrong_answers_come_back_with_a_summary_the_fields_and_everything_that_was_typed(client):
    asked = {**GOOD, "context": "131073", "lots": "two", "budget_usd": "58,80"}
    text = text_of(client.get("/launch/result/", asked))
    sentence = "Context must be 131,072 or less (published maximum of Llama 3.1 8B)."
    assert text.count(sentence) == 2
    assert re.search(r'role="alert"[^>]*>\s*<h2[^>]*>There is a problem</h2>', text)
    assert '<a href="#id_context">' in text
    assert '<a href="#id_lots">' in text
    assert re.search(r'name="context"[^>]*aria-invalid="true"', text)
    assert re.search(r'name="lots" value="two"', text)
    assert re.search(r'name="budget_usd" value="58,80"', text)


def test_every_link_of_the_summary_leads_to_an_element_of_the_page(client):
    bad = {
        "task": "x",
        "model": "x",
        "precision_bits": "x",
        "context": "x",
        "requests": "x",
        "reserve_gib": "x",
        "reserve_reason": "x" * 999,
        "budget_usd": "x",
        "max_hourly_usd": "x",
        "term_days": "x",
        "lots": "x",
        "tier": "x",
        "countries": "x",
    }
    text = text_of(client.get("/launch/result/", bad))
    targets = re.findall(r'<li><a href="#([^"]+)">', text)
    assert len(targets) == len(bad)
    for target in targets:
        assert f'id="{target}"' in text, target


def test_fields_of_another_task_say_so_and_give_no_figure(client):
    text = text_of(client.get("/launch/result/", {**GOOD, "task": "fine_tune", "context": "4096"}))
    assert "Context belongs to “Run a model”, not to “Fine-tune a model”: leave it out." in text
    assert "GiB needed" not in text
    assert "19.55" not in text


@pytest.mark.parametrize("address", ["/launch/", "/launch/result/"])
def test_an_unknown_name_is_a_400_that_names_the_known_ones(client, address):
    response = client.get(address, {**GOOD, "contxt": "1"})
    assert response.status_code == 400
    text = html.unescape(response.content.decode())
    assert "“contxt” is not known. Did you mean context?" in text
    assert "<code>precision_bits</code>" in text


def test_the_community_sentence_stands_at_the_tier(client):
    assert "the provider can read the memory of the session" in text_of(client.get("/launch/"))


def test_asked_by_its_script_the_answer_is_one_sentence_and_the_address_follows(client):
    response = client.get("/launch/result/", {**GOOD, "budget_usd": ""}, headers={"HX-Request": "true"})
    text = text_of(response)
    assert text.strip().startswith("19.55 GiB needed, 1 machine fits, from $110.00 for 7 days.")
    assert response["HX-Replace-Url"] == "/launch/?task=run&model=llama-3.1-8b"
    assert "HX-Request" in response["Vary"]


def test_asked_by_its_script_an_incomplete_question_says_what_is_missing(client):
    response = client.get("/launch/result/", {"task": "run", "model": ""}, headers={"HX-Request": "true"})
    assert text_of(response).strip().startswith("Choose a model.")


def test_when_nothing_fits_the_live_line_says_so(client):
    response = client.get("/launch/result/", {**GOOD, "requests": "99"}, headers={"HX-Request": "true"})
    assert "GiB needed, no machine fits" in text_of(response)


def test_places_are_those_of_the_catalog_with_eu_first(client):
    factories.make_machine(country="JP", gpu_memory_bytes=24 * GIB)
    text = text_of(client.get("/launch/"))
    places = re.findall(r'name="countries" value="([A-Z]{2})"', text)
    assert places == ["EU", "DE", "JP"]
    assert "EU (27 countries)" in text
    assert "territories with a code of their own are outside" in text
