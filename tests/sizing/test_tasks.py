"""Fine-tuning, images, speech and notebooks over the API, on the command line and as answers with machines."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from catalog.units import GB, GIB
from sizing import explain
from sizing.answers import Answer, HardLimits
from sizing.forms import question_from
from sizing.matching import recommend
from tests.factories import make_gpu, make_machine
from tests.sizing.seeded import seed

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
TUNE = {"task": "fine_tune", "model": "llama-3.1-8b"}
SPEECH = {"task": "run", "model": "whisper-large-v3"}
IMAGE = {"task": "image", "model": "flux.1-dev"}
NOTEBOOK = {"task": "notebook", "gpu_memory_gb": "24"}
TASKS = (TUNE, SPEECH, IMAGE, NOTEBOOK)


@pytest.fixture(autouse=True)
def models(db: None) -> None:
    seed("llama-3.1-8b", "llama-3.1-70b", "flux.1-dev", "sdxl-base-1.0", "whisper-large-v3", "deepseek-v3")


def post(path: str, body: Any, status: int = 200) -> Any:
    response = Client().post(f"/api/v1/{path}", body, content_type="application/json")
    assert response.status_code == status, response.content
    return response.json()


def size(*options: str) -> str:
    out = StringIO()
    call_command("size", *options, stdout=out)
    return out.getvalue()


def ask(values: dict[str, Any], **limits: Any) -> Answer:
    return recommend(question_from(values), now=NOW, limits=HardLimits(**limits))


def constraint_texts(answer: Answer) -> dict[str, str]:
    return {constraint.code: constraint.text for constraint in explain.constraints(answer)}


# --- API ------------------------------------------------------------------------------------------------------------


def test_the_memory_block_of_fine_tuning_has_its_lines_assumptions_and_papers() -> None:
    memory = post("sizing", {"workload": {**TUNE, "sequence_length": 4096}})
    assert [(line["code"], line["bytes"]) for line in memory["lines"]] == [
        ("base_weights", 16_060_522_496),
        ("adapters", 218_103_808),
        ("checkpoints", 1_073_741_824),
        ("working_set", 6_304_038_912),
        ("margin", 4_731_281_408),
        ("runtime", GIB),
    ]
    assert (memory["total_bytes"], memory["total_gib"], memory["splits"]) == (29_461_430_272, "27.44", [])
    said = " ".join(memory["assumptions"])
    for words in (
        "attention is fused", "Gradient checkpointing is on", "No fused cross-entropy",
        "Evaluation keeps the loss only",
        "34 to 42", "this is traced, not published", "needs this amount on every GPU",
    ):  # fmt: skip
        assert words in said
    urls = [source["url"] for source in memory["sources"]]
    for paper in ("2106.09685", "1910.02054", "2205.05198"):
        assert f"https://arxiv.org/abs/{paper}" in urls
    assert "https://arxiv.org/abs/2305.14314" not in urls


def test_qlora_says_what_4_bits_are_and_cites_it() -> None:
    memory = post("sizing", {"workload": {**TUNE, "precision_bits": 4}})
    assert memory["lines"][0]["formula"] == "8,030,261,248 parameters (8,030 million) × 4.127 bits ÷ 8"
    assert "double quantization, 4.127 bits" in " ".join(memory["assumptions"])
    assert "https://arxiv.org/abs/2305.14314" in [source["url"] for source in memory["sources"]]


def test_the_memory_block_of_images_names_every_network() -> None:
    memory = post("sizing", {"workload": IMAGE})
    assert [line["label"] for line in memory["lines"]] == [
        "Denoiser", "Text encoder", "Text encoder 2", "Autoencoder (VAE)", "Additional margin", "CUDA runtime",
    ]  # fmt: skip
    assert memory["lines"][2]["formula"] == "4,762,310,656 parameters (4,762 million) × 2 bytes: T5 v1.1 XXL encoder"
    assert memory["total_gib"] == "38.71"
    said = " ".join(memory["assumptions"])
    assert "One image at a time, at the pipeline's native resolution." in said
    assert "peak while generating" in said


def test_the_memory_block_of_speech_says_that_the_length_does_not_matter() -> None:
    memory = post("sizing", {"workload": {**SPEECH, "streams": 1}})
    assert (memory["total_bytes"], memory["total_gib"]) == (5_161_111_552, "4.81")
    assert memory["lines"][1]["formula"] == (
        "2 × 32 layers × 1,280 hidden × 2 bytes × (448 + 1,500) positions × 1 stream"
    )
    assert "The length of a recording changes nothing" in " ".join(memory["assumptions"])


def test_a_notebook_is_compared_as_it_is_and_says_so() -> None:
    memory = post("sizing", {"workload": NOTEBOOK})
    assert [(line["code"], line["bytes"]) for line in memory["lines"]] == [("stated_need", 24 * GB)]
    assert "no margin and no runtime are added" in memory["assumptions"][0]
    assert memory["sources"] == []


@pytest.mark.parametrize("workload", TASKS, ids=lambda workload: workload["task"])
def test_only_one_gpu_is_sized(workload: dict[str, Any]) -> None:
    assert post("sizing", {"workload": workload, "gpus": 1})["gpus"] == 1
    [error] = post("sizing", {"workload": workload, "gpus": 2}, 400)["errors"]
    assert (error["field"], error["code"]) == ("gpus", "illegal_split")
    assert "for one GPU only" in error["detail"]


@pytest.mark.parametrize("workload", TASKS, ids=lambda workload: workload["task"])
def test_a_full_answer_over_the_api_says_the_same_as_the_pages(workload: dict[str, Any]) -> None:
    make_machine(gpu_memory_bytes=80 * GIB, gpu_count=4)
    make_machine(gpu_memory_bytes=2 * GIB, gpu_count=8)
    sent = post("recommendations", {"workload": workload})
    assert (sent["recommended_count"], sent["recommended"][0]["gpus_used"]) == (1, 1)
    assert sent["not_considered"] == [{"code": "too_small", "count": 1, "text": "1 machine too small."}]
    assert sent == post("recommendations", {"workload": workload})
    page = Client().get("/launch/result/", workload, follow=True)
    assert page.status_code == 200
    assert sent["memory"]["total_gib"] in page.content.decode()
    assert "None" not in json.dumps(sent)


# --- Answers --------------------------------------------------------------------------------------------------------


def test_the_four_recorded_facts_of_lora_stand_among_the_constraints() -> None:
    texts = constraint_texts(ask({**TUNE, "precision_bits": "4", "target_modules": ["q", "v"], "rank": "8"}))
    assert texts["rank"] == "Adapters of rank 8."
    assert texts["target_modules"] == "Adapters on the modules for q, v."
    assert texts["precision_bits"] == "A base of 4 bits (QLoRA: NormalFloat, double quantization)."
    assert texts["sequence_length"] == "Examples of up to 2,048 tokens."
    assert texts["one_machine"].startswith("One GPU of one machine, which must hold all of it.")
    assert "max_split" not in texts
    assert "kv_cache_bits" not in texts


@pytest.mark.parametrize(
    ("values", "task", "codes"),
    [
        (SPEECH, "Run a speech recognition model.", {"streams", "window", "kv_cache_bits", "margin_percent"}),
        (IMAGE, "Generate images.", {"images", "image_bits", "margin_percent", "runtime_bytes"}),
        (NOTEBOOK, "Open a notebook.", {"stated_need", "nothing_added"}),
    ],
)
def test_the_constraints_of_a_task_are_its_own(values: dict[str, Any], task: str, codes: set[str]) -> None:
    texts = constraint_texts(ask(values))
    assert texts["task"] == task
    assert codes <= set(texts)
    assert not {"context", "requests", "max_split"} & set(texts)
    if values is NOTEBOOK:
        assert texts["stated_need"] == "24 GB of GPU memory, as you stated it."
        assert not {"model", "margin_percent", "runtime_bytes", "reserve_bytes"} & set(texts)


def test_the_limits_of_a_task_come_with_its_answer_and_its_machines() -> None:
    make_machine(gpu_memory_bytes=80 * GIB)
    limits = {
        "fine_tune": ("phases", "Few trained parameters do not remove activation memory."),
        "image": ("vae_decode", "Decoding in the VAE can have a peak of its own"),
        "run": ("implementation", "Implementations of speech recognition differ"),
        "notebook": ("stated_need", "The need is the figure you stated; nothing was computed or added."),
    }
    for values in TASKS:
        code, text = limits[values["task"]]
        sent = post("recommendations", {"workload": values})
        assert text in {limit["code"]: limit["text"] for limit in sent["limits"]}[code]
        assert code in [limit["code"] for limit in sent["recommended"][0]["limits"]]


def test_reasons_and_limits_of_a_quantized_base_do_not_speak_of_uncounted_metadata() -> None:
    make_machine(gpu_memory_bytes=80 * GIB)
    [found] = ask({**TUNE, "precision_bits": "4"}).recommended
    assert found.confidence.level == "low"
    assert [reason.code for reason in explain.confidence_reasons(found)] == ["quantized", "fine_tuning"]
    assert "metadata" not in explain.confidence_reasons(found)[0].text
    assert dict(explain.confidence_raises(found))["quantized"] == "Fine-tune on a base of 16 bits."
    assert "scales of NormalFloat are counted" in dict(explain.limits(found))["quantization_metadata"]


def test_memories_are_never_added_up_for_a_task_of_one_gpu() -> None:
    make_machine(gpu_memory_bytes=24 * GIB, gpu_count=8)
    answer = ask({"task": "fine_tune", "model": "llama-3.1-70b", "precision_bits": "4"})
    assert answer.recommended_count == 0
    assert [(left.code, left.count) for left in answer.not_considered] == [("too_small", 1)]
    assert answer.nearest_miss is not None
    assert explain.nearest_miss_text(answer.nearest_miss).endswith(
        "49.37 GiB needed on one GPU, 24.00 GiB there, 25.37 GiB too little."
    )


def test_a_lower_precision_is_offered_and_says_that_4_bits_are_qlora() -> None:
    make_machine(gpu_memory_bytes=16 * GIB)
    answer = ask(TUNE)
    assert [explain.precision_text(one) for one in answer.precision_alternatives][-1].startswith(
        "4 bits (QLoRA, NF4): "
    )
    assert ask(IMAGE).precision_alternatives == ask(NOTEBOOK).precision_alternatives == ()


@pytest.mark.parametrize(
    ("values", "memory", "field", "text"),
    [
        ({**TUNE, "sequence_length": "8192"}, 26 * GIB, "sequence_length", "A sequence length of "),
        ({**TUNE, "sequence_length": "1024", "batch_size": "64"}, 26 * GIB, "batch_size", "A batch size of "),
        ({**TUNE, "rank": "4096"}, 26 * GIB, "rank", "Rank "),
        ({**SPEECH, "streams": "100"}, 8 * GIB, "streams", "9 audio streams at once: 1 machine"),
    ],
)
def test_the_largest_count_that_fits_is_among_the_changes(
    values: dict[str, Any], memory: int, field: str, text: str
) -> None:
    make_machine(gpu_memory_bytes=memory)
    changes = {change.field: change for change in ask(values).changes}
    assert explain.change_text(changes[field]).startswith(text)
    value = changes[field].value
    assert isinstance(value, int)
    assert ask({**values, field: str(value)}).recommended_count == 1
    assert ask({**values, field: str(value + 1)}).recommended_count == 0


def test_a_notebook_finds_what_is_stated_in_its_unit() -> None:
    make_machine(gpu_memory_bytes=24 * GB)
    assert ask(NOTEBOOK).recommended_count == 1
    none = ask({"task": "notebook", "gpu_memory_gib": "24"})
    assert none.recommended_count == 0
    assert none.nearest_miss is not None
    assert none.nearest_miss.lacking_bytes == 24 * GIB - 24 * GB
    [found] = ask(NOTEBOOK).recommended
    assert set(found.confidence.reasons) == {"stated_need", "narrow_margin"}


def test_a_gpu_without_cuda_is_no_matter_of_the_runtime_line_for_a_notebook() -> None:
    make_machine(gpu_memory_bytes=80 * GIB, gpu=make_gpu("mi300x", vendor="AMD"))
    [found] = ask(NOTEBOOK).recommended
    assert "runtime line" not in dict(explain.confidence_reasons(found))["non_cuda"]


def test_the_fingerprint_tells_tasks_and_their_inputs_apart() -> None:
    questions: list[dict[str, Any]] = [
        *TASKS, {"task": "run", "model": "llama-3.1-8b"}, {**TUNE, "rank": "8"}, {**TUNE, "target_modules": ["q"]},
        {"task": "notebook", "gpu_memory_gib": "24"}, {**SPEECH, "streams": "2"}, {**IMAGE, "model": "sdxl-base-1.0"},
    ]  # fmt: skip
    assert len({ask(values).fingerprint for values in questions}) == len(questions)
    assert ask({**TUNE, "rank": "16"}).fingerprint == ask(TUNE).fingerprint


def test_a_policy_holds_for_every_task() -> None:
    make_machine(gpu_memory_bytes=80 * GIB, country="US")
    for values in TASKS:
        assert ask(values, countries=("DE",)).recommended_count == 0
        assert ask(values, countries=("US",)).recommended_count == 1


def test_what_more_of_each_count_adds_is_the_engine_s_own_difference() -> None:
    training = explain.sensitivity(question_from(TUNE).workload)
    assert training == (
        "Each further 1,000 tokens of sequence length 2.01 GiB, each further sequence of the batch 4.12 GiB and twice "
        "the rank 0.24 GiB more, margin included."
    )
    assert explain.sensitivity(question_from(SPEECH).workload) == (
        "Each further audio stream 0.36 GiB more, margin included."
    )


# --- Command --------------------------------------------------------------------------------------------------------


def test_the_command_sizes_fine_tuning() -> None:
    text = size(
        "--task", "fine_tune", "--model", "llama-3.1-8b", "--sequence-length", "4096", "--batch-size", "1",
        "--rank", "16", "--target-modules", "q,v",
    )  # fmt: skip
    assert text.startswith("Fine-tuning Llama 3.1 8B, LoRA on 16 bits, rank 16 on q, v, 4,096 tokens × batch size 1\n")
    for figure in ("6,815,744 trainable parameters × 16 bytes", "5.87 GiB", "https://arxiv.org"):
        assert figure in text
    assert "phases to check" in text


def test_the_command_sizes_speech_images_and_notebooks() -> None:
    assert "5,161,111,552 bytes" in size("--model", "whisper-large-v3", "--streams", "1")
    assert "38.71 GiB" in size("--task", "image", "--model", "flux.1-dev")
    notebook = size("--task", "notebook", "--gpu-memory-gb", "24")
    assert notebook.startswith("A notebook, stated with 24 GB of GPU memory\n")
    assert "22.35 GiB" in notebook
    assert "Source" not in notebook


@pytest.mark.parametrize("workload", TASKS, ids=lambda workload: workload["task"])
def test_the_command_s_json_is_the_api_s(workload: dict[str, Any]) -> None:
    options = [option for name, value in workload.items() for option in (f"--{name.replace('_', '-')}", value)]
    assert json.loads(size(*options, "--json")) == post("sizing", {"workload": workload})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--task", "fine_tune", "--model", "llama-3.1-8b", "--context", "1"], "--context: Context belongs to"),
        (["--task", "fine_tune", "--model", "llama-3.1-8b", "--method", "full"], "--method: Full fine-tuning is not"),
        (["--task", "fine_tune", "--model", "deepseek-v3", "--target-modules", "gate"], "it has q, k, v and o."),
        (["--task", "image", "--model", "flux.1-dev", "--gpus", "2"], "--gpus: Image generation is sized for one GPU"),
        (["--task", "notebook"], "--gpu-memory-gib: GPU memory you need is empty"),
        (["--task", "sing"], "--task: Task must be run, fine_tune, image or notebook"),
    ],
)
def test_the_command_names_the_option_that_is_wrong(options: list[str], said: str) -> None:
    with pytest.raises(CommandError, match="--") as refused:
        size(*options)
    assert said in str(refused.value)


def test_money_and_prices_are_as_for_running_a_model() -> None:
    make_machine(gpu_memory_bytes=80 * GIB)
    answer = ask({**IMAGE, "budget_usd": "100000", "max_hourly_usd": "0.0001"})
    assert answer.recommended_count == 0
    [alternative] = answer.machine_alternatives
    assert [miss.code for miss in alternative.misses] == ["max_hourly_usd"]
    assert isinstance(alternative.package_usd, Decimal)
