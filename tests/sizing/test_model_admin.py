"""Staff keep the models: they see what a figure leads to, and bad figures are refused at their field."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sizing.models import AiModel
from tests.sizing.seeded import seed

LIST = "/admin/sizing/aimodel/"
GROUP = {"layers": 32, "elements_per_token": 2048, "kv_heads": 8, "window": None}


@pytest.fixture
def staff(db: None) -> Client:
    seed("llama-3.1-8b", "qwen3-8b", "olmo-2-13b", "starcoder2-15b")
    client = Client()
    client.force_login(User.objects.create_superuser("staff@example.com", "staff@example.com", "a-password"))
    return client


def form_of(model: AiModel, **changes: Any) -> dict[str, Any]:
    values = {field.name: getattr(model, field.name) for field in AiModel._meta.fields if field.name not in ("id",)}
    values |= {
        name: json.dumps(getattr(model, name)) for name in ("cache_groups", "projections", "networks", "sources")
    }
    values |= changes
    return {name: "" if value is None else value for name, value in values.items() if value is not False}


def save(staff: Client, **changes: Any) -> Any:
    model = AiModel.objects.get(slug="llama-3.1-8b")
    return staff.post(f"{LIST}{model.pk}/change/", form_of(model, **changes))


def test_the_list_searches_filters_and_shows_the_problem(staff: Client) -> None:
    assert "19.55 GiB" in staff.get(LIST, {"q": "llama-3.1-8b"}).content.decode()
    missing = staff.get(LIST, {"sizable": "no"}).content.decode()
    assert "Its number of parameters is not published" in missing
    assert "Llama 3.1 8B" not in missing
    assert "StarCoder2 15B" not in staff.get(LIST, {"sizable": "yes"}).content.decode()
    assert staff.get(LIST, {"family": "Qwen3"}).status_code == 200
    assert "License not established" in staff.get(LIST, {"q": "olmo-2-13b"}).content.decode()


def test_a_model_shows_its_worked_example(staff: Client) -> None:
    model = AiModel.objects.get(slug="llama-3.1-8b")
    html = staff.get(f"{LIST}{model.pk}/change/").content.decode()
    for figure in ("14.96 GiB", "0.50 GiB", "20 % of 15.46 GiB", "3.09 GiB", "1.00 GiB", "19.55 GiB"):
        assert figure in html


def test_a_model_that_cannot_be_sized_names_the_missing_figure(staff: Client) -> None:
    model = AiModel.objects.get(slug="starcoder2-15b")
    html = staff.get(f"{LIST}{model.pk}/change/").content.decode()
    assert "Its number of parameters is not published: it cannot be sized" in html
    assert staff.get(f"{LIST}add/").status_code == 200


@pytest.mark.parametrize(
    ("slug", "figures"),
    [
        ("llama-3.1-8b", ["LoRA adapters", "13,631,488 trainable parameters × 16 bytes", "2,048 tokens × 1 sequence"]),
        ("flux.1-dev", ["Text encoder 2", "38.71 GiB", "Only language models are fine-tuned."]),
        ("whisper-large-v3", ["Decoder cache", "4.81 GiB"]),
        ("starcoder2-15b", ["Its number of parameters is not published"]),
    ],
)
def test_a_model_of_every_kind_shows_its_worked_examples(staff: Client, slug: str, figures: list[str]) -> None:
    if not AiModel.objects.filter(slug=slug).exists():
        seed(slug)
    html = staff.get(f"{LIST}{AiModel.objects.get(slug=slug).pk}/change/").content.decode()
    for figure in figures:
        assert figure in html
    assert staff.get(LIST, {"kind": "image"}).status_code == 200


def test_a_language_model_without_projections_can_be_run_and_not_fine_tuned(staff: Client) -> None:
    save(staff, projections="[]")
    text = staff.get(LIST, {"q": "llama-3.1-8b"}).content.decode()
    assert "Its list of projections is not published: fine-tuning it cannot be sized" in text
    assert "19.55 GiB" in text


def test_an_unchanged_form_saves(staff: Client) -> None:
    assert save(staff).status_code == 302
    assert AiModel.objects.get(slug="llama-3.1-8b").cache_groups == [GROUP]


def test_a_change_is_in_the_history(staff: Client) -> None:
    save(staff, max_context=65536)
    model = AiModel.objects.get(slug="llama-3.1-8b")
    assert (model.max_context, model.history.count()) == (65536, 2)
    assert staff.get(f"{LIST}{model.pk}/history/").status_code == 200


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cache_groups": "no json"}, "This is not JSON"),
        ({"cache_groups": "[" * 5_000}, "This is not JSON"),
        ({"cache_groups": "{}"}, "Give a list of groups"),
        ({"cache_groups": "[1]"}, "Group 1 must be an object"),
        ({"cache_groups": '[{"layers": 32}]'}, "Group 1: elements_per_token must be given"),
        ({"cache_groups": json.dumps([{**GROUP, "layers": 0}])}, "Group 1: layers must be a whole number of 1 or more"),
        (
            {"cache_groups": json.dumps([{**GROUP, "layers": -1}])},
            "Group 1: layers must be a whole number of 1 or more",
        ),
        ({"cache_groups": json.dumps([{**GROUP, "layers": "abc"}])}, "Group 1: layers must be a whole number"),
        ({"cache_groups": json.dumps([{**GROUP, "layers": 33}])}, "The groups have 33 layers together"),
        ({"cache_groups": json.dumps([{**GROUP, "elements_per_token": 2049}])}, "a multiple of 2 x kv_heads"),
        ({"cache_groups": json.dumps([{**GROUP, "heads": 8}])}, "Group 1: heads is not known"),
        ({"cache_groups": '[{"layers": NaN, "elements_per_token": 1}]'}, "is not a number (NaN)"),
        ({"cache_groups": '[{"layers": "\\ud800"}]'}, "a character that cannot be kept"),
        ({"sources": '["\\u0000"]'}, "a character that cannot be kept"),
        ({"networks": "[" * 70 + "]" * 70}, "nested more than 64 deep"),
        ({"projections": "[" + "9" * 5_000 + "]"}, "This is not JSON"),
        ({"projections": "no json"}, "This is not JSON"),
        ({"projections": "[" * 5_000}, "This is not JSON"),
        ({"projections": '[{"module": "q_proj"}]'}, "Projection 1: serves and in_features"),
        ({"networks": '[{"role": "unet", "name": "a", "parameters": 1}]'}, "Network 1: role must be one of"),
        ({"parameters": "0"}, "Give 1 or more"),
        ({"parameters": "abc"}, "whole number"),
        ({"source_url": ""}, "required"),
        ({"source_url": "javascript:alert(1)"}, "is no address of the web"),
        ({"source_url": "ftp://example.com/"}, "is no address of the web"),
        (
            {"sources": '["https://example.com", "javascript:alert(1)"]'},
            "“javascript:alert(1)” is no address of the web",
        ),
        ({"sources": '"one"'}, "Give a list of addresses"),
        ({"slug": "No Slug"}, "lower-case letters"),
    ],
)
def test_a_bad_figure_is_refused_at_its_field(staff: Client, changes: dict[str, str], said: str) -> None:
    response = save(staff, **changes)
    assert response.status_code == 200
    errors = json.dumps(dict(response.context["adminform"].form.errors), ensure_ascii=False)
    assert said in errors
    assert next(iter(changes)) in errors


def test_a_model_needs_a_source_a_license_and_a_revision_or_why_there_is_none(staff: Client) -> None:
    for empty in ({"license": ""}, {"revision": ""}, {"license": "", "revision": ""}):
        assert set(save(staff, **empty).context["adminform"].form.errors) == set(empty)
    assert set(save(staff, source_url="", not_published="x").context["adminform"].form.errors) == {"source_url"}
    assert save(staff, license="", not_published="Its card names none.").status_code == 302
    model = AiModel.objects.get(slug="llama-3.1-8b")
    assert (model.license, model.not_published) == ("", "Its card names none.")


def test_the_worked_example_is_shown_for_the_form_as_it_stands_and_nothing_is_saved(staff: Client) -> None:
    before = AiModel.objects.values().get(slug="llama-3.1-8b")
    group = json.dumps([{**GROUP, "elements_per_token": 4096}])
    page = save(staff, parameters="7000000000", cache_groups=group, license="", revision="", _preview="on")
    html = page.content.decode()
    for figure in ("7,000,000,000 parameters", "13.04 GiB", "1.00 GiB", "Give the license"):
        assert figure in html, figure
    assert AiModel.objects.values().get(slug="llama-3.1-8b") == before


def test_a_new_model_shows_its_worked_example_before_it_exists(staff: Client) -> None:
    form = form_of(AiModel.objects.get(slug="llama-3.1-8b"), slug="another", name="Another", _preview="on")
    count = AiModel.objects.count()
    html = staff.post(f"{LIST}add/", form).content.decode()
    for figure in ("14.96 GiB", "0.50 GiB", "3.09 GiB", "1.00 GiB", "19.55 GiB", "4,096 tokens × 1 request"):
        assert figure in html, figure
    assert AiModel.objects.count() == count


@pytest.mark.parametrize("kind", ["language", "image", "speech", "", "other"])
@pytest.mark.parametrize("bad", ["{}", "[1]", "[[]]", '[{"layers": NaN}]', '[{"layers": "a"}]', "null", "1", "no json"])
def test_a_preview_of_nonsense_is_an_error_on_the_form(staff: Client, kind: str, bad: str) -> None:
    response = save(staff, kind=kind, cache_groups=bad, projections=bad, networks=bad, layers="0", _preview="on")
    assert response.status_code == 200
    assert response.context["adminform"].form.errors


@pytest.mark.parametrize("button", ["_preview", "_save"])
def test_a_wrong_figure_shows_no_example_of_the_figures_that_were_saved(staff: Client, button: str) -> None:
    html = save(staff, layers="abc", cache_groups="no json", **{button: "on"}).content.decode()
    assert "Not shown until this is corrected: Layers, Cache groups." in html
    assert "19.55 GiB" not in html
