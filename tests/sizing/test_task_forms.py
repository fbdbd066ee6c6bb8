"""The fields of every task: their defaults, their limits, whose they are, and the address that keeps them."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.http import QueryDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.engine.estimate import estimate
from sizing.engine.workloads import FineTune, GenerateImages, Notebook, RunModel, Transcribe
from sizing.forms import InvalidInput, WorkloadForm, question_from, workload_from
from sizing.models import AiModel
from sizing.permalinks import canonical_query, changed, question_document
from sizing.task_fields import FIELDS, fields_of
from tests.sizing.seeded import seed

MODELS = ("llama-3.1-8b", "mixtral-8x7b", "falcon-7b", "flux.1-dev", "whisper-large-v3", "starcoder2-15b")
RUN = {"task": "run", "model": "llama-3.1-8b"}
SPEECH = {"task": "run", "model": "whisper-large-v3"}
TUNE = {"task": "fine_tune", "model": "llama-3.1-8b"}
IMAGE = {"task": "image", "model": "flux.1-dev"}
NOTEBOOK = {"task": "notebook", "gpu_memory_gb": "24"}
RESERVE = {"reserve_gib": "2.5", "reserve_reason": "a web server"}


@pytest.fixture(autouse=True)
def _models(db: None) -> None:
    seed(*MODELS)


def errors_of(values: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        workload_from(values)
    return [(error.field, error.code) for error in refused.value.errors]


def detail_of(values: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as refused:
        workload_from(values)
    return refused.value.errors[0].detail


def test_the_defaults_of_fine_tuning_are_lora_of_rank_16_on_the_attention() -> None:
    model, workload = workload_from(TUNE)
    assert isinstance(workload, FineTune)
    assert (workload.precision_bits, workload.sequence_length, workload.batch_size) == (16, 2048, 1)
    assert (workload.rank, workload.target_modules) == (16, ("q", "k", "v", "o"))
    assert model
    assert model.slug == "llama-3.1-8b"


def test_each_task_makes_its_own_kind_of_workload() -> None:
    kinds = [type(workload_from(values)[1]) for values in (RUN, SPEECH, TUNE, IMAGE, NOTEBOOK)]
    assert kinds == [RunModel, Transcribe, FineTune, GenerateImages, Notebook]
    assert workload_from(NOTEBOOK)[0] is None


def test_a_default_length_is_shortened_to_the_model_and_a_given_one_is_refused() -> None:
    AiModel.objects.filter(slug="llama-3.1-8b").update(max_context=1024)
    workload = workload_from(TUNE)[1]
    assert isinstance(workload, FineTune)
    assert workload.sequence_length == 1024
    assert detail_of({**TUNE, "sequence_length": "2048"}) == (
        "Sequence length must be 1,024 or less (published maximum of Llama 3.1 8B)."
    )


def test_target_modules_are_a_list_or_words_between_commas_in_their_own_order() -> None:
    for words_given in (["v", "q"], ["v,q"], ["q", "v", "q"]):
        workload = workload_from({**TUNE, "target_modules": words_given})[1]
        assert isinstance(workload, FineTune)
        assert workload.target_modules == ("q", "v")
    query = QueryDict("task=fine_tune&model=llama-3.1-8b&target_modules=down&target_modules=q")
    assert workload_from(query)[1].target_modules == ("q", "down")  # type: ignore[union-attr]


def test_b058_full_fine_tuning_is_refused_by_name() -> None:
    text = detail_of({**TUNE, "method": "full"})
    assert text.startswith("Full fine-tuning is not sized: it needs weight, gradient and both moments")
    assert "16 bytes each" in text
    assert "Method must be lora; “dora” is not." in detail_of({**TUNE, "method": "dora"})
    assert "QLoRA is lora with a precision of 4 bits." in detail_of({**TUNE, "method": "qlora"})


def test_a_target_that_the_model_lacks_names_those_it_has() -> None:
    assert detail_of({**TUNE, "model": "mixtral-8x7b", "target_modules": ["q", "gate"]}) == (
        "Target modules: Mixtral 8x7B v0.1 has no module for gate that an adapter can be put on; it has q, k, v and o."
    )
    assert workload_from({**TUNE, "model": "falcon-7b", "target_modules": ["up"]})


def test_a_model_without_projections_can_be_run_and_not_fine_tuned() -> None:
    AiModel.objects.filter(slug="llama-3.1-8b").update(projections=[])
    assert workload_from(RUN)
    assert detail_of(TUNE) == (
        "Llama 3.1 8B cannot be sized for fine-tuning: its list of projections is not published."
    )
    AiModel.objects.filter(slug="llama-3.1-8b").update(projections=[{"module": 1}])
    assert errors_of(TUNE) == [("model", "not_sizable")]


def test_b079_a_model_of_a_kind_that_is_not_sized_is_refused() -> None:
    AiModel.objects.filter(slug="whisper-large-v3").update(kind="synthesis")
    assert detail_of(SPEECH) == (
        "Whisper large-v3 is of a kind that is not sized; “Run a model” needs a language model or a speech recognition "
        "model."
    )
    with pytest.raises(ValidationError, match="synthesis"):
        AiModel.objects.get(slug="whisper-large-v3").full_clean()


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ({**TUNE, "model": "flux.1-dev"}, [("model", "wrong_kind")]),
        ({**TUNE, "model": "whisper-large-v3"}, [("model", "wrong_kind")]),
        ({**IMAGE, "model": "llama-3.1-8b"}, [("model", "wrong_kind")]),
        ({**RUN, "model": "flux.1-dev"}, [("model", "wrong_kind")]),
        ({**TUNE, "model": "starcoder2-15b"}, [("model", "not_sizable")]),
        ({**SPEECH, "model": "kokoro-tts"}, [("model", "unknown_model")]),
        ({**IMAGE, "precision_bits": "16"}, [("precision_bits", "other_task")]),
        ({**IMAGE, "context": "4096"}, [("context", "other_task")]),
        ({**SPEECH, "context": "4096", "requests": "1"}, [("context", "other_task"), ("requests", "other_task")]),
        ({**RUN, "streams": "1"}, [("streams", "other_task")]),
        ({**RUN, "sequence_length": "abc"}, [("sequence_length", "other_task")]),
        ({**TUNE, "gpu_memory_gb": "24"}, [("gpu_memory_gb", "other_task")]),
        ({**NOTEBOOK, "model": "llama-3.1-8b"}, [("model", "other_task")]),
        ({**NOTEBOOK, "model": "nothing"}, [("model", "other_task")]),
        ({**NOTEBOOK, **RESERVE}, [("reserve_gib", "other_task"), ("reserve_reason", "other_task")]),
        ({**NOTEBOOK, "gpu_memory_gib": "24"}, [("gpu_memory_gb", "repeated")]),
        ({**NOTEBOOK, "gpu_memory_gb": ""}, [("gpu_memory_gib", "required")]),
        ({**NOTEBOOK, "gpu_memory_gb": "0"}, [("gpu_memory_gb", "min_value")]),
        ({**NOTEBOOK, "gpu_memory_gb": "NaN"}, [("gpu_memory_gb", "invalid")]),
        ({**NOTEBOOK, "gpu_memory_gb": "9" * 50}, [("gpu_memory_gb", "invalid")]),
        ({**NOTEBOOK, "gpu_memory_gb": "1000000"}, [("gpu_memory_gb", "max_value")]),
        ({**SPEECH, "streams": "0"}, [("streams", "min_value")]),
        ({**SPEECH, "streams": "100001"}, [("streams", "max_value")]),
        ({**SPEECH, "precision_bits": "32"}, [("precision_bits", "invalid_choice")]),
        ({**TUNE, "rank": "4097"}, [("rank", "max_value")]),
        ({**TUNE, "rank": ""}, [("rank", "required")]),
        ({**TUNE, "batch_size": "-1"}, [("batch_size", "min_value")]),
        ({**TUNE, "sequence_length": "131073"}, [("sequence_length", "max_value")]),
        ({**TUNE, "target_modules": [""]}, [("target_modules", "required")]),
        ({**TUNE, "target_modules": ["q_proj\0"]}, [("target_modules", "invalid_choice")]),
        ({**TUNE, "target_modules": [None, {}]}, [("target_modules", "invalid")]),
        ({**TUNE, "method": ""}, [("method", "required")]),
        ({**TUNE, "method": ["lora", "lora"]}, [("method", "repeated")]),
        ({**TUNE, "method": "\ud800"}, [("method", "invalid_choice")]),
        ({**TUNE, "reserve_gib": "1"}, [("reserve_reason", "required")]),
        ({"task": "", "rank": "x"}, [("task", "required"), ("model", "required")]),
    ],
)
def test_what_a_task_does_not_take_is_named(values: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert errors_of(values) == errors


def test_a_field_of_another_task_says_whose_it_is() -> None:
    assert detail_of({**RUN, "rank": "8"}) == (
        "LoRA rank belongs to “Fine-tune a model”, not to “Run a model”: leave it out."
    )
    assert detail_of({**SPEECH, "context": "8"}) == (
        "Context does not apply to Whisper large-v3, a speech recognition model: leave it out."
    )
    assert detail_of({**NOTEBOOK, "precision_bits": "8"}) == (
        "Precision belongs to “Run a model” or “Fine-tune a model”, not to “Open a notebook”: leave it out."
    )
    assert detail_of({**IMAGE, "model": "llama-3.1-8b"}) == (
        "Llama 3.1 8B is a language model; “Generate images” needs an image pipeline."
    )


def test_an_empty_field_of_another_task_asks_for_nothing() -> None:
    assert workload_from({**NOTEBOOK, "model": "", "context": "", "reserve_gib": "", "target_modules": [""]})
    assert workload_from({**IMAGE, "precision_bits": None, "streams": ""})


def test_a_form_that_is_not_sent_has_the_defaults_of_every_task() -> None:
    form = WorkloadForm({}).quietly()
    assert form["sequence_length"].value() == "2048"
    assert (form["batch_size"].value(), form["rank"].value(), form["streams"].value()) == ("1", "16", "1")
    assert form["target_modules"].value() == ["q", "k", "v", "o"]
    labels = [form[name].label for name in ("sequence_length", "batch_size", "streams", "gpu_memory_gib")]
    assert labels == ["Sequence length", "Batch size", "Audio streams at once", "GPU memory you need"]


def test_every_field_belongs_to_a_task() -> None:
    assert {name for names in FIELDS.values() for name in names} | {"task"} == set(WorkloadForm.base_fields)
    assert fields_of("run") == (
        "model", "shape", "precision_bits", "context", "requests", "reserve_gib", "reserve_reason", "streams",
    )  # fmt: skip


# --- Addresses ----------------------------------------------------------------------------------------------------

bits = st.sampled_from(["16", "8", "4"])
counts = st.integers(1, 100_000).map(str)
figures = st.decimals("0.01", "99999", places=2).map(str)
ranks = st.integers(1, 4096).map(str)
words = st.lists(st.sampled_from(["q", "k", "v", "o", "gate", "up", "down"]), min_size=1, max_size=9)
reserves = st.one_of(st.just({}), figures.map(lambda figure: {"reserve_gib": figure, "reserve_reason": "a reason"}))
workloads = st.one_of(
    st.builds(
        lambda given, reserve: {**TUNE, **given, **reserve},
        st.fixed_dictionaries(
            {},
            optional={
                "precision_bits": bits,
                "sequence_length": st.integers(1, 131_072).map(str),
                "batch_size": counts,
                "rank": ranks,
                "target_modules": words,
                "method": st.just("lora"),
            },
        ),
        reserves,
    ),
    st.builds(
        lambda given, reserve: {**SPEECH, **given, **reserve},
        st.fixed_dictionaries({}, optional={"precision_bits": bits, "streams": counts}),
        reserves,
    ),
    reserves.map(lambda reserve: {**IMAGE, **reserve}),
    st.builds(
        lambda unit, figure: {"task": "notebook", unit: figure},
        st.sampled_from(["gpu_memory_gib", "gpu_memory_gb"]),
        figures,
    ),
    st.builds(lambda one, two: {**RUN, "precision_bits": one, "requests": two}, bits, counts),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(workloads, st.sampled_from(["1", "3"]))
def test_the_address_of_every_task_reads_back_as_the_same_question(values: dict[str, Any], lots: str) -> None:
    question = question_from({**values, "lots": lots, "countries": ["EU"]})
    query = canonical_query(question)
    again = question_from(QueryDict(query))
    assert again == question
    assert canonical_query(again) == query
    assert estimate(again.workload) == estimate(question.workload)


@pytest.mark.parametrize(
    ("values", "query"),
    [
        (
            {**TUNE, "target_modules": ["v", "q"], "batch_size": "4"},
            "task=fine_tune&model=llama-3.1-8b&precision_bits=16&sequence_length=2048&batch_size=4&rank=16"
            "&target_modules=q&target_modules=v&method=lora",
        ),
        (SPEECH, "task=run&model=whisper-large-v3&precision_bits=16&streams=1"),
        ({**IMAGE, **RESERVE}, "task=image&model=flux.1-dev&reserve_gib=2.50&reserve_reason=a+web+server"),
        (NOTEBOOK, "task=notebook&gpu_memory_gb=24"),
        ({"task": "notebook", "gpu_memory_gib": "23,50"}, "task=notebook&gpu_memory_gib=23.5"),
    ],
)
def test_an_address_has_the_canonical_order_with_the_defaults_of_its_task(values: dict[str, Any], query: str) -> None:
    assert canonical_query(question_from(values)) == f"{query}&term_days=7&lots=1&tier=any"


def test_the_api_request_of_a_question_has_lists_and_numbers() -> None:
    tuned, stated = (question_document(question_from(asked))["workload"] for asked in (TUNE, NOTEBOOK))
    assert (tuned["target_modules"], tuned["method"], tuned["rank"]) == (["q", "k", "v", "o"], "lora", 16)
    assert stated["gpu_memory_gb"] == "24"
    assert "model" not in stated


def test_one_input_can_be_changed_by_its_name() -> None:
    question = question_from({**TUNE, **RESERVE})
    assert changed(question, "rank", 8).workload.rank == 8  # type: ignore[union-attr]
    assert changed(question, "reserve_gib", None).workload.reserve_bytes == 0  # type: ignore[union-attr]
    assert changed(question, "lots", 2).preferences.lots == 2
