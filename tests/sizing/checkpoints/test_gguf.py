"""A GGUF header gives a model sized by its stored bytes, or a refusal by key, tensor or missing bytes."""

import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing.checkpoints.errors import UnreadableModel
from sizing.checkpoints.gguf import read_gguf
from sizing.checkpoints.gguf_header import GGUF, read_gguf_header
from sizing.checkpoints.gguf_types import TENSOR_TYPES
from sizing.checkpoints.imported import ImportedModel
from sizing.checkpoints.json_reading import MIB
from sizing.checkpoints.reading import read_model
from tests.sizing.checkpoints.made import gguf, text

F32, F16, Q4_K, Q6_K = 0, 1, 12, 14
LLAMA: dict[str, object] = {
    "general.architecture": "llama",
    "general.name": "Small",
    "llama.block_count": 2,
    "llama.context_length": 8192,
    "llama.embedding_length": 512,
    "llama.feed_forward_length": 1024,
    "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": 2,
    "llama.rope.dimension_count": 64,
    "llama.rope.freq_base": 500000.0,
    "tokenizer.ggml.tokens": ["a", "b", "c"],
}
TENSORS = {
    "token_embd.weight": (Q6_K, 2 * 3 * 210, (512, 3)),
    "blk.0.attn_q.weight": (Q4_K, 2 * 512 * 144, (512, 512)),
    "blk.1.attn_q.weight": (F16, 512 * 512 * 2, (512, 512)),
    "rope_freqs.weight": (F32, 32 * 4, (32,)),
}
STORED = 2 * 3 * 210 + 2 * 512 * 144 + 512 * 512 * 2 + 32 * 4


def small(**keys: Any) -> bytes:
    """The small file with other keys of its architecture (dots as double underscores); `...` takes one out."""
    changed = {**LLAMA, **{"llama." + name.replace("__", "."): item for name, item in keys.items()}}
    return gguf({name: item for name, item in changed.items() if item is not ...}, TENSORS)


def of(architecture: str, **keys: Any) -> bytes:
    plain = {name.replace("llama.", architecture + "."): item for name, item in LLAMA.items()}
    plain["general.architecture"] = architecture
    plain.update({f"{architecture}." + name.replace("__", "."): item for name, item in keys.items()})
    layers = plain[f"{architecture}.block_count"]
    assert isinstance(layers, int)
    return gguf(plain, {f"blk.{layer}.w": (F16, 2, (1,)) for layer in range(layers)})


def groups(model: ImportedModel) -> list[tuple[int, int, int | None, int | None]]:
    return [(g.layers, g.elements_per_token, g.kv_heads, g.window) for g in model.cache_groups]


def refusal(start: bytes) -> UnreadableModel:
    with pytest.raises(UnreadableModel) as caught:
        read_gguf(start)
    str(caught.value).encode()
    assert caught.value.fix
    return caught.value


@pytest.mark.parametrize("version", [2, 3])
def test_a_header_gives_the_shape_and_the_stored_bytes(version: int) -> None:
    model = read_model(None, [gguf(LLAMA, TENSORS, version=version) + b"\x00" * 100])
    assert model.stored_bytes == STORED
    assert model.parameters == 512 * 3 + 2 * 512 * 512
    assert groups(model) == [(2, 2 * 2 * 64, 2, None)]
    assert (model.layers, model.attention_heads, model.head_dim, model.max_context) == (2, 8, 64, 8192)
    assert (model.vocab_size, model.intermediate_size, model.tied_embeddings) == (3, 1024, True)
    assert model.shape("small").training is None
    assert model.stored is not None
    assert dict(model.stored.bytes_by_dtype) == {"F16": 524_288, "Q4_K": 147_456, "Q6_K": 1260, "F32": 128}
    assert {entry.figure for entry in model.provenance} >= {"parameters", "stored_bytes", "cache_groups", "layers"}


def test_heads_of_each_layer_make_a_group_of_each_kind() -> None:
    assert groups(read_gguf(small(attention__head_count_kv=[2, 4]))) == [(1, 512, 4, None), (1, 256, 2, None)]
    assert groups(read_gguf(small(attention__head_count_kv=[0, 4]))) == [(1, 512, 4, None)]
    assert refusal(small(attention__head_count_kv=[0, 0])).field == "llama.attention.head_count_kv"
    assert refusal(small(attention__head_count_kv=[2])).field == "llama.attention.head_count_kv"
    assert refusal(small(attention__head_count_kv=[2, 3])).field == "llama.attention.head_count_kv"


def test_the_stated_length_of_keys_and_values_wins() -> None:
    model = read_gguf(small(attention__key_length=128, attention__value_length=64))
    assert groups(model) == [(2, 2 * (128 + 64), 2, None)]


def test_windows_follow_the_architecture_and_its_pattern() -> None:
    assert groups(read_gguf(of("gemma2", attention__sliding_window=4096))) == [
        (1, 256, 2, None),
        (1, 256, 2, 4096),
    ]
    assert groups(read_gguf(of("gemma3", block_count=12, attention__sliding_window=512))) == [
        (2, 256, 2, None),
        (10, 256, 2, 512),
    ]
    pattern = [True, True, False]
    model = of("gpt-oss", block_count=3, attention__sliding_window=128, attention__sliding_window_pattern=pattern)
    assert groups(read_gguf(model)) == [(1, 256, 2, None), (2, 256, 2, 128)]
    assert refusal(of("gemma2")).field == "gemma2.attention.sliding_window"


def test_a_window_of_every_layer_reserves_the_whole_context() -> None:
    model = read_gguf(of("phi3", attention__sliding_window=2047))
    assert groups(model) == [(2, 256, 2, None)]
    assert "2,047" in model.cache_note


def test_a_latent_cache_is_stored_once_for_all_heads() -> None:
    model = read_gguf(of("deepseek2", attention__kv_lora_rank=512))
    assert groups(model) == [(2, 512 + 64, None, None)]
    assert refusal(of("deepseek2")).field == "deepseek2.attention.kv_lora_rank"


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"block_count": ...}, "llama.block_count"),
        ({"block_count": 0}, "llama.block_count"),
        ({"block_count": 2**31}, "llama.block_count"),
        ({"block_count": "two"}, "llama.block_count"),
        ({"block_count": True}, "llama.block_count"),
        ({"block_count": 1}, "llama.block_count"),
        ({"block_count": 3}, GGUF),
        ({"embedding_length": 513}, "llama.attention.key_length"),
        ({"context_length": ...}, "llama.context_length"),
        ({"context_length": 1.5}, "llama.context_length"),
        ({"attention__head_count": ...}, "llama.attention.head_count"),
        ({"attention__head_count": [8, 4]}, "llama.attention.head_count"),
        ({"attention__indexer__top_k": 2048}, "llama.attention.indexer.top_k"),
        ({"ssm__state_size": 128}, "llama.ssm.state_size"),
    ],
)
def test_a_key_that_is_missing_wrong_or_not_understood_is_refused_by_name(keys: dict[str, Any], field: str) -> None:
    assert refusal(small(**keys)).field == field


@pytest.mark.parametrize("architecture", ["qwen3next", "nemotron_h", "bert", "clip", "\x00"])
def test_an_architecture_that_is_not_understood_is_refused(architecture: str) -> None:
    assert refusal(gguf({"general.architecture": architecture}, TENSORS)).field == "general.architecture"


def test_one_of_several_files_is_not_taken_for_the_whole() -> None:
    assert refusal(gguf({**LLAMA, "split.count": 3}, TENSORS)).field == "split.count"


def test_every_cut_says_that_bytes_are_missing() -> None:
    start = small()
    for cut in range(4, len(start)):
        problem = refusal(start[:cut])
        assert problem.field == GGUF
        assert "more are needed" in problem.reason
    assert read_gguf(start).stored_bytes == STORED


@pytest.mark.parametrize("start", [b"", b"GG", b"PK\x03\x04" + b"\x00" * 100, b"ggml" + b"\x00" * 100])
def test_another_file_is_refused(start: bytes) -> None:
    assert "letters GGUF" in refusal(start).reason


@pytest.mark.parametrize(("version", "words"), [(1, "version 1"), (4, "version 4"), (3 << 24, "big-endian")])
def test_other_versions_are_refused(version: int, words: str) -> None:
    assert words in refusal(gguf(LLAMA, TENSORS, version=version)).reason


HEAD = b"GGUF" + struct.pack("<I", 3)


@pytest.mark.parametrize(
    "start",
    [
        HEAD + struct.pack("<QQ", 2**64 - 1, 0),
        HEAD + struct.pack("<QQ", 0, 2**64 - 1),
        HEAD + struct.pack("<QQ", 1, 1) + struct.pack("<Q", 2**63),
        HEAD + struct.pack("<QQ", 1, 1) + text("a") + struct.pack("<IQ", 8, 2**63),
        HEAD + struct.pack("<QQ", 1, 1) + text("a") + struct.pack("<IIQ", 9, 4, 2**63),
        HEAD + struct.pack("<QQ", 1, 1) + text("a") + struct.pack("<IIQ", 9, 8, 2**40),
        HEAD + struct.pack("<QQ", 1, 1) + text("a") + struct.pack("<IIQ", 9, 77, 1),
        HEAD + struct.pack("<QQ", 1, 1) + text("a") + struct.pack("<I", 77),
        HEAD + struct.pack("<QQ", 1, 1) + text("a") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5,
        HEAD + struct.pack("<QQ", 1, 2) + (text("a") + struct.pack("<II", 4, 1)) * 2,
        HEAD + struct.pack("<QQ", 0, 0),
    ],
)
def test_huge_or_senseless_counts_are_refused_at_once(start: bytes) -> None:
    tracemalloc.start()
    try:
        refusal(start + b"\x00" * 64)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MIB


@pytest.mark.parametrize(
    "tensor",
    [
        (99, 2, (1,)),
        (Q4_K, 144, (255,)),
        (F16, 2, ()),
        (F16, 2, (1,) * 5),
        (F16, 2, (0,)),
        (F16, 2, (2**63, 2)),
        (F32, 4, (10**15, 1)),
    ],
)
def test_a_tensor_that_does_not_add_up_is_refused_by_name(tensor: tuple[int, int, tuple[int, ...]]) -> None:
    assert refusal(gguf(LLAMA, {**TENSORS, "odd": tensor})).field == "odd"


def test_tensors_that_overlap_are_refused_by_name() -> None:
    overlapping = {"a": (F16, 0, (512,)), "b": (F16, 1024, (512,))}
    assert refusal(gguf(LLAMA, overlapping)).field == "b"


@pytest.mark.parametrize("kind", TENSOR_TYPES)
def test_every_type_is_measured_by_its_blocks(kind: int) -> None:
    _, block, size = TENSOR_TYPES[kind]
    header = read_gguf_header(gguf({"a": 1}, {"w": (kind, 3 * size, (block, 3))}))
    assert header.stored.total_bytes == 3 * size


def test_a_vocabulary_of_200_000_words_takes_little_memory() -> None:
    start = gguf({**LLAMA, "tokenizer.ggml.tokens": ["token"] * 200_000}, TENSORS)
    tracemalloc.start()
    try:
        assert read_gguf(start).vocab_size == 200_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_change_of_any_byte_is_read_or_refused(data: st.DataObject) -> None:
    start = bytearray(small())
    for _ in range(data.draw(st.integers(1, 4))):
        start[data.draw(st.integers(0, len(start) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_gguf(bytes(start))
    except UnreadableModel as error:
        str(error).encode()


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_after_the_letters_are_read_or_refused(body: bytes) -> None:
    for start in (b"GGUF" + body, HEAD + struct.pack("<QQ", 1, 1) + body):
        try:
            read_gguf(start)
        except UnreadableModel as error:
            str(error).encode()
