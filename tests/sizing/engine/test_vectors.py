"""Vectors that any implementation of the same rules must reproduce to the byte."""

import json
from typing import Any

import pytest

from catalog.units import GIB
from sizing.engine.estimate import MemoryEstimate, estimate
from sizing.engine.fit import Device, Fit, fit, largest_context
from sizing.engine.shapes import LanguageModel
from sizing.engine.workloads import RunModel
from tests.sizing.engine.shapes import HERE, gib, plain

VECTORS = {vector["id"]: vector for vector in json.loads((HERE / "vectors.json").read_text())["vectors"]}


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(vector, id=name) for name, vector in VECTORS.items() if vector["kind"] == kind]


def workload(inputs: dict[str, Any]) -> RunModel:
    model = LanguageModel(
        name="as given",
        parameters=inputs["parameters"],
        attention_heads=inputs.get("attention_heads", 32),
        cache_groups=plain(inputs["layers"], inputs["kv_heads"], inputs["head_dim"]),
        max_context=131072,
    )
    return RunModel(model, inputs["bits"], inputs["context"], inputs["requests"])


def sized(inputs: dict[str, Any]) -> MemoryEstimate:
    return estimate(workload(inputs), inputs["gpus"])


@pytest.mark.parametrize("vector", of_kind("llm"))
def test_an_estimate_has_the_vector_s_bytes(vector: Any) -> None:
    need, expected = sized(vector["inputs"]), vector["expect"]
    found = {term.code: need.line_bytes(term) for term in need.terms}
    found |= {"total": need.total_bytes, "per_gpu": need.per_gpu_bytes}
    assert {name: {"bytes": size, "gib": gib(size)} for name, size in found.items()} == expected


@pytest.mark.parametrize("vector", of_kind("fit"))
def test_a_fit_has_the_vector_s_verdict(vector: Any) -> None:
    asked = workload(VECTORS[vector["inputs"]["need"]]["inputs"])
    device = Device(1, vector["inputs"]["memory_bytes"])
    assert isinstance(fit(asked, device), Fit) is vector["expect"]["fits"]
    if "max_context" in vector["expect"]:
        assert largest_context(asked, device) == vector["expect"]["max_context"]


@pytest.mark.parametrize("vector", of_kind("units"))
def test_a_size_prints_as_the_vector_says(vector: Any) -> None:
    assert gib(vector["inputs"]["bytes"]) == vector["expect"]["gib_2"]


@pytest.mark.parametrize(
    ("bits", "context", "printed", "total"),
    [
        (16, 4096, ["14.96", "0.50", "3.09", "1.00"], "19.55"),
        (8, 4096, ["7.48", "0.50", "1.60", "1.00"], "10.57"),
        (4, 4096, ["3.74", "0.50", "0.85", "1.00"], "6.09"),
        (16, 128_000, ["14.96", "15.63", "6.12", "1.00"], "37.70"),
        (16, 32_768, ["14.96", "4.00", "3.79", "1.00"], "23.75"),
    ],
)
def test_llama_8b_prints_the_figures_of_the_worked_example(
    bits: int, context: int, printed: list[str], total: str
) -> None:
    model = LanguageModel("Llama 3.1 8B", 8_030_261_248, 32, plain(32, 8, 128), 131072)
    need = estimate(RunModel(model, bits, context, 1))
    assert [gib(term.bytes) for term in need.terms] == printed
    assert gib(need.total_bytes) == total
    if (bits, context) == (16, 4096):
        assert need.total_bytes == 20_990_613_914
    if context == 32_768:
        assert 24_000_000_000 < need.total_bytes <= 24 * GIB
