"""A model of one's own without an account: read, shown with its origins, carried in the address, and never a fault."""

import base64
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.units import GIB
from sizing.checkpoints.errors import UnreadableModel
from sizing.forms import InvalidInput, question_from
from sizing.models import AiModel
from sizing.own_reading import read_files
from sizing.own_shape import MAX_TOKEN, from_token, read_figures
from sizing.permalinks import canonical_query
from tests.factories import make_machine
from tests.sizing.own_files import config, index, quantized

OWN = "/launch/own/"


@pytest.fixture(autouse=True)
def _database(db: None) -> None:
    pass


def upload(client: Client, query: str = "", **fields: Any) -> Any:
    return client.post(f"{OWN}?{query}", fields)


def file(data: bytes, name: str = "config.json") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def use_it(response: Any) -> str:
    assert response.status_code == 200, response.content.decode()
    return response.context["use_it"]


def shape_of(response: Any) -> str:
    return QueryDict(urlsplit(use_it(response)).query)["shape"]


# --- Reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["text", "file"])
def test_a_config_gives_every_figure_with_its_field(client: Client, way: str) -> None:
    fields = {"config_text": config().decode()} if way == "text" else {"config_file": file(config())}
    response = upload(client, **fields)
    page = response.content.decode()
    use_it(response)
    for words in ("8,030,261,248", "num_hidden_layers", "num_key_value_heads", "max_position_embeddings", "131,072"):
        assert words in page
    assert {one["figure"] for one in response.context["figures"]} >= {"parameters", "layers", "cache_groups"}


def test_nothing_is_stored(client: Client) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        upload(client, config_text=config().decode())
    assert not [query for query in queries if query["sql"].split()[0] in ("INSERT", "UPDATE", "DELETE")]


def test_the_answers_of_the_wizard_go_along(client: Client) -> None:
    query = "task=run&context=8192&precision_bits=8&countries=EU&countries=US&budget_usd=300&model=llama&fields=run"
    onward = QueryDict(urlsplit(use_it(upload(client, query, config_text=config().decode()))).query)
    assert onward.getlist("countries") == ["EU", "US"]
    assert (onward["context"], onward["precision_bits"], onward["budget_usd"]) == ("8192", "8", "300")
    assert "model" not in onward
    assert client.get(f"/launch/?{onward.urlencode()}").status_code == 200


def test_a_task_without_models_of_this_kind_becomes_running_it(client: Client) -> None:
    onward = QueryDict(urlsplit(use_it(upload(client, "task=image", config_text=config().decode()))).query)
    assert onward["task"] == "run"


REFUSED = [
    ({}, "config_text", "Paste the text"),
    ({"config_text": "{"}, "config_text", "not JSON"),
    ({"config_text": config(num_hidden_layers=...).decode()}, "config_text", "num_hidden_layers"),
    ({"config_text": config(num_hidden_layers=10**30).decode()}, "config_text", "num_hidden_layers"),
    ({"config_text": '{"a": 1, "a": 2}'}, "config_text", "a: it is given twice"),
    ({"config_text": "[" * 10_000}, "config_text", "nested"),
    ({"config_text": config(num_hidden_layers=float("nan")).decode()}, "config_text", "num_hidden_layers"),
    ({"config_text": config(architectures=["Nobody"]).decode()}, "config_text", "architectures"),
    ({"config_text": config().decode(), "config_file": file(config())}, "config_file", "not both"),
    ({"config_text": config().decode(), "weights": file(b"\x00" * 9)}, "weights", "safetensors header"),
    ({"config_text": config().decode(), "weights": file(index(16 * 10**9, layers=3))}, "weights", "3 layers"),
    ({"weights": file(b"GGUF\x03")}, "weights", "GGUF header"),
    ({"config_text": config().decode(), "own_name": "x" * 81}, "own_name", "80"),
    ({"config_text": config().decode(), "own_name": "a\x01b"}, "own_name", "one line"),
    ({"config_text": config().decode(), "own_name": "a\x00b"}, "own_name", ""),
]


@pytest.mark.parametrize(("fields", "where", "words"), REFUSED, ids=lambda value: str(value)[:30])
def test_a_refusal_stands_at_its_field_and_names_what_is_wrong(
    client: Client, fields: dict[str, Any], where: str, words: str
) -> None:
    for each in fields.values():
        if isinstance(each, SimpleUploadedFile):
            each.seek(0)
    response = upload(client, "task=run&context=8192", **fields)
    assert response.status_code == 400
    assert words in str(response.context["form"].errors[where])
    assert "context=8192" in response.content.decode()


def test_what_was_pasted_is_still_there_after_a_refusal(client: Client) -> None:
    response = upload(client, config_text='{"architectures": ["Nobody"]}', own_name="Mine")
    assert "Nobody" in response.content.decode()
    assert 'value="Mine"' in response.content.decode()


# --- Carried in the address ----------------------------------------------------------------------------------------


def test_a_brought_model_is_answered_like_the_catalogs(client: Client) -> None:
    make_machine(gpu_memory_bytes=24 * GIB)
    token = shape_of(upload(client, config_text=config().decode(), own_name="My Llama"))
    response = client.get(f"/launch/result/?task=run&shape={token}&context=4096", follow=True)
    assert response.status_code == 200
    page = response.content.decode()
    assert "My Llama, 16 bits, 4,096 tokens × 1 request" in page
    assert "19.55 GiB" in page
    assert "20,990,613,914 bytes" in page
    assert len(response.redirect_chain) == 1
    assert f"shape={token}" in response.redirect_chain[0][0]


def test_the_wizard_shows_the_brought_model_instead_of_the_list(client: Client) -> None:
    address = use_it(upload(client, "task=run", config_text=config().decode(), own_name="My Llama"))
    page = client.get(address).content.decode()
    assert "My Llama" in page
    assert 'name="shape"' in page
    assert 'id="id_model"' not in page


def test_stored_weights_have_no_precision_on_the_page_and_no_lower_one(client: Client) -> None:
    make_machine(gpu_memory_bytes=80 * GIB)
    response = upload(
        client, "task=run&precision_bits=8", config_text=quantized().decode(), weights=file(index(25_100_000_000))
    )
    assert "25,100,000,000 bytes" in response.content.decode()
    assert "precision_bits" not in use_it(response)
    wizard = client.get(use_it(response)).content.decode()
    assert 'name="precision_bits"' not in wizard
    assert "counted as the checkpoint stores them" in wizard
    result = client.get(f"/launch/result/?task=run&shape={shape_of(response)}", follow=True)
    page = result.content.decode()
    assert "weights as stored" in page
    assert "25,100,000,000 bytes stored in the checkpoint" in page
    assert "23.38" in page
    assert "Lower precision" not in page
    assert "The checkpoint is quantized" in page


def test_a_precision_for_stored_weights_is_an_error_that_says_so(client: Client) -> None:
    token = read_files(quantized(), (index(5_700_000_000),)).model.token
    response = client.get(f"/launch/result/?task=run&shape={token}&precision_bits=8")
    assert response.status_code == 200
    assert "its weights are counted as stored. Leave it out." in response.content.decode()


def test_a_quantized_checkpoint_is_not_fine_tuned(client: Client) -> None:
    token = read_files(quantized(), (index(5_700_000_000),)).model.token
    with pytest.raises(InvalidInput) as refused:
        question_from({"task": "fine_tune", "shape": token})
    assert "quantized (gptq, 4 bits)" in refused.value.errors[0].detail
    response = client.get(f"/launch/result/?task=fine_tune&shape={token}")
    assert "quantized (gptq, 4 bits)" in response.content.decode()


def test_an_unquantized_one_is_fine_tuned_like_the_catalogs() -> None:
    token = read_files(config()).model.token
    question = question_from({"task": "fine_tune", "shape": token})
    assert question_from(QueryDict(canonical_query(question))) == question


def test_a_model_of_the_catalog_and_ones_own_are_two_questions() -> None:
    with pytest.raises(InvalidInput) as refused:
        question_from({"task": "run", "model": "llama-3.1-8b", "shape": read_files(config()).model.token})
    (error,) = refused.value.errors
    assert (error.field, error.detail) == ("model", "Give a model of the catalog or your own, not both.")


@pytest.mark.parametrize("token", ["x" * (MAX_TOKEN + 1), "%00", "a", "e30", "é", "W10", "bnVsbA"])
@pytest.mark.parametrize("page", ["/launch/", "/launch/result/"])
def test_a_damaged_shape_is_an_error_at_its_field(client: Client, token: str, page: str) -> None:
    response = client.get(page, {"task": "run", "shape": token})
    assert response.status_code == 200
    assert 'name="shape"' in response.content.decode()
    if page.endswith("result/"):
        assert "Your own model: " in response.content.decode()


def test_the_address_of_an_answer_leads_to_an_order_review(client: Client) -> None:
    machine = make_machine(gpu_memory_bytes=24 * GIB)
    token = read_files(config()).model.token
    page = client.get(f"/launch/result/?task=run&shape={token}", follow=True).content.decode()
    assert f"machine={machine.pk}&amp;task=run&amp;shape={token}" in page


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
FIGURES = read_files(quantized(), (index(5_700_000_000),)).model.figures


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from([*FIGURES, "unknown"]), value=JSON, drop=st.booleans())
def test_any_change_of_a_carried_figure_is_a_model_or_an_error(name: str, value: Any, drop: bool) -> None:
    figures = {**FIGURES, name: value}
    if drop:
        figures.pop(name)
    token = base64.urlsafe_b64encode(json.dumps(figures).encode()).rstrip(b"=").decode()
    try:
        question = question_from({"task": "run", "shape": token})
    except InvalidInput:
        return
    assert question_from(QueryDict(canonical_query(question))) == question


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.one_of(JSON.map(json.dumps), st.text(max_size=50).filter(lambda words: "\0" not in words)),
    weights=st.one_of(st.none(), st.binary(max_size=60), st.binary(max_size=40).map(lambda rest: b"GGUF" + rest)),
)
def test_whatever_is_uploaded_there_is_a_page(client: Client, text: str, weights: bytes | None) -> None:
    fields: dict[str, Any] = {"config_text": text.encode("utf-8", "replace").decode()}
    if weights is not None:
        fields["weights"] = file(weights, "x.safetensors")
    assert upload(client, **fields).status_code in (200, 400)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(json.loads(config()))), value=JSON)
def test_whatever_a_field_of_the_file_holds_there_is_a_page(client: Client, name: str, value: Any) -> None:
    assert upload(client, config_text=json.dumps({**json.loads(config()), name: value})).status_code in (200, 400)


def test_every_address_stays_in_its_bounds() -> None:
    assert not AiModel.objects.exists()
    assert len(read_files(config()).model.token) < MAX_TOKEN // 2
    model = read_files(quantized(), (index(5_700_000_000),), "Ünïcode 模型").model
    assert from_token(model.token) == model


@pytest.mark.parametrize(("quantization", "stored"), [("", 1_086_259_814), ("gguf", 900_000_000)])
def test_an_address_with_fewer_bytes_than_its_parameters_take_is_refused(quantization: str, stored: int) -> None:
    figures = read_files(config()).model.figures | {"stored_bytes": stored}
    if quantization:
        figures["quantization"] = quantization
    with pytest.raises(UnreadableModel) as caught:
        read_figures(figures)
    assert caught.value.field == "stored_bytes"
    assert f"{stored:,} bytes" in caught.value.reason
