"""Bytes of a safetensors checkpoint from its index or its headers."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing.checkpoints.config import read_config
from sizing.checkpoints.errors import UnreadableModel
from sizing.checkpoints.imported import StoredWeights
from sizing.checkpoints.json_reading import INDEX, MIB, SAFETENSORS
from sizing.checkpoints.reading import first_bytes, read_model
from sizing.checkpoints.safetensors_header import (
    header_bytes_needed,
    read_safetensors_headers,
    read_safetensors_index,
)
from tests.sizing.checkpoints.made import framed, safetensors
from tests.sizing.checkpoints.published import configs, with_fields

PUBLISHED = configs("published.json")
CATALOG = configs("catalog.json")
SMALL = {
    "model.layers.0.q.weight": ("BF16", (4, 8)),
    "model.layers.1.q.weight": ("F32", (2, 2)),
    "empty": ("F16", (0,)),
}


def refusal(start: bytes) -> UnreadableModel:
    with pytest.raises(UnreadableModel) as caught:
        read_safetensors_headers([start])
    str(caught.value).encode()
    return caught.value


def test_bytes_tensors_and_parameters_are_added_up_by_type() -> None:
    stored = read_safetensors_headers([safetensors(SMALL) + b"the values follow"])
    assert stored == StoredWeights(SAFETENSORS, 80, 3, (("BF16", 64), ("F32", 16), ("F16", 0)), 36, 2)


def test_packed_integers_are_bytes_and_never_parameters() -> None:
    awq = {
        "model.layers.0.qweight": ("I32", (4096, 512)),
        "model.layers.0.qzeros": ("I32", (32, 512)),
        "model.layers.0.scales": ("F16", (32, 4096)),
        "lm_head.weight": ("F16", (4096, 10)),
    }
    stored = read_safetensors_headers([safetensors(awq)])
    assert stored.parameters is None
    assert stored.total_bytes == 4096 * 512 * 4 + 32 * 512 * 4 + 32 * 4096 * 2 + 4096 * 10 * 2


def test_scales_and_buffers_are_bytes_and_not_parameters() -> None:
    fp8 = {
        "a.weight": ("F8_E4M3", (256, 256)),
        "a.weight_scale_inv": ("F32", (2, 2)),
        "rotary.inv_freq": ("F32", (64,)),
        "position_ids": ("I64", (8,)),
    }
    stored = read_safetensors_headers([safetensors(fp8)])
    assert (stored.parameters, stored.total_bytes) == (65_536, 65_536 + 16 + 256 + 64)


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, 100])
def test_a_header_that_is_cut_off_says_how_much_is_missing(cut: int) -> None:
    start = safetensors(SMALL)
    problem = refusal(start[:cut])
    assert problem.field == SAFETENSORS
    if cut >= 8:
        assert f"{len(start) - cut:,} bytes more" in problem.fix
        assert header_bytes_needed(start[:cut]) == len(start)


@pytest.mark.parametrize("length", [16 * MIB + 1, 2**40, 2**63, 2**64 - 1])
def test_a_header_said_to_be_huge_is_refused_without_reading_on(length: int) -> None:
    assert "at most 16 MiB" in refusal(length.to_bytes(8, "little") + b"{}").reason


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        (3, "x"),
        ({}, "x.dtype"),
        ({"dtype": "Q4", "shape": [1], "data_offsets": [80, 81]}, "x.dtype"),
        ({"dtype": ["F16"], "shape": [1], "data_offsets": [80, 82]}, "x.dtype"),
        ({"dtype": "F16", "shape": 1, "data_offsets": [80, 82]}, "x.shape"),
        ({"dtype": "F16", "shape": [-1], "data_offsets": [80, 82]}, "x.shape"),
        ({"dtype": "F16", "shape": [True], "data_offsets": [80, 82]}, "x.shape"),
        ({"dtype": "F16", "shape": [10**30], "data_offsets": [80, 82]}, "x.shape"),
        ({"dtype": "F16", "shape": [10**9, 10**9], "data_offsets": [80, 82]}, "x.shape"),
        ({"dtype": "F16", "shape": [1] * 17, "data_offsets": [80, 82]}, "x.shape"),
        ({"dtype": "F16", "shape": [1]}, "x.data_offsets"),
        ({"dtype": "F16", "shape": [1], "data_offsets": [80]}, "x.data_offsets"),
        ({"dtype": "F16", "shape": [1], "data_offsets": [82, 80]}, "x.data_offsets"),
        ({"dtype": "F16", "shape": [1], "data_offsets": [80, 83]}, "x.data_offsets"),
        ({"dtype": "F4", "shape": [1], "data_offsets": [80, 80]}, "x.data_offsets"),
        ({"dtype": "F16", "shape": [1], "data_offsets": [80, float("inf")]}, "x.data_offsets"),
        ({"dtype": "F16", "shape": [1], "data_offsets": [78, 80]}, "x"),
        ({"dtype": "F16", "shape": [1], "data_offsets": [90, 92]}, "x"),
    ],
)
def test_a_tensor_that_does_not_add_up_is_refused_by_name(entry: object, field: str) -> None:
    assert refusal(safetensors(SMALL, x=entry)).field == field


@pytest.mark.parametrize("header", [b"", b"[]", b"{}", b'{"__metadata__": {}}', b"\xff", b'{"a": 1, "a": 2}'])
def test_a_header_without_tensors_is_refused(header: bytes) -> None:
    refusal(framed(header))


def test_shards_add_up_and_one_given_twice_is_refused() -> None:
    first, second = safetensors({"model.layers.0.w": ("F16", (2,))}), safetensors({"model.layers.1.w": ("F16", (3,))})
    stored = read_safetensors_headers([first, second])
    assert (stored.total_bytes, stored.tensors, stored.layers) == (10, 2, 2)
    with pytest.raises(UnreadableModel) as caught:
        read_safetensors_headers([first, first])
    assert caught.value.field == "model.layers.0.w"


def index(total: object = 16, **weights: object) -> bytes:
    return json.dumps({"metadata": {"total_size": total}, "weight_map": weights or {"model.layers.0.w": "a"}}).encode()


def test_an_index_gives_the_bytes_of_all_shards() -> None:
    stored = read_safetensors_index(index(25_100_000_000))
    assert (stored.total_bytes, stored.tensors, stored.layers, stored.parameters) == (25_100_000_000, 1, 1, None)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"{}", "metadata"),
        (b'{"metadata": []}', "metadata"),
        (b'{"metadata": {}}', "metadata.total_size"),
        (index(0), "metadata.total_size"),
        (index(-1), "metadata.total_size"),
        (index("16"), "metadata.total_size"),
        (index(1.5), "metadata.total_size"),
        (index(10**30), "metadata.total_size"),
        (index(True), "metadata.total_size"),
        (b'{"metadata": {"total_size": 1}}', "weight_map"),
        (b'{"metadata": {"total_size": 1}, "weight_map": {}}', "weight_map"),
        (index(16, w=3), "weight_map.w"),
        (b"\x80", INDEX),
    ],
)
def test_an_index_that_says_no_size_is_refused_by_field(data: bytes, field: str) -> None:
    with pytest.raises(UnreadableModel) as caught:
        read_safetensors_index(data)
    assert caught.value.field == field


def test_a_quantized_checkpoint_is_sized_by_its_stored_bytes() -> None:
    # 7,839,289,360 "parameters" of packed I32 and files of 25.1 GB: the bytes count.
    config = {**CATALOG["llama-3.1-70b"], "quantization_config": {"quant_method": "awq", "bits": 4}}
    names = {f"model.layers.{layer}.mlp.qweight": "model-00001-of-00009.safetensors" for layer in range(80)}
    model = read_model(json.dumps(config), [index(39_780_000_000, **names)])
    assert model.stored_bytes == 39_780_000_000
    assert model.parameters == 70_553_706_496
    assert model.quantization is not None
    assert (model.quantization.method, model.quantization.bits) == ("awq", 4)
    assert model.provenance[-1].figure == "stored_bytes"


@pytest.mark.parametrize("layers", [0, 1, 31, 33])
def test_a_part_or_another_model_is_not_taken_for_the_whole(layers: int) -> None:
    names = {f"model.layers.{layer}.w": "a" for layer in range(layers)} or {"w": "a"}
    assert together({}, index(16_060_522_496, **names)).field == INDEX


@pytest.mark.parametrize("missing", [0, 17, 31])
def test_an_index_without_a_layer_is_partial(missing: int) -> None:
    names = {f"model.layers.{layer}.{part}": "a" for layer in range(32) for part in "ab" if layer != missing}
    assert together({}, index(16_060_522_496, **names)).field == INDEX


LAYERS = {f"model.layers.{layer}.w": "a" for layer in range(32)}
BF16 = {"torch_dtype": "bfloat16"}
GPTQ = {"quant_method": "gptq"}


def together(changes: dict[str, Any], stored: bytes, slug: str = "llama-3.1-8b") -> UnreadableModel:
    with pytest.raises(UnreadableModel) as caught:
        read_model(with_fields(CATALOG[slug], **changes), [stored])
    return caught.value


@pytest.mark.parametrize(
    ("changes", "total"),
    [
        (BF16, 1_086_259_814),
        (BF16, 15_700_000_000),
        (BF16, 16_400_000_000),
        ({"torch_dtype": "float32"}, 16_060_522_496),
        ({"torch_dtype": "float8_e4m3fn"}, 4_000_000_000),
        ({"torch_dtype": ...}, 8_030_261_248),
        ({"torch_dtype": "auto"}, 33_000_000_000),
        ({"quantization_config": {**GPTQ, "bits": 8}}, 4_500_000_000),
        ({"quantization_config": GPTQ}, 1_900_000_000),
        ({"quantization_config": GPTQ}, 33_000_000_000),
    ],
)
def test_a_total_that_the_configuration_contradicts_is_refused_with_both_figures(
    changes: dict[str, Any], total: int
) -> None:
    problem = together(changes, index(total, **LAYERS))
    assert problem.field == "metadata.total_size"
    assert f"{total:,} bytes" in problem.reason
    assert "8,030,261,248 parameters" in problem.reason
    assert "Give" in problem.fix


@pytest.mark.parametrize(
    ("changes", "total"),
    [
        (BF16, 16_060_522_496),
        ({"torch_dtype": "torch.float16"}, 16_060_530_000),
        ({"torch_dtype": "float32"}, 32_121_044_992),
        ({"torch_dtype": ...}, 32_121_044_992),
        ({"quantization_config": {**GPTQ, "bits": 4}}, 5_700_000_000),
        ({"quantization_config": GPTQ}, 2_100_000_000),
    ],
)
def test_a_total_that_the_configuration_bears_out_counts(changes: dict[str, Any], total: int) -> None:
    config = with_fields(CATALOG["llama-3.1-8b"], **changes)
    assert read_model(config, [index(total, **LAYERS)]).stored_bytes == total


def test_a_shared_vocabulary_may_be_saved_twice_and_not_three_times() -> None:
    names = {f"model.layers.{layer}.w": "a" for layer in range(28)}
    config = with_fields(CATALOG["qwen3-0.6b"], **BF16)
    model = read_config(config)
    once, table = model.parameters * 2, model.vocab_size * model.hidden_size * 2
    assert read_model(config, [index(once + table, **names)]).stored_bytes == once + table
    assert together(BF16, index(once + 2 * table, **names), "qwen3-0.6b").field == "metadata.total_size"


def test_a_header_of_another_type_than_the_configuration_says_is_refused() -> None:
    header = safetensors({"w": ("F8_E4M3", (8_030_261_248,))})
    assert together(BF16, header).field == SAFETENSORS


@pytest.mark.parametrize("values", [7_000_000_000, 17_000_000_000])
def test_a_header_with_too_few_or_too_many_parameters_is_refused(values: int) -> None:
    with pytest.raises(UnreadableModel):
        read_model(json.dumps(CATALOG["llama-3.1-8b"]), [safetensors({"w": ("BF16", (values,))})])
    fitting = read_model(json.dumps(CATALOG["llama-3.1-8b"]), [safetensors({"w": ("BF16", (8_030_261_248,))})])
    assert fitting.stored_bytes == 16_060_522_496


def test_draft_layers_in_the_checkpoint_do_not_make_it_another_model() -> None:
    names = {f"model.layers.{layer}.w": "a" for layer in range(62)}
    stored = index(688_586_727_753, **names)
    assert read_model(json.dumps(PUBLISHED["deepseek-ai/DeepSeek-V3"]), [stored]).stored_bytes == 688_586_727_753


def test_what_is_given_together_must_belong_together() -> None:
    header = safetensors(SMALL)
    for config, weights in ((None, []), ("", [index()]), (json.dumps(CATALOG["llama-3.1-8b"]), [index(), header])):
        with pytest.raises(UnreadableModel):
            read_model(config, weights)


def test_of_a_large_upload_only_the_start_is_kept() -> None:
    tracemalloc.start()
    try:
        start = first_bytes((b"\x00" * 10**6 for _ in range(200)), 4 * MIB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(start) == 4 * MIB
    assert peak < 16 * MIB


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.integers(min_value=0, max_value=2**64 - 1) | st.none())
def test_any_bytes_are_a_header_or_a_refusal(body: bytes, length: int | None) -> None:
    start = framed(body) if length is None else length.to_bytes(8, "little") + body
    try:
        read_safetensors_headers([start])
    except UnreadableModel as error:
        str(error).encode()


VALUES: Any = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers())


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries({}, optional={"dtype": VALUES, "shape": VALUES, "data_offsets": VALUES}) | VALUES)
def test_any_entry_of_a_header_is_read_or_refused(entry: Any) -> None:
    try:
        read_safetensors_headers([safetensors(SMALL, x=entry)])
    except UnreadableModel as error:
        str(error).encode()
