"""The conformance vectors: the engine meets every one, a changed one is noticed, and anyone can fetch them."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from sizing.conformance.check import check
from sizing.conformance.evaluate import KINDS
from sizing.conformance.vectors import DIRECTORY, MalformedVectors, Vector, by_id, load, own

VECTORS = by_id(own())
ADDRESS = "/api/v1/sizing/vectors"


def tampered(name: str, *path: str | int, value: Any) -> Vector:
    """A vector with one figure changed."""
    document = deepcopy(VECTORS[name].document())
    inner = document
    for step in path[:-1]:
        inner = inner[step]  # type: ignore[index]
    assert inner[path[-1]] != value  # type: ignore[index]
    inner[path[-1]] = value  # type: ignore[index]
    return replace(VECTORS[name], inputs=document["inputs"], expect=document["expect"])


def differing(vector: Vector) -> list[str]:
    return [difference.place for difference in check(vector).differences]


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())
def test_the_engine_meets_the_vector_to_the_byte(vector: Vector) -> None:
    assert [str(difference) for difference in check(vector).differences] == []


def test_every_kind_has_vectors() -> None:
    assert {vector.kind for vector in VECTORS.values()} == set(KINDS)


def test_vectors_have_the_published_counts_of_66_models() -> None:
    assert len([name for name in VECTORS if name.startswith("adapters-r16-")]) == 66
    assert VECTORS["adapters-r16-llama-3.1-8b"].expect["trainable_parameters"] == 13_631_488


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (("expect", "lines", 1, "bytes"), 536_870_913, "lines.kv_cache.bytes"),
        (("expect", "lines", 0, "gib"), "14.97", "lines.weights.gib"),
        (("expect", "total", "bytes"), 20_990_613_915, "total.bytes"),
        (("expect", "total", "bytes"), "20990613914", "total.bytes"),
        (("expect", "per_gpu", "gib"), "19.56", "per_gpu.gib"),
        (("inputs", "context"), 4097, "lines.kv_cache.bytes"),
    ],
)
def test_a_tampered_vector_fails_at_the_figure(path: tuple[Any, ...], value: Any, place: str) -> None:
    assert differing(tampered("llama-3.1-8b-16-4096", *path, value=value))[0] == place


def test_a_line_that_is_missing_or_too_many_is_noticed() -> None:
    lines = VECTORS["llama-3.1-8b-16-4096"].expect["lines"]
    without = tampered("llama-3.1-8b-16-4096", "expect", "lines", value=lines[:-1])
    assert "lines.runtime" in differing(without)
    another = tampered("llama-3.1-8b-16-4096", "expect", "lines", value=[*lines, {"code": "luck", "bytes": 0}])
    assert "lines.luck" in differing(another)
    turned = tampered("llama-3.1-8b-16-4096", "expect", "lines", value=lines[::-1])
    assert differing(turned) == ["lines.order"]


def test_a_figure_that_a_vector_does_not_state_is_noticed() -> None:
    vector = VECTORS["llama-3.1-8b-16-4096"]
    silent = replace(vector, expect={"total": vector.expect["total"]})
    assert differing(silent) == ["lines", "per_gpu"]


def test_a_refusal_must_be_expected_and_at_the_same_input() -> None:
    wrong = tampered("llama-3.1-8b-context-too-long", "expect", "refused", value="requests")
    assert differing(wrong) == ["refused"]
    accepted = tampered("llama-3.1-8b-context-too-long", "inputs", "context", value=131_072)
    assert "refused" in differing(accepted)


def test_an_input_that_the_kind_does_not_take_fails_and_is_named() -> None:
    vector = VECTORS["llama-3.1-8b-16-4096"]
    found = check(replace(vector, inputs={**vector.inputs, "batch_size": 2})).differences
    assert "batch_size" in str(found[0])
    (unknown,) = check(replace(vector, kind="training")).differences
    assert "training" in str(unknown)


# --- Files and command ----------------------------------------------------------------------------------------------


def written(path: Path, change: Any) -> Path:
    document = json.loads((DIRECTORY / "run.json").read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


def test_the_command_passes_and_names_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("check_vectors")
    printed = capsys.readouterr().out
    assert f"All {len(VECTORS)} vectors pass." in printed
    assert all(file.name in printed for file in own())


def test_the_command_fails_at_the_first_line_that_differs(tmp_path: Path) -> None:
    def change(document: Any) -> None:
        document["vectors"][0]["expect"]["lines"][2]["bytes"] += 1

    with pytest.raises(CommandError) as refused:
        call_command("check_vectors", str(written(tmp_path / "changed.json", change)))
    assert str(refused.value) == (
        "changed.json, llama-3.1-8b-16-4096, lines.margin.bytes: expected 3,319,478,683, actual 3,319,478,682"
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda document: document["vectors"][3].pop("origin"), "origin is missing"),
        (lambda document: document["vectors"][3].update(note="x"), "note is not known"),
        (lambda document: document["vectors"][3].update(inputs=[]), "inputs: must be an object"),
        (lambda document: document["vectors"][3].update(sources=[1]), "sources"),
        (lambda document: document["vectors"].append(document["vectors"][0]), "is used in"),
        (lambda document: document["vectors"][3]["inputs"].update(context=1.5), "1.5 is no whole number"),
        (lambda document: document.update(format="other"), "format: must be berth-vectors/1"),
        (lambda document: document.pop("title"), "must be an object with"),
    ],
)
def test_a_malformed_file_is_refused_by_name(change: Any, named: str, tmp_path: Path) -> None:
    path = written(tmp_path / "changed.json", change)
    with pytest.raises(MalformedVectors) as refused:
        load([path])
    assert "changed.json" in str(refused.value)
    assert named in str(refused.value)
    with pytest.raises(CommandError):
        call_command("check_vectors", str(path))


def test_a_file_that_is_not_there_or_no_json_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    for name in ("broken.json", "absent.json"):
        with pytest.raises(CommandError, match=f"{name}: cannot be read"):
            call_command("check_vectors", str(tmp_path / name))


# --- API ------------------------------------------------------------------------------------------------------------


def test_anyone_can_fetch_the_vectors_and_keep_them() -> None:
    response = Client().get(ADDRESS)
    assert response.status_code == 200
    document = response.json()
    assert document["count"] == len(document["vectors"]) == len(VECTORS)
    assert {vector["id"] for vector in document["vectors"]} == set(VECTORS)
    assert document["vectors"][0] == next(iter(VECTORS.values())).document()
    assert response["ETag"] == f'"{document["digest"].removeprefix("sha256:")}"'
    assert "public" in response["Cache-Control"]
    assert "max-age=3600" in response["Cache-Control"]


def test_who_has_the_vectors_already_gets_no_second_copy() -> None:
    etag = Client().get(ADDRESS)["ETag"]
    again = Client().get(ADDRESS, headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")


def test_a_parameter_that_the_address_does_not_know_is_named() -> None:
    response = Client().get(ADDRESS, {"kind": "run"})
    assert response.status_code == 400
    assert [error["field"] for error in response.json()["errors"]] == ["kind"]


def test_the_vectors_can_only_be_read() -> None:
    assert Client().post(ADDRESS, {}, content_type="application/json").status_code == 405
