"""An organization's own models: kept by those who may, chosen in its wizard, ordered for, and nobody else's."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from catalog.units import GIB
from rentals.errors import NotPermitted
from rentals.models import AuditEvent, Membership, Order, OwnModel
from rentals.own_models import MOST_MODELS, TooManyModels, add_own_model, shapes_of
from sizing.own_reading import read_files
from tests.factories import make_machine, make_member, make_own_model
from tests.sizing.own_files import config, index, quantized

MODELS = "/o/acme/models/"
RESULT = "/o/acme/launch/result/"


@pytest.fixture
def owner(client: Client, acme: Any) -> Client:
    client.force_login(acme.owner)
    return client


def bring(client: Client, **fields: Any) -> Any:
    return client.post(MODELS, {"config_file": SimpleUploadedFile("config.json", config()), **fields}, follow=True)


def test_an_uploaded_model_is_kept_with_the_origin_of_its_figures(owner: Client, acme: Any) -> None:
    response = bring(owner, own_name="My Llama")
    assert response.redirect_chain == [("/o/acme/models/my-llama/", 302)]
    page = response.content.decode()
    for words in ("My Llama", "8,030,261,248", "num_hidden_layers", "Use it"):
        assert words in page
    row = OwnModel.objects.get()
    assert (row.organization, row.created_by, row.figures["parameters"]) == (acme, acme.owner, 8_030_261_248)
    event = AuditEvent.objects.get()
    assert (event.action, event.object_id, event.actor) == ("own_model.added", "my-llama", acme.owner)
    assert "My Llama" in owner.get(MODELS).content.decode()


def test_two_of_one_name_have_two_slugs(acme: Any) -> None:
    assert [make_own_model(acme, "A model!").slug, make_own_model(acme, "A model!").slug] == ["a-model", "a-model-2"]
    assert make_own_model(acme, "模型").slug == "model"


def test_a_refused_file_is_told_at_its_field_and_nothing_is_kept(owner: Client) -> None:
    response = owner.post(MODELS, {"config_text": config(num_hidden_layers=0).decode()})
    assert response.status_code == 400
    assert "num_hidden_layers" in str(response.context["form"].errors["config_text"])
    assert not OwnModel.objects.exists()


@pytest.mark.parametrize(("role", "may"), [("owner", True), ("admin", True), ("member", True), ("viewer", False)])
def test_viewers_look_and_all_others_add_and_delete(client: Client, acme: Any, role: str, may: bool) -> None:
    make_own_model(acme)
    client.force_login(make_member(acme, role))
    assert ("Bring a model" in client.get(MODELS).content.decode()) is may
    assert client.get(f"{MODELS}my-llama/").status_code == 200
    assert client.get(f"{MODELS}my-llama/delete/").status_code == (200 if may else 403)
    added = client.post(MODELS, {"config_text": config().decode()})
    assert added.status_code == (302 if may else 403)
    deleted = client.post(f"{MODELS}my-llama/delete/")
    assert deleted.status_code == (302 if may else 403)
    assert OwnModel.objects.filter(slug="my-llama").exists() is not may
    if not may:
        membership = Membership.objects.get(role="viewer")
        with pytest.raises(NotPermitted):
            add_own_model(membership, read_files(config()), now=OwnModel.objects.get().created_at)


def test_an_organization_keeps_no_more_than_the_limit(acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rentals.own_models.MOST_MODELS", 1)
    assert MOST_MODELS > 1
    make_own_model(acme)
    with pytest.raises(TooManyModels):
        make_own_model(acme)


# --- In the wizard ------------------------------------------------------------------------------------------------


def test_the_wizard_offers_them_first(owner: Client, acme: Any, globex: Any) -> None:
    make_own_model(acme)
    make_own_model(globex, "Their Llama")
    page = owner.get("/o/acme/launch/?task=run").content.decode()
    assert '<optgroup label="Your models">' in page
    assert 'value="own:my-llama"' in page
    assert "Their Llama" not in page
    assert "own:my-llama" not in owner.get("/launch/?task=run").content.decode()


def test_a_result_and_its_address_name_the_model_by_its_slug(owner: Client, acme: Any) -> None:
    make_machine(gpu_memory_bytes=24 * GIB)
    make_own_model(acme)
    response = owner.get(f"{RESULT}?task=run&model=own:my-llama", follow=True)
    page = response.content.decode()
    assert "My Llama, 16 bits" in page
    assert "20,990,613,914 bytes" in page
    assert "model=own%3Amy-llama" in response.redirect_chain[0][0]


def test_stored_weights_have_no_precision_to_choose(owner: Client, acme: Any) -> None:
    make_own_model(acme, "Small", files=(quantized(), index(5_700_000_000)))
    shown = owner.get("/o/acme/launch/?task=run&model=own:small").content.decode()
    assert 'name="precision_bits"' not in shown
    # The page had the fields of another model when this one was chosen: it comes back with the right ones.
    moved = owner.get(f"{RESULT}?fields=run&task=run&model=own:small&precision_bits=16&context=4096&requests=1")
    assert 'name="precision_bits"' not in moved.content.decode()
    answer = owner.get(f"{RESULT}?fields=run-stored&task=run&model=own:small&context=4096&requests=1", follow=True)
    assert "weights as stored" in answer.content.decode()


def test_anothers_model_is_as_unknown_as_one_that_nobody_has(owner: Client, globex: Any) -> None:
    make_own_model(globex, "Secret")
    pages = [
        owner.get(f"{RESULT}?task=run&model=own:{slug}").content.decode().replace(slug, "SLUG")
        for slug in ("secret", "nobody")
    ]
    plain = [page.partition("<main")[2].partition("</main>")[0] for page in pages]
    assert "is not a model of the catalog" in plain[0]
    assert plain[0] == plain[1]
    assert "is not a model of the catalog" in owner.get("/launch/result/?task=run&model=own:secret").content.decode()


def test_an_order_keeps_the_model_it_was_sized_for(owner: Client, acme: Any) -> None:
    machine = make_machine(gpu_memory_bytes=24 * GIB)
    make_own_model(acme)
    query = f"machine={machine.pk}&term_days=7&lots=1&task=run&model=own:my-llama&context=4096"
    review = owner.get(f"/o/acme/orders/review/?{query}")
    assert "My Llama, 16 bits" in review.content.decode()
    fields = {
        "machine": machine.pk,
        "term_days": "7",
        "lots": "1",
        "task": "run",
        "model": "own:my-llama",
        "context": "4096",
        "environment": "vllm",
        "idempotency_key": "one",
        "expected_total_usd": str(review.context["review"].offer.total_usd),
    }
    placed = owner.post("/o/acme/orders/review/", fields, follow=True)
    assert placed.status_code == 200, placed.content.decode()
    order = Order.objects.get()
    assert order.workload["model"] == "own:my-llama"
    assert order.sizing["memory"]["total_bytes"] == 20990613914
    owner.post(f"{MODELS}my-llama/delete/")
    assert not shapes_of(acme)
    kept = owner.get(f"/o/acme/orders/{order.pk}/")
    assert "My Llama" in kept.content.decode()
    assert AuditEvent.objects.filter(action="own_model.deleted").exists()


def test_figures_that_cannot_be_read_any_more_are_said_so_and_not_offered(owner: Client, acme: Any) -> None:
    row = make_own_model(acme)
    OwnModel.objects.filter(pk=row.pk).update(figures={"old": 1})
    assert "cannot be read any more" in owner.get(f"{MODELS}my-llama/").content.decode()
    assert owner.get(MODELS).status_code == 200
    assert "own:my-llama" not in owner.get("/o/acme/launch/?task=run").content.decode()
