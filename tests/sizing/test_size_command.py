"""`manage.py size`: the same lines, words and refusals as pages and API."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from sizing.models import AiModel
from tests.sizing.seeded import seed


@pytest.fixture(autouse=True)
def models(db: None) -> None:
    seed("llama-3.1-8b", "falcon-7b", "starcoder2-15b")


def size(*options: str) -> str:
    out = StringIO()
    call_command("size", *options, stdout=out)
    return out.getvalue()


def test_the_worked_example_prints_its_lines_and_total() -> None:
    text = size("--model", "llama-3.1-8b", "--bits", "16", "--context", "4096", "--requests", "1")
    for figure in ("14.96", "0.50", "20 % of 15.46 GiB", "3.09", "1.00", "19.55", "20,990,613,914 bytes"):
        assert figure in text
    assert "Lines are rounded" not in text


def test_at_8_bits_the_rounding_is_told() -> None:
    text = size("--model", "llama-3.1-8b", "--bits", "8")
    assert "10.57" in text
    assert "Lines are rounded; the total is computed from exact bytes." in text


def test_json_is_the_memory_block_of_the_api() -> None:
    printed = json.loads(size("--model", "llama-3.1-8b", "--gpus", "2", "--json"))
    body: dict[str, Any] = {"workload": {"task": "run", "model": "llama-3.1-8b"}, "gpus": 2}
    assert printed == Client().post("/api/v1/sizing", body, content_type="application/json").json()


def test_a_reserve_is_a_line_of_its_own() -> None:
    text = size("--model", "llama-3.1-8b", "--reserve-gib", "2.5", "--reserve-reason", "a web server")
    assert "2.50 GiB × 1 GPU: a web server" in text
    assert "22.05" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--model", "lama-3.1-8b"],
            "--model: “lama-3.1-8b” is not a model of the catalog. Did you mean llama-3.1-8b?",
        ),
        (["--model", "starcoder2-15b"], "--model: StarCoder2 15B cannot be sized"),
        (["--model", ""], "--model: Choose a model."),
        (["--model", "a\0b"], "--model:"),
        (["--model", "llama-3.1-8b", "--bits", "5"], "--bits: Precision must be 16, 8 or 4 bits."),
        (["--model", "llama-3.1-8b", "--context", "131073"], "--context: Context must be 131,072 or less"),
        (["--model", "llama-3.1-8b", "--context", "abc"], "--context: Context must be a whole number"),
        (["--model", "llama-3.1-8b", "--context", ""], "--context: Context is empty"),
        (["--model", "llama-3.1-8b", "--requests", "-1"], "--requests: Requests at once must be 1 or more."),
        (["--model", "llama-3.1-8b", "--gpus", "3"], "--gpus: Llama 3.1 8B can run on 1, 2, 4, 8 or 16 GPUs"),
        (["--model", "llama-3.1-8b", "--gpus", "two"], "--gpus:"),
        (["--model", "falcon-7b", "--gpus", "2"], "--gpus: Falcon 7B can run on 1 GPU only of one machine."),
        (["--model", "llama-3.1-8b", "--reserve-gib", "2"], "--reserve-reason: A reserve needs its reason"),
        (["--model", "llama-3.1-8b", "--reserve-gib", "NaN", "--reserve-reason", "x"], "--reserve-gib:"),
    ],
)
def test_a_bad_option_is_named_with_its_fault(options: list[str], said: str) -> None:
    with pytest.raises(CommandError) as refused:
        size(*options)
    assert said in str(refused.value)


def test_without_models_it_says_how_to_load_them() -> None:
    AiModel.objects.all().delete()
    with pytest.raises(CommandError, match="load_models"):
        size("--model", "llama-3.1-8b")


def test_a_short_model_is_sized_at_its_own_maximum_when_no_context_is_given() -> None:
    assert "2,048 tokens" in size("--model", "falcon-7b")
