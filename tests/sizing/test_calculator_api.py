"""The calculator over the API: the pages' figures and words, and a path to every fault of a body."""

import html
import json
import re
from typing import Any

import pytest
from django.test import Client

from catalog.units import GB
from sizing.calculator.api import ENTRY_KINDS, STAGE_KINDS, WEIGHTS_KINDS
from sizing.calculator.forms import EntryForm, StageForm, WeightsForm
from tests.factories import make_gpu, make_machine

ENTRY = {"name": "Cache", "gib": "6", "reason": "four users", "state": "estimated"}
BODY = {"parameters": 7_000_000_000, "bits": 16, "reserve": [ENTRY]}
STAGE = {"name": "Encode", "weights_gib": "1.5", "working_memory_gib": "2", "load": "step"}
CHAIN = {
    "stages": [
        STAGE,
        {"name": "Prepare", "weights_gib": "0.5", "working_memory_gib": "0.5", "load": "kept"},
        {"name": "Answer", "weights_gib": "14.5", "working_memory_gib": "4", "load": "step"},
    ]
}


def post(body: Any, address: str = "calculator") -> Any:
    sent = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return Client(raise_request_exception=False).post(f"/api/v1/{address}", sent, content_type="application/json")


def errors_of(response: Any) -> list[tuple[str, str]]:
    assert response.status_code == 400, response.content
    assert response.headers["Content-Type"] == "application/problem+json"
    assert all(error["detail"].endswith((".", "?")) for error in response.json()["errors"])
    return [(error["field"], error["code"]) for error in response.json()["errors"]]


def test_the_published_table_is_the_answer(db: None) -> None:
    answer = post(BODY).json()
    assert (answer["weights_only"]["label"], answer["envelope"]["label"]) == ("Weights only", "Indicative envelope")
    assert (answer["weights_only"]["bytes"], answer["weights_only"]["gib"]) == (14_000_000_000, "13.04")
    assert (answer["envelope"]["bytes"], answer["envelope"]["gib"]) == (20_442_450_944, "19.04")
    assert [(one["bits"], one["weights_only_gib"], one["envelope_gib"]) for one in answer["formats"]] == [
        (32, "26.08", "32.08"),
        (16, "13.04", "19.04"),
        (8, "6.52", "12.52"),
        (4, "3.26", "9.26"),
    ]
    assert answer["envelope"]["complete"] is True
    assert [one["code"] for one in answer["left_out"]] == [
        "quantization_metadata", "other_formats", "work_memory", "transient_loading", "other_processes",
    ]  # fmt: skip
    assert (answer["candidates"], answer["candidates_count"]) == ([], 0)


def test_what_is_absent_has_its_default(db: None) -> None:
    answer = post({"parameters": 1}).json()
    assert (answer["bits"], answer["purpose"], answer["reserve"]) == (16, "inference", [])
    assert answer["weights_only"]["bytes"] == answer["envelope"]["bytes"] == 2
    assert post({"parameters": 1, "bits": 4}).json()["weights_only"]["bytes"] == 1
    without_state = {name: value for name, value in ENTRY.items() if name != "state"}
    assert post({"parameters": 1, "reserve": [without_state]}).json()["reserve"][0]["state"] == "estimated"


@pytest.mark.parametrize("absent", [{}, {"gib": None}])
def test_an_unknown_entry_has_no_figure_and_the_envelope_is_incomplete(db: None, absent: dict[str, Any]) -> None:
    entry = {"name": "Optimizer", "reason": "not chosen", "state": "unknown", **absent}
    answer = post({**BODY, "reserve": [ENTRY, entry]}).json()
    assert (answer["reserve"][1]["bytes"], answer["reserve"][1]["gib"]) == (None, None)
    assert answer["envelope"]["complete"] is False
    assert answer["envelope"]["unknown"] == ["Optimizer"]
    assert "still unknown (Optimizer)" in answer["envelope"]["text"]
    assert answer["envelope"]["gib"] == "19.04"


def test_training_adds_nothing_and_names_what_to_document(db: None) -> None:
    inference, training = post(BODY).json(), post({**BODY, "purpose": "training"}).json()
    assert inference["envelope"] == training["envelope"]
    assert "gradients_optimizer" in [one["code"] for one in training["to_document"]]


def test_candidates_have_the_nominal_and_the_counted_size_and_are_to_confirm(db: None) -> None:
    gpu = make_gpu("l40s", name="L40S", memory_gb_nominal=48)
    machine = make_machine(gpu=gpu, gpu_memory_bytes=48 * GB, memory_source="datasheet", memory_unit="GB")
    make_machine(gpu_memory_bytes=None)
    found = post(BODY).json()["candidates"]
    assert [one["machine"]["id"] for one in found] == [machine.pk]
    one = found[0]
    assert (one["gpu"], one["state"], one["nominal_gb"], one["counted_gib"]) == ("l40s", "to_confirm", 48, "44.70")
    assert one["counted_text"] == "48 GB nominal (datasheet) = 44.70 GiB counted"
    assert one["headroom_bytes"] == 48 * GB - 20_442_450_944


def test_a_chain_has_both_envelopes(db: None) -> None:
    answer = post(CHAIN, "calculator/stages").json()
    assert (answer["resident"]["bytes"], answer["resident"]["gib"]) == (22_011_707_392, "20.50")
    assert (answer["step_by_step"]["bytes"], answer["step_by_step"]["gib"]) == (20_401_094_656, "19.00")
    assert answer["step_by_step"]["largest_step"] == "Answer"
    assert answer["resident"]["largest_working_memory"] == "Answer"
    assert [(one["stage"], one["gib"], one["decides"]) for one in answer["step_by_step"]["steps"]] == [
        ("Encode", "4.00", False),
        ("Prepare", "1.00", False),
        ("Answer", "19.00", True),
    ]
    assert answer["saved_bytes"] == 22_011_707_392 - 20_401_094_656


def strings(value: Any) -> list[str]:
    """Every text of a document but codes, ids, and what stands in its text as it was given."""
    if isinstance(value, dict):
        left = {
            "code",
            "state",
            "load",
            "purpose",
            "machine",
            "gpu",
            "package_usd",
            "weights_gib",
            "working_memory_gib",
            "html_url",
        }
        return [text for name, one in value.items() if name not in left for text in strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


def test_every_word_and_figure_of_the_api_is_on_the_page_and_the_page_s_command_asks_for_them(db: None) -> None:
    make_machine()
    unknown = {"reserve_2_name": "Optimizer", "reserve_2_reason": "not chosen", "reserve_2_state": "unknown"}
    entry = {f"reserve_1_{name}": value for name, value in ENTRY.items()}
    stages = {
        f"stage_{number}_{name}": value
        for number, stage in enumerate(CHAIN["stages"], 1)
        for name, value in stage.items()
    }
    addresses = {
        "/calculator/": ({"parameters": "7", "parameter_unit": "billions", **entry, **unknown}, "calculator"),
        "/calculator/stages/": (stages, "calculator/stages"),
    }
    for address, (values, endpoint) in addresses.items():
        raw = html.unescape(Client().get(address, values, follow=True).content.decode())
        body = re.search(r"-d '([^']*)'", raw)
        assert body
        text = " ".join(re.sub(r"<[^>]+>", " ", raw).split())
        answer = post(body[1], endpoint).json()
        missing = [one for one in strings(answer) if one not in text]
        assert missing == []
        assert strings(answer)


BAD: list[tuple[Any, list[tuple[str, str]]]] = [
    ([], [("body", "invalid")]),
    ("null", [("body", "invalid")]),
    ({}, [("parameters", "required")]),
    ({"parameters": None}, [("parameters", "required")]),
    ({"parameters": 0}, [("parameters", "min_value")]),
    ({"parameters": -7}, [("parameters", "min_value")]),
    ({"parameters": 10**15 + 1}, [("parameters", "max_value")]),
    ({"parameters": 10**400}, [("parameters", "max_value")]),
    ({"parameters": 7.5}, [("parameters", "invalid")]),
    ({"parameters": "7000000000"}, [("parameters", "invalid")]),
    ({"parameters": True}, [("parameters", "invalid")]),
    ({"parameters": [7]}, [("parameters", "invalid")]),
    ({**BODY, "parameter_unit": "billions"}, [("parameter_unit", "unknown_field")]),
    ({**BODY, "bit": 16}, [("bit", "unknown_field")]),
    ({**BODY, "bits": 2}, [("bits", "invalid_choice")]),
    ({**BODY, "bits": "16"}, [("bits", "invalid")]),
    ({**BODY, "bits": None}, [("bits", "required")]),
    ({**BODY, "purpose": "fun"}, [("purpose", "invalid_choice")]),
    ({**BODY, "purpose": 1}, [("purpose", "invalid")]),
    ({**BODY, "reserve": {}}, [("reserve", "invalid")]),
    ({**BODY, "reserve": "6"}, [("reserve", "invalid")]),
    ({**BODY, "reserve": [ENTRY] * 21}, [("reserve", "max_length")]),
    ({**BODY, "reserve": [6]}, [("reserve[0]", "invalid")]),
    ({**BODY, "reserve": [ENTRY, None]}, [("reserve[1]", "invalid")]),
    ({**BODY, "reserve": [{}]}, [("reserve[0].name", "required"), ("reserve[0].gib", "required"),
                                 ("reserve[0].reason", "required")]),
    ({**BODY, "reserve": [ENTRY, {**ENTRY, "gb": "6"}]}, [("reserve[1].gb", "unknown_field")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": 6}]}, [("reserve[0].gib", "invalid")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": 6.5}]}, [("reserve[0].gib", "invalid")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": "-6"}]}, [("reserve[0].gib", "min_value")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": "100000.01"}]}, [("reserve[0].gib", "max_value")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": "9" * 50}]}, [("reserve[0].gib", "invalid")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": "NaN"}]}, [("reserve[0].gib", "invalid")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": "1,024"}]}, [("reserve[0].gib", "invalid")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": "6\0"}]}, [("reserve[0].gib", "invalid")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": "0.001"}]}, [("reserve[0].gib", "max_decimal_places")]),
    ({**BODY, "reserve": [{**ENTRY, "gib": None}]}, [("reserve[0].gib", "required")]),
    ({**BODY, "reserve": [{**ENTRY, "state": "unknown"}]}, [("reserve[0].gib", "unknown_has_figure")]),
    ({**BODY, "reserve": [{**ENTRY, "state": "sure"}]}, [("reserve[0].state", "invalid_choice")]),
    ({**BODY, "reserve": [{**ENTRY, "reason": ""}]}, [("reserve[0].reason", "required")]),
    ({**BODY, "reserve": [{**ENTRY, "reason": "  "}]}, [("reserve[0].reason", "required")]),
    ({**BODY, "reserve": [{**ENTRY, "reason": "a" * 201}]}, [("reserve[0].reason", "max_length")]),
    ({**BODY, "reserve": [{**ENTRY, "reason": "\ud800"}]}, [("reserve[0].reason", "invalid")]),
    ({**BODY, "reserve": [{**ENTRY, "name": "a\0"}]}, [("reserve[0].name", "invalid")]),
    ({**BODY, "reserve": [{**ENTRY, "name": ["a"]}]}, [("reserve[0].name", "invalid")]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_bad_body_names_each_field_and_its_fault(db: None, body: Any, expected: Any) -> None:
    assert errors_of(post(body)) == expected


BAD_CHAINS: list[tuple[Any, list[tuple[str, str]]]] = [
    ([], [("body", "invalid")]),
    ({}, [("stages", "required")]),
    ({"stages": None}, [("stages", "required")]),
    ({"stages": []}, [("stages", "min_length")]),
    ({"stages": {}}, [("stages", "invalid")]),
    ({"stages": [STAGE] * 21}, [("stages", "max_length")]),
    ({**CHAIN, "reserve": []}, [("reserve", "unknown_field")]),
    ({"stages": [STAGE, 5]}, [("stages[1]", "invalid")]),
    (
        {"stages": [{"name": "A"}]},
        [("stages[0].weights_gib", "required"), ("stages[0].working_memory_gib", "required")],
    ),
    ({"stages": [{**STAGE, "weights": 1}]}, [("stages[0].weights", "unknown_field")]),
    ({"stages": [{**STAGE, "weights_gib": 1}]}, [("stages[0].weights_gib", "invalid")]),
    ({"stages": [{**STAGE, "working_memory_gib": "-1"}]}, [("stages[0].working_memory_gib", "min_value")]),
    ({"stages": [{**STAGE, "load": "maybe"}]}, [("stages[0].load", "invalid_choice")]),
    ({"stages": [{**STAGE, "load": True}]}, [("stages[0].load", "invalid")]),
    ({"stages": [{**STAGE, "name": "\0"}]}, [("stages[0].name", "invalid")]),
]


@pytest.mark.parametrize(("body", "expected"), BAD_CHAINS, ids=[str(number) for number in range(len(BAD_CHAINS))])
def test_a_bad_chain_names_each_field_and_its_fault(db: None, body: Any, expected: Any) -> None:
    assert errors_of(post(body, "calculator/stages")) == expected


def test_a_value_of_the_wrong_kind_is_named_as_its_field_is_labelled(db: None) -> None:
    errors = post({"parameters": 7.5, "reserve": [{**ENTRY, "gib": 6}]}).json()["errors"]
    assert [error["detail"] for error in errors] == [
        "Parameters must be a whole number, not a number with a point or an exponent.",
        'Amount must be an amount in quotes, such as "2.50", not a number.',
    ]


def test_every_field_of_the_forms_has_a_kind() -> None:
    assert set(ENTRY_KINDS) == set(EntryForm.base_fields)
    assert set(STAGE_KINDS) == set(StageForm.base_fields)
    assert set(WEIGHTS_KINDS) == set(WeightsForm.base_fields) - {"parameter_unit"}
