"""Staff put brought models into the catalog: from a config.json, and from an organization's own."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from rentals.models import AuditEvent
from sizing.models import AiModel
from tests.factories import make_ai_model, make_own_model, make_user
from tests.sizing.own_files import config, index, quantized

IMPORT = "/admin/sizing/aimodel/import/"
CATALOG = {
    "slug": "my-llama",
    "name": "My Llama",
    "family": "Llama 3.1",
    "license": "Llama 3.1 Community License",
    "source_url": "https://example.com/my-llama",
    "revision": "0e9e39f249a16976918f6564b8830bc894c89659",
    "not_published": "",
}


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(make_user("staff@example.com", is_staff=True, is_superuser=True))
    return client


def bring(client: Client, data: bytes = config(), **fields: Any) -> Any:
    return client.post(IMPORT, {"config_file": SimpleUploadedFile("config.json", data), **CATALOG, **fields})


def test_a_config_becomes_a_model_of_the_catalog_with_its_origin(staff: Client) -> None:
    assert IMPORT in staff.get("/admin/sizing/aimodel/").content.decode()
    assert staff.get(IMPORT).status_code == 200
    response = bring(staff)
    model = AiModel.objects.get()
    assert response.url == f"/admin/sizing/aimodel/{model.pk}/change/"
    assert (model.parameters, model.layers, model.kv_heads, model.head_dim) == (8_030_261_248, 32, 8, 128)
    assert model.cache_groups == [{"layers": 32, "elements_per_token": 2048, "kv_heads": 8, "window": None}]
    assert model.missing_figure is None
    assert model.missing_for("fine_tune") is None
    assert (model.revision, model.sources) == (CATALOG["revision"], [CATALOG["source_url"]])
    history = model.history.get()
    assert "layers = 32 from num_hidden_layers" in history.history_change_reason
    assert history.history_user.email == "staff@example.com"
    page = staff.get(response.url).content.decode()
    assert "8,030,261,248 parameters" in page
    assert staff.get(f"/admin/sizing/aimodel/{model.pk}/history/").status_code == 200


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"revision": ""}, "revision"),
        ({"license": ""}, "license"),
        ({"not_published": "both"}, "not_published"),
        ({"source_url": ""}, "source_url"),
        ({"source_url": "javascript:alert(1)"}, "source_url"),
        ({"source_url": "ftp://example.com/my-llama"}, "source_url"),
        ({"slug": "Not A Slug"}, "slug"),
        ({"slug": "llama-3.1-8b"}, "slug"),
        ({"name": "Llama 3.1 8B"}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"data": config(num_hidden_layers=0)}, "config_file"),
        ({"data": b"\x00"}, "config_file"),
    ],
)
def test_what_is_wrong_is_told_at_its_field_and_nothing_is_made(
    staff: Client, fields: dict[str, Any], where: str
) -> None:
    make_ai_model()
    response = bring(staff, **fields)
    assert response.status_code == 200
    assert where in response.context["form"].errors
    assert AiModel.objects.count() == 1


def test_a_reason_stands_in_for_a_revision(staff: Client) -> None:
    bring(staff, revision="", not_published="Published as a file without history.")
    assert AiModel.objects.get().not_published == "Published as a file without history."


def test_only_staff_who_may_add_models_import_and_publish(client: Client, acme: Any) -> None:
    row = make_own_model(acme)
    client.force_login(make_user(is_staff=True))
    assert client.get(IMPORT).status_code == 403
    assert client.post(IMPORT, CATALOG).status_code == 403
    assert client.get(f"/admin/rentals/ownmodel/{row.pk}/publish/").status_code == 403
    client.force_login(acme.owner)
    assert client.get(IMPORT).status_code == 302
    assert client.get(f"/admin/rentals/ownmodel/{row.pk}/publish/").status_code == 302


def test_an_organizations_model_is_published_with_its_source(staff: Client, acme: Any) -> None:
    row = make_own_model(acme, files=(quantized(), index(5_700_000_000)))
    address = f"/admin/rentals/ownmodel/{row.pk}/publish/"
    assert address in staff.get(f"/admin/rentals/ownmodel/{row.pk}/change/").content.decode()
    assert staff.get("/admin/rentals/ownmodel/").status_code == 200
    assert "num_hidden_layers" in staff.get(address).content.decode()
    assert "revision" in staff.post(address, CATALOG | {"revision": ""}).context["form"].errors
    assert staff.post(address, CATALOG).status_code == 302
    model = AiModel.objects.get()
    assert (model.slug, model.parameters) == ("my-llama", 8_030_261_248)
    event = AuditEvent.objects.filter(action="own_model.published").get()
    assert (event.organization, event.via, event.data) == (acme, "staff", {"model": "my-llama"})
    assert staff.get(f"/admin/rentals/ownmodel/{2**70}/publish/").status_code == 404
