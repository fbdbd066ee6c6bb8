"""Faults seen in public reports, each with the right value. The number in a name is the case's.

Formula of the expected figures: per GPU 1.20 x (weights + cache) + 1 GiB. Sources of the shapes: cases.json.
"""

from decimal import Decimal

import pytest

from catalog.units import GB, GIB, MIB, to_gib
from sizing.engine.errors import InvalidWorkload, UnsizableModel
from sizing.engine.estimate import estimate
from sizing.engine.fit import Device, Fit, Rejection, fit
from sizing.engine.parallelism import copies_cache, is_legal_split, legal_splits
from sizing.engine.shapes import CacheGroup, LanguageModel
from sizing.engine.weights import Weights
from sizing.engine.workloads import RunModel
from tests.sizing.engine.shapes import SHAPES, gib, lines, plain, size

H100 = 81_559 * MIB
H100_NVL = 95_830 * MIB
L4 = 23_034 * MIB


# Case, model, context, requests, bits: weights, cache and total in GiB on one GPU.
@pytest.mark.parametrize(
    ("model", "context", "requests", "weights", "cache", "total"),
    [
        pytest.param("qwen3-32b", 40960, 2, "61.02", "20.00", "98.23", id="B001 head size larger than hidden/heads"),
        pytest.param("devstral-small-2507", 32768, 4, "43.91", "20.00", "77.69", id="B003 head size smaller"),
        pytest.param("medgemma-27b-it", 131072, 1, "51.09", "10.41", "74.80", id="B005 sliding window"),
        pytest.param("llama-3.1-8b", 8192, 1, "14.96", "1.00", "20.15", id="B013 grouped heads"),
        pytest.param("llama-3.1-8b", 32768, 8, "14.96", "32.00", "57.35", id="B013 grouped heads, eight requests"),
        pytest.param("qwen3-30b-a3b", 40960, 4, "56.87", "15.00", "87.24", id="B015 all experts count"),
        pytest.param("llama-3.1-8b", 8192, 16, "14.96", "16.00", "38.15", id="B028 sixteen requests"),
    ],
)
def test_weights_cache_and_total(model: str, context: int, requests: int, weights: str, cache: str, total: str) -> None:
    need = size(model, context, requests)
    found = lines(need)
    assert (gib(found["weights"]), gib(found["kv_cache"]), gib(need.total_bytes)) == (weights, cache, total)


@pytest.mark.parametrize(
    ("model", "context", "requests", "cache"),
    [
        pytest.param("medgemma-27b-it", 8192, 1, "1.03", id="B005 within a short context"),
        pytest.param("nemotron-h-56b-base-8k", 8192, 8, "2.50", id="B009 ten attention layers of 118"),
        pytest.param("nemotron-3-nano-30b-a3b", 262144, 1, "1.50", id="B009 six attention layers of 52"),
        pytest.param("deepseek-v3", 163840, 1, "10.72", id="B011 latent cache"),
    ],
)
def test_cache_of_other_layouts(model: str, context: int, requests: int, cache: str) -> None:
    assert gib(lines(size(model, context, requests))["kv_cache"]) == cache


def test_b001_split_over_two_gpus_it_needs_49_61_each() -> None:
    assert gib(size("qwen3-32b", 40960, 2, gpus=2).per_gpu_bytes) == "49.61"


def test_b003_one_80_gb_gpu_is_enough() -> None:
    found = fit(RunModel(SHAPES["devstral-small-2507"], 16, 32768, 4), Device(1, H100))
    assert isinstance(found, Fit)
    assert found.estimate.gpus == 1


def test_b007_only_attention_layers_grow_with_the_context_and_the_state_does_not() -> None:
    model = SHAPES["qwen3.5-27b"]
    long, short = (lines(size(model, context))["kv_cache"] for context in (262144, 1))
    state = model.state_bytes_per_sequence
    assert long - state == 16 * GIB
    assert short - state == 64 * 1024
    assert 0 < state < GIB // 2


def test_b011_the_latent_vector_is_copied_to_every_gpu() -> None:
    alone, split = (lines(size("deepseek-v3", 163840, gpus=gpus))["kv_cache"] for gpus in (1, 8))
    assert alone == split == 70_272 * 163_840
    assert copies_cache(SHAPES["deepseek-v3"], 8)


def test_b015_a_mixture_is_sized_by_all_its_experts_and_needs_more_than_one_80_gb_gpu() -> None:
    asked = RunModel(SHAPES["qwen3-30b-a3b"], 16, 40960, 4)
    assert isinstance(fit(asked, Device(1, H100)), Rejection)
    assert isinstance(fit(asked, Device(1, H100_NVL)), Fit)
    assert gib(lines(size("mixtral-8x7b", 4096))["weights"]) == "86.99"


def test_b017_four_bit_weights_are_half_a_byte_for_each_parameter_and_discounted_once() -> None:
    # Files of 25.1 GB hold 50.2 thousand million parameters of 4 bits, however many words they are packed into.
    weights = Weights(50_200_000_000, 4)
    assert weights.bytes == 25_100_000_000
    assert gib(weights.bytes) == "23.38"
    assert gib(weights.bytes * 12 // 10 + GIB) == "29.05"


def test_b020_a_tied_output_head_counts_once() -> None:
    assert gib(Weights(596_049_920, 16).bytes) == "1.11"
    assert gib(Weights(8_030_261_248, 16).bytes) == "14.96"


def test_b022_an_encoder_without_a_growing_cache_is_not_modelled_and_refused_by_name() -> None:
    # DESIGN 3.1 has no encoder-only models: no figure rather than a chat model's.
    with pytest.raises(UnsizableModel) as refused:
        LanguageModel("an encoder", 568_000_000, 16, (), 8192)
    assert refused.value.field == "cache_groups"


def test_b026_counted_parameters_include_the_vision_tower() -> None:
    assert gib(Weights(35_952_000_000, 16).bytes) == "66.97"


def test_b028_each_further_request_adds_the_same() -> None:
    totals = [size("llama-3.1-8b", 8192, requests).total_bytes for requests in (1, 2, 3, 16)]
    assert totals[1] - totals[0] == pytest.approx(1.2 * GIB, abs=1)
    assert totals[2] - totals[1] == pytest.approx(1.2 * GIB, abs=1)
    assert totals[3] - totals[0] == 15 * 12 * GIB // 10


def test_b032_a_layout_that_is_not_known_in_full_is_refused_naming_the_figure() -> None:
    with pytest.raises(UnsizableModel) as refused:
        CacheGroup(43, None)  # type: ignore[arg-type]
    assert refused.value.field == "elements_per_token"


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        (field, wrong)
        for field in ("layers", "elements_per_token", "kv_heads", "window")
        for wrong in (0, None, -1, "abc", 2.5, True, float("nan"))
        # No KV heads and no window have a meaning.
        if wrong is not None or field in ("layers", "elements_per_token")
    ],
)
def test_b033_a_missing_or_impossible_figure_is_refused_by_name(field: str, wrong: object) -> None:
    group = {"layers": 32, "elements_per_token": 2048, "kv_heads": 8, "window": None, field: wrong}
    with pytest.raises(UnsizableModel) as refused:
        CacheGroup(**group)  # type: ignore[arg-type]
    assert refused.value.field == field


@pytest.mark.parametrize("field", ["parameters", "attention_heads", "max_context"])
@pytest.mark.parametrize("wrong", [0, None, -1, "abc"])
def test_b033_a_model_without_a_needed_figure_is_refused_by_name(field: str, wrong: object) -> None:
    figures = {"parameters": 8, "attention_heads": 8, "max_context": 8, field: wrong}
    with pytest.raises(UnsizableModel) as refused:
        LanguageModel("a model", cache_groups=plain(1, 8, 8), **figures)  # type: ignore[arg-type]
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("precision_bits", 5),
        ("context", 0),
        ("context", 131073),
        ("context", True),
        ("requests", 0),
        ("requests", 100_001),
        ("requests", 1.5),
        ("reserve_gib", -1),
    ],
)
def test_b033_a_workload_outside_its_limits_is_refused_by_name(field: str, wrong: object) -> None:
    given = {{"reserve_gib": "reserve_bytes"}.get(field, field): wrong}
    with pytest.raises(InvalidWorkload) as refused:
        RunModel(SHAPES["llama-3.1-8b"], **given)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_b035_the_cache_stays_16_bit_whatever_the_weights() -> None:
    assert {lines(size("llama-3.1-8b", 131072, bits=bits))["kv_cache"] for bits in (16, 8, 4)} == {16 * GIB}


def test_b036_a_model_of_28_heads_splits_over_1_2_or_4_gpus_and_never_8() -> None:
    model = SHAPES["qwen2-7b"]
    assert legal_splits(model) == (1, 2, 4)
    found = fit(RunModel(model, 16, 32768, 8), Device(8, 12 * GIB))
    assert isinstance(found, Fit)
    assert found.estimate.gpus == 4


def test_b038_a_model_of_40_heads_uses_two_of_three_gpus() -> None:
    model = SHAPES["llama-2-13b"]
    assert legal_splits(model) == (1, 2, 4, 8)
    found = fit(RunModel(model, 16, 4096, 1), Device(3, 24 * GIB))
    assert isinstance(found, Fit)
    assert (found.estimate.gpus, gib(found.estimate.per_gpu_bytes)) == (2, "17.42")
    assert gib(lines(size(model, 4096))["weights"]) == "24.24"
    assert lines(size(model, 4096))["kv_cache"] == 3.125 * GIB


def test_b040_quantization_groups_are_not_modelled_so_the_mlp_width_alone_decides() -> None:
    # DESIGN 3.2 knows nothing of groups; a machine of two GPUs says so in its limits (tests of the explanations).
    model = SHAPES["qwen2.5-72b"]
    assert is_legal_split(model, 2)
    assert fit(RunModel(model, 4, 8192, 2), Device(2, 44 * GIB)).estimate.gpus == 2
    assert fit(RunModel(model, 4, 8192, 2), Device(1, H100)).estimate.gpus == 1


def test_b043_with_fewer_kv_heads_than_gpus_the_cache_is_copied() -> None:
    model = SHAPES["qwen3-235b-a22b"]
    eight = size(model, 32768, 4, bits=8, gpus=8)
    found = lines(eight)
    assert (gib(found["weights"]), gib(found["kv_cache"])) == ("27.37", "5.88")
    assert gib(eight.per_gpu_bytes) == "40.89"
    assert gib(size(model, 32768, 4, bits=8, gpus=4).per_gpu_bytes) == "73.73"
    assert copies_cache(model, 8)
    assert not copies_cache(model, 4)
    assert isinstance(fit(RunModel(model, 8, 32768, 4), Device(8, 40 * GIB)), Rejection)


def test_b047_every_gpu_has_a_runtime_of_its_own() -> None:
    two, four = (size("llama-3.1-70b", 8192, 8, gpus=gpus) for gpus in (2, 4))
    assert [gib(need.total_bytes) for need in (two, four)] == ["183.70", "185.70"]
    assert [gib(need.per_gpu_bytes) for need in (two, four)] == ["91.85", "46.42"]
    assert to_gib(four.total_bytes) - to_gib(two.total_bytes) == Decimal("2.00")


def test_b049_the_full_reported_memory_counts_without_a_second_discount() -> None:
    base = RunModel(SHAPES["llama-3.1-8b"])
    reserve = 2240 * GIB // 100 - estimate(base).per_gpu_bytes
    asked = RunModel(base.model, reserve_bytes=reserve, reserve_reason="to reach 22.40 GiB")
    assert gib(estimate(asked).per_gpu_bytes) == "22.40"
    assert isinstance(fit(asked, Device(1, L4)), Fit)


def test_b080_24_gb_and_24_gib_are_different_sizes() -> None:
    assert (gib(24 * GB), gib(24 * GIB)) == ("22.35", "24.00")


def test_one_gpu_is_used_whenever_one_suffices() -> None:
    found = fit(RunModel(SHAPES["llama-3.1-8b"]), Device(8, 24 * GIB))
    assert isinstance(found, Fit)
    assert found.estimate.gpus == 1


def test_memories_of_gpus_are_never_added_up() -> None:
    # 160.20 GiB in all; two GPUs of 80.00 have that together, but each of them needs 80.60.
    found = fit(RunModel(SHAPES["llama-3.1-70b"]), Device(2, 80 * GIB))
    assert isinstance(found, Rejection)
    assert (found.code, gib(found.estimate.per_gpu_bytes), gib(found.lacking_bytes)) == ("too_small", "80.60", "0.60")


def test_a_split_that_is_not_allowed_is_told_from_too_little_memory() -> None:
    found = fit(RunModel(SHAPES["llama-3.1-70b"]), Device(3, 60 * GIB))
    assert isinstance(found, Rejection)
    assert (found.code, found.estimate.gpus) == ("illegal_split", 2)


def test_a_reserve_has_no_margin_and_needs_its_reason() -> None:
    plain_need = estimate(RunModel(SHAPES["llama-3.1-8b"])).total_bytes
    with_reserve = estimate(RunModel(SHAPES["llama-3.1-8b"], reserve_bytes=6 * GIB, reserve_reason="a web server"))
    assert with_reserve.total_bytes - plain_need == 6 * GIB
    with pytest.raises(InvalidWorkload) as refused:
        RunModel(SHAPES["llama-3.1-8b"], reserve_bytes=1, reserve_reason=" ")
    assert refused.value.field == "reserve_reason"
