"""A config.json in the body of a request, and the command that reads a model's files."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.units import GIB
from tests.factories import make_machine
from tests.sizing.own_files import config, index, quantized

CONFIG = json.loads(config())
QUANTIZED = json.loads(quantized())
INDEX = json.loads(index(25_100_000_000))


@pytest.fixture(autouse=True)
def _database(db: None) -> None:
    pass


@pytest.fixture(autouse=True)
def _unthrottled(monkeypatch: pytest.MonkeyPatch) -> None:
    from rest_framework.views import APIView

    monkeypatch.setattr(APIView, "throttle_classes", [])


def post(address: str, body: Any) -> Any:
    return Client(raise_request_exception=False).post(
        f"/api/v1/{address}", json.dumps(body), content_type="application/json"
    )


def errors_of(response: Any) -> list[tuple[str, str]]:
    assert response.status_code == 400, response.content
    return [(error["field"], error["code"]) for error in response.json()["errors"]]


def sized(**workload: Any) -> Any:
    return post("sizing", {"workload": {"task": "run", **workload}})


def test_a_config_stands_in_place_of_a_model() -> None:
    memory = sized(config=CONFIG, context=4096).json()
    assert (memory["total_bytes"], memory["total_gib"]) == (20990613914, "19.55")
    assert memory["sources"] == []
    assert any("derived from the files" in one for one in memory["assumptions"])


def test_an_index_beside_it_counts_the_weights_as_stored() -> None:
    memory = sized(config=QUANTIZED, safetensors_index=INDEX, name="Mine").json()
    assert memory["lines"][0] == {
        "code": "weights",
        "label": "Model weights",
        "formula": "25,100,000,000 bytes stored in the checkpoint",
        "bytes": 25_100_000_000,
        "gib": "23.38",
    }
    two = post("sizing", {"workload": {"task": "run", "config": QUANTIZED, "safetensors_index": INDEX}, "gpus": 2})
    assert two.json()["lines"][0]["formula"] == (
        "25,100,000,000 bytes stored in the checkpoint ÷ 2 GPUs = 11.69 GiB on each of 2 GPUs"
    )
    assert errors_of(sized(config=QUANTIZED, safetensors_index=INDEX, precision_bits=8)) == [
        ("workload.precision_bits", "as_stored")
    ]


def test_recommendations_take_it_and_offer_no_lower_precision_of_what_is_stored() -> None:
    make_machine(gpu_memory_bytes=80 * GIB)
    body = {"workload": {"task": "run", "config": QUANTIZED, "safetensors_index": INDEX}}
    answer = post("recommendations", body).json()
    assert answer["alternatives"]["precisions"] == []
    assert [reason["code"] for reason in answer["recommended"][0]["confidence"]["reasons"]] == ["quantized"]
    assert {"code": "precision_bits", "value": None, "text": "Weights as the checkpoint stores them."} in answer[
        "constraints"
    ]


def test_fine_tuning_a_stored_quantized_base_is_refused_by_name() -> None:
    body = {"task": "fine_tune", "config": QUANTIZED, "safetensors_index": INDEX}
    response = post("sizing", {"workload": body})
    assert errors_of(response) == [("workload.config", "not_sizable")]
    assert "quantized (gptq, 4 bits)" in response.json()["errors"][0]["detail"]
    assert post("sizing", {"workload": {"task": "fine_tune", "config": CONFIG}}).status_code == 200


WRONG = [
    ({"config": []}, [("workload.config", "invalid")]),
    ({"config": {}}, [("workload.config.architectures", "unreadable_model")]),
    ({"config": CONFIG | {"num_hidden_layers": "32"}}, [("workload.config.num_hidden_layers", "unreadable_model")]),
    ({"config": CONFIG | {"num_hidden_layers": 10**30}}, [("workload.config.num_hidden_layers", "unreadable_model")]),
    ({"config": CONFIG, "safetensors_index": {}}, [("workload.safetensors_index.metadata", "unreadable_model")]),
    ({"safetensors_index": INDEX}, [("workload.safetensors_index", "invalid")]),
    ({"config": CONFIG, "name": 3}, [("workload.name", "invalid")]),
    ({"config": CONFIG, "model": "llama-3.1-8b"}, [("workload.model", "repeated")]),
    ({"config": CONFIG, "task": "image"}, [("workload.config", "other_task")]),
    ({"config": CONFIG, "context": 10**7}, [("workload.context", "max_value")]),
    ({"config": CONFIG, "stored_bytes": 5}, [("workload.stored_bytes", "unknown_field")]),
]


@pytest.mark.parametrize(("workload", "errors"), WRONG, ids=lambda value: str(value)[:40])
def test_errors_stand_at_the_path_of_what_is_wrong(workload: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert errors_of(sized(**workload)) == errors


def test_reading_gives_the_figures_with_their_origin_and_a_shape_that_asks_the_same() -> None:
    read = post("models/read", {"config": CONFIG, "name": "My Llama"})
    assert read.status_code == 200, read.content
    answer = read.json()
    assert answer["figures"]["parameters"] == 8_030_261_248
    layers = next(one for one in answer["provenance"] if one["figure"] == "layers")
    assert layers["fields"] == ["num_hidden_layers"]
    assert sum(part["parameters"] for part in answer["parts"]) == 8_030_261_248
    assert sized(shape=answer["shape"]).json() == sized(config=CONFIG, name="My Llama").json()


def test_reading_needs_a_config_and_knows_its_fields() -> None:
    assert errors_of(post("models/read", {})) == [("config", "required")]
    assert errors_of(post("models/read", {"config": CONFIG, "weights": 1})) == [("weights", "unknown_field")]
    assert post("models/read", []).status_code == 400


def test_limits_of_the_api_hold_for_files_too() -> None:
    deep = f'{{"workload": {{"task": "run", "config": {"[" * 10_000}{"]" * 10_000}}}}}'
    for body, status in (
        (deep, 400),
        ('{"config": {"a": 1, "a": 2}}', 400),
        ('{"config": {"num_hidden_layers": NaN}}', 400),
        (f'{{"config": {{"a": {"9" * 5000}}}}}', 400),
        (f'{{"config": {{"a": "{"x" * 2**20}"}}}}', 413),
    ):
        response = Client(raise_request_exception=False).post("/api/v1/models/read", body, "application/json")
        assert response.status_code == status, body[:60]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from([*CONFIG, "quantization_config", "text_config"]), value=JSON)
def test_whatever_a_field_holds_the_answer_is_one_or_a_400(name: str, value: Any) -> None:
    assert sized(config={**CONFIG, name: value}).status_code in (200, 400)
    assert sized(config=CONFIG, safetensors_index={**INDEX, name: value, "metadata": value}).status_code in (200, 400)


# --- The command --------------------------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("size", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_reads_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(quantized())
    (tmp_path / "index.json").write_bytes(index(25_100_000_000))
    text = run("--config", str(tmp_path / "config.json"), "--index", str(tmp_path / "index.json"))
    assert "25,100,000,000 bytes stored in the checkpoint" in text
    assert "weights as stored" in text
    (tmp_path / "plain.json").write_bytes(config())
    assert "20,990,613,914 bytes" in run("--config", str(tmp_path / "plain.json"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "nowhere.json"], "--config: nowhere.json cannot be read"),
        (["--index", "nowhere.json"], "--index: give the config.json"),
        (["--gguf", "a", "--config", "b"], "--gguf: a GGUF file describes its model alone"),
    ],
)
def test_the_command_says_which_option_is_wrong(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words.replace(".", r"\.")):
        run(*arguments)


def test_the_command_names_the_field_of_a_file_it_does_not_understand(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(config(num_attention_heads=0))
    (tmp_path / "model.gguf").write_bytes(b"GGUF\x03\x00")
    with pytest.raises(CommandError, match="num_attention_heads: "):
        run("--config", str(tmp_path / "config.json"))
    with pytest.raises(CommandError, match="GGUF header: "):
        run("--gguf", str(tmp_path / "model.gguf"))
