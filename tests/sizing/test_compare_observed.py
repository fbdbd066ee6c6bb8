"""Published readings beside our figures: read in full, matched by name or listed, and no gap hidden."""

import json
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from catalog.units import GB, GIB, MIB
from sizing.engine.estimate import estimate
from sizing.engine.workloads import RunModel
from sizing.observed.compare import NotCompared, Outcome, Reading, Verdict, compare
from sizing.observed.missing import NOT_KNOWN, is_large, missing_terms
from sizing.observed.names import CACHE_SLUGS, GPU_SLUGS, MODEL_SLUGS, memory_of, model_named
from sizing.observed.reading import SAMPLE, MalformedObservations, read
from sizing.observed.summary import Errors, summarize

ROWS = json.loads(SAMPLE.read_text(encoding="utf-8"))
OBSERVATIONS = {observation.id: observation for observation in read(SAMPLE)}
SUMMARY = summarize(OBSERVATIONS.values())


def row(name: str, **changes: Any) -> dict[str, Any]:
    """An entry of the sample with some fields changed; `detail` is added to."""
    found = deepcopy(next(each for each in ROWS if each["id"] == name))
    found["detail"] |= changes.pop("detail", {})
    return found | changes


def written(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def compared(tmp_path: Path, name: str, **changes: Any) -> Outcome:
    (observation,) = read(written(tmp_path / "one.json", row(name, **changes)))
    return compare(observation)


def outcome(name: str) -> Any:
    return compare(OBSERVATIONS[name])


# --- What is compared with what -------------------------------------------------------------------------------------


def test_weights_are_compared_with_the_weights_line_of_one_gpu() -> None:
    alone, split = outcome("llama-3.1-8b-weights"), outcome("llama-3.1-8b-weights-2-gpus")
    assert (alone.ours, split.ours) == (16_060_522_496, 8_030_261_248)
    assert abs(alone.error) < Fraction(5, 1000)
    assert abs(split.error) < Fraction(5, 1000)


def test_a_peak_by_the_allocator_is_compared_with_the_total_without_the_runtime(tmp_path: Path) -> None:
    model = model_named("Qwen2.5-7B", "peak")
    assert model is not None
    total = estimate(RunModel(model.shape(), 16, 2049, 1)).total_bytes
    assert outcome("qwen2.5-7b-peak-2049").ours == total - GIB
    by_smi = compared(tmp_path, "qwen2.5-7b-peak-2049", detail={"meter": "nvidia-smi"})
    assert isinstance(by_smi, Reading)
    assert by_smi.ours == total


def test_a_peak_without_cache_is_compared_with_weights_margin_and_runtime() -> None:
    found = outcome("llama-3.1-8b-without-cache")
    weights = 16_060_522_496
    assert found.ours == weights + -(-weights // 5) + GIB
    assert found.against == "weights + margin + runtime"


def test_a_pool_holds_as_many_tokens_as_its_share_of_heads_allows() -> None:
    # 80 layers x 2 x (8 / 4 heads) x 128 x 2 bytes on each of four GPUs.
    assert outcome("llama-3.3-70b-tokens-4-gpus").ours == int(Decimal("54.09") * GIB) // 81_920


def test_a_cache_of_other_elements_shows_both_errors() -> None:
    found = outcome("llama-3.1-8b-tokens-8-bit-cache")
    assert -Fraction(51, 100) < found.error < -Fraction(49, 100)
    assert abs(found.error_of_same_elements) < Fraction(1, 10_000)
    assert missing_terms(found) == ["a cache of 8-bit elements; ours is always 16-bit"]


def test_a_whole_deployment_is_compared_with_all_gpus_together(tmp_path: Path) -> None:
    found = compared(tmp_path, "llama-3.1-8b-weights-2-gpus", detail={"whole_deployment": True})
    assert isinstance(found, Reading)
    assert found.ours == 16_060_522_496


def test_a_copy_on_each_gpu_is_one_gpu_and_a_base_in_parts_is_not_ours(tmp_path: Path) -> None:
    assert isinstance(outcome("llama-2-7b-lora-a-copy-on-each"), Reading)
    sharded = compared(tmp_path, "llama-2-7b-lora-a-copy-on-each", detail={"shard": 2})
    assert isinstance(sharded, NotCompared)
    assert "sharded over 2" in sharded.reason


def test_a_verdict_is_against_the_memory_that_the_catalog_counts() -> None:
    found = outcome("llama-3.1-8b-35000-on-3090")
    assert isinstance(found, Verdict)
    assert (found.memory.bytes, found.memory.origin) == (24_576 * MIB, "reported")
    assert (found.fitted, found.fits_by_us, found.right) == (True, False, False)


@pytest.mark.parametrize(
    ("gpu", "size", "origin"),
    [
        ("T4 16GB", 15_360 * MIB, "reported"),
        ("RTX 3080 Ti 12GB", 12 * GB, "nominal"),
        ("GTX 1070 8GB", 8 * GB, "nominal, by its name"),
    ],
)
def test_a_gpu_s_memory_is_reported_or_nominal_and_says_which(gpu: str, size: int, origin: str) -> None:
    memory = memory_of(gpu)
    assert memory is not None
    assert (memory.bytes, memory.origin) == (size, origin)


def test_a_gpu_without_known_memory_is_not_judged(tmp_path: Path) -> None:
    assert memory_of("an unknown card") is None
    for name in (None, "an unknown card"):
        found = compared(tmp_path, "llama-2-13b-on-t4", gpu_name=name)
        assert isinstance(found, NotCompared)
        assert "memory is not stated" in found.reason


def test_every_name_in_the_tables_is_a_model_or_gpu_of_ours() -> None:
    assert all(model_named(name, "weights") for name in MODEL_SLUGS)
    assert all(model_named(name, "kv_tokens") for name in CACHE_SLUGS)
    assert all(memory_of(name) for name in GPU_SLUGS)


def test_a_model_with_the_same_cache_alone_is_compared_by_its_cache_alone() -> None:
    assert model_named("Mistral-Small-3.1-24B", "kv_tokens")
    assert model_named("Mistral-Small-3.1-24B", "weights") is None


# --- The summary ----------------------------------------------------------------------------------------------------


def test_every_entry_is_in_exactly_one_place() -> None:
    places = [SUMMARY.readings, SUMMARY.verdicts, SUMMARY.ambiguous, SUMMARY.not_compared]
    ids = [each.observation.id for place in places for each in place]
    assert sorted(ids) == sorted(OBSERVATIONS)
    listed = [name for found in (SUMMARY.unknown_names, SUMMARY.unanswered) for ids in found.values() for name in ids]
    assert sorted(listed) == sorted(each.observation.id for each in SUMMARY.not_compared)


def test_weights_at_16_bits_are_within_half_a_percent_at_the_median() -> None:
    assert SUMMARY.weights_at_16_bits.count >= 6
    assert SUMMARY.weights_at_16_bits.median <= Fraction(5, 1000)


def test_every_large_error_and_every_wrong_verdict_has_a_term_or_says_that_it_is_not_known() -> None:
    wrong = [*SUMMARY.large, *(verdict for verdict in SUMMARY.verdicts if not verdict.right)]
    assert len(wrong) >= 8
    assert all(missing_terms(each) for each in wrong)


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("llama-2-7b-lora-batch-4", "gradient checkpointing was off"),
        ("llama-2-7b-qlora-no-checkpointing", "constants of NF4 blocks"),
        ("llama-3.1-8b-qlora-chunked-loss", "chunked cross-entropy"),
        ("gpt-oss-20b-weights-mxfp4", "a scale for every 32 values"),
        ("qwen2.5-7b-peak-gptq-32768", "prefill"),
        ("whisper-large-v2-reference", "weights at 32 bits"),
        ("llama-3.1-8b-35000-on-3090", "margin of 20 %"),
    ],
)
def test_the_term_follows_from_what_the_entry_states(name: str, term: str) -> None:
    assert any(term in each for each in missing_terms(outcome(name)))


def test_what_no_fact_explains_is_said_to_be_not_known(tmp_path: Path) -> None:
    found = compared(tmp_path, "llama-3.1-8b-weights", observed_value=30)
    assert isinstance(found, Reading)
    assert is_large(found)
    assert missing_terms(found) == [NOT_KNOWN]


def test_a_server_s_share_of_the_memory_is_checked_against_our_need(tmp_path: Path) -> None:
    failed = {"quantity": "oom", "notes": "util 0.90", "gpu_name": "RTX 4090 24GB"}
    tight = compared(tmp_path, "llama-3.1-8b-35000-on-3090", context=32_768, **failed)
    easy = compared(tmp_path, "llama-3.1-8b-35000-on-3090", context=4096, **failed)
    assert isinstance(tight, Verdict)
    assert isinstance(easy, Verdict)
    assert "less than our need" in missing_terms(tight)[0]
    assert "still more than our need" in missing_terms(easy)[0]


def test_median_and_p90_are_of_sizes_and_the_worst_keeps_its_sign(tmp_path: Path) -> None:
    values = [Decimal(figure) for figure in ("20", "16", "15", "14", "30")]
    rows = [row("llama-3.1-8b-weights", id=f"entry-{value}", observed_value=float(value)) for value in values]
    readings = summarize(read(written(tmp_path / "five.json", *rows))).readings
    errors = Errors(readings)
    sizes = sorted(abs(Fraction(16_060_522_496, GIB) - Fraction(value)) / Fraction(value) for value in values)
    assert (errors.count, errors.median, errors.p90) == (5, sizes[2], sizes[4])
    assert (errors.worst.observation.id, errors.worst.error < 0, errors.too_low) == ("entry-30", True, 4)
    assert Errors(readings[:2]).median == sum(abs(each.error) for each in readings[:2]) / 2


# --- The command ----------------------------------------------------------------------------------------------------


def test_the_command_needs_no_file_and_names_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("compare_observed")
    printed = capsys.readouterr().out
    assert f"sample.json: {len(ROWS)} observations" in printed
    assert "Qwen-1.8B: 1 (qwen-1.8b-peak)" in printed
    assert "images are sized at 16 bits, not at 4: 1 (flux.1-dev-peak-nf4)" in printed
    false_fits = printed.split("False “fits”")[1].split("Too careful")[0]
    assert "llama-2-7b-lora-batch-4" in false_fits
    assert "missing: activations of every layer" in false_fits
    ambiguous = printed.split("Ambiguous entries")[1]
    assert "qwen2.5-72b-on-2-a100" in ambiguous


def test_the_same_figures_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("compare_observed", "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["observations"] == len(ROWS)
    assert [each["id"] for each in document["false_fits"]] == ["llama-2-7b-lora-batch-4"]
    assert document["unknown_names"] == {"Qwen-1.8B": ["qwen-1.8b-peak"]}
    assert [each["id"] for each in document["ambiguous"]] == ["qwen2.5-72b-on-2-a100"]
    weights = next(each for each in document["errors"] if (each["task"], each["quantity"]) == ("run", "weights"))
    assert (weights["precision_bits"], weights["count"]) == (16, 6)


def test_a_file_with_nothing_to_compare_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rows in ([], [row("qwen-1.8b-peak")]):
        call_command("compare_observed", str(written(tmp_path / "few.json", *rows)))
        assert f"{len(rows)} observations" in capsys.readouterr().out
        call_command("compare_observed", str(tmp_path / "few.json"), "--json")
        assert json.loads(capsys.readouterr().out)["errors"] == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"task": "train"}, "task"),
        ({"quantity": "speed"}, "quantity"),
        ({"observed_value": None}, "observed_value"),
        ({"observed_value": -1}, "observed_value"),
        ({"observed_value": "15"}, "observed_value"),
        ({"observed_value": 1e300}, "observed_value"),
        ({"observed_unit": "GB"}, "observed_unit"),
        ({"quantity": "fits"}, "observed_value"),
        ({"gpus": 0}, "gpus"),
        ({"gpus": True}, "gpus"),
        ({"precision_bits": 16.5}, "precision_bits"),
        ({"context": -1}, "context"),
        ({"ambiguous": "no"}, "ambiguous"),
        ({"model": " "}, "model"),
        ({"colour": "red"}, "colour"),
        ({"detail": {"meter": "guess"}}, "detail.meter"),
        ({"detail": {"rank": "8"}}, "detail.rank"),
        ({"detail": {"speed": 1}}, "detail.speed"),
        ({"quantity": "kv_tokens", "observed_unit": "tokens"}, "detail.pool_gib"),
    ],
)
def test_a_malformed_entry_is_named_by_id_and_field(changes: dict[str, Any], named: str, tmp_path: Path) -> None:
    path = written(tmp_path / "wrong.json", row("qwen3-8b-weights"), row("llama-3.1-8b-weights", **changes))
    with pytest.raises(MalformedObservations) as refused:
        read(path)
    assert str(refused.value).startswith(f"llama-3.1-8b-weights, {named}: ")
    with pytest.raises(CommandError, match=r"llama-3\.1-8b-weights"):
        call_command("compare_observed", str(path))


def test_an_entry_without_id_or_a_field_or_an_id_used_twice_is_named(tmp_path: Path) -> None:
    entry = row("qwen3-8b-weights")
    without = {name: value for name, value in entry.items() if name != "gpu_name"}
    for rows, named in (
        ([entry, {**entry, "id": 7}], "Entry 2, id"),
        ([entry, "text"], "Entry 2"),
        ([without], "qwen3-8b-weights, gpu_name: is missing"),
        ([entry, entry], "qwen3-8b-weights, id: is used twice"),
    ):
        with pytest.raises(MalformedObservations, match=named):
            read(written(tmp_path / "wrong.json", *rows))


@pytest.mark.parametrize("content", ["{", "{}", '[{"a": NaN}]', "[" * 100_000])
def test_a_file_that_is_no_list_of_json_is_an_error_in_words(content: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(content)
    with pytest.raises(CommandError, match=r"wrong\.json"):
        call_command("compare_observed", str(path))
    with pytest.raises(CommandError, match=r"absent\.json: cannot be read"):
        call_command("compare_observed", str(tmp_path / "absent.json"))
