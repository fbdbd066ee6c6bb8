"""JSON of any kind gives an object or a clear refusal, and takes little memory either way."""

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing.checkpoints.config import read_config
from sizing.checkpoints.errors import UnreadableModel, shown
from sizing.checkpoints.json_reading import CONFIG, INDEX, LIMITS, MIB, read_object, take
from sizing.checkpoints.reading import read_model
from tests.sizing.checkpoints.published import configs

LLAMA = configs("published.json")["meta-llama/Meta-Llama-3.1-8B"]
PUBLISHED = configs("published.json")

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**30), max_value=10**30)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([0, -1, 1.5, 10**30, "abc", "\x00", "32"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


def refusal(data: bytes | str, document: str = CONFIG) -> UnreadableModel:
    with pytest.raises(UnreadableModel) as caught:
        read_object(data, document)
    str(caught.value).encode()
    return caught.value


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [33, 1_000, 10_000, 300_000])
def test_nesting_is_refused_before_it_is_followed(opening: str, depth: int) -> None:
    data = opening * depth
    if len(data) > LIMITS[CONFIG].bytes:
        data = data[: LIMITS[CONFIG].bytes]
    assert "deeper" in refusal(data).reason


def test_brackets_in_a_text_are_no_nesting() -> None:
    assert read_object(json.dumps({"a": "[{" * 5_000, 'b"\\': "]"}), CONFIG)["a"] == "[{" * 5_000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xfe{\x00}\x00", "UTF-8"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"a": "\x00"}', "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b'{"' + b'\\"' * 500_000, "not JSON"),
        (b'{"' + b"\\" * 1_000_001, "not JSON"),
        (b'"' * 1_000_001, "entries"),
        (b"[1]", "not a JSON object"),
        (b"3", "not a JSON object"),
        ('{"a": "\ud800"}', "half a character"),
        (b'{"a": [' + b"1," * 110_000 + b"1]}", "entries"),
        (b" " * (MIB + 1), "larger than 1 MiB"),
        ("é" * MIB, "larger than 1 MiB"),
    ],
)
def test_what_is_no_small_json_object_is_refused_as_a_whole(data: bytes | str, words: str) -> None:
    problem = refusal(data)
    assert problem.field == CONFIG
    assert words in problem.reason


def test_a_key_given_twice_is_refused_by_name_at_any_depth() -> None:
    assert refusal('{"hidden_size": 1, "hidden_size": 2}').field == "hidden_size"
    assert refusal('{"a": {"b": [{"c": 1, "c": 1}]}}').field == "c"
    assert refusal('{"a\\u0000": 1, "a\\u0000": 1}').field == "a\\x00"


def test_a_byte_order_mark_is_accepted() -> None:
    assert read_object(b'\xef\xbb\xbf{"a": 1}', CONFIG) == {"a": 1}


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1" * 41, "1" * 10_000, "1e999"])
def test_numbers_that_are_none_are_refused_only_where_they_are_read(literal: str) -> None:
    config = json.dumps(LLAMA)
    unread = config[:-1] + f', "rope_theta": {literal}}}'
    assert read_config(unread).layers == 32
    read = json.dumps({**LLAMA, "num_hidden_layers": None}).replace("null", literal, 1)
    with pytest.raises(UnreadableModel) as caught:
        read_config(read)
    assert caught.value.field == "num_hidden_layers"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("12.5", "12.5"),
        ("[1]", "a list"),
        ('"a"', "the text “a”"),
        ("null", "null"),
        ("true", "true"),
        ("1e400", "the number 1e400"),
    ],
)
def test_a_file_that_is_no_object_is_named_for_what_it_is(data: str, words: str) -> None:
    assert refusal(data).reason == f"it is not a JSON object but {words}"


@pytest.mark.parametrize("literal", ["1e400", "-1.5E+999"])
def test_a_number_out_of_range_is_named_as_the_file_has_it(literal: str) -> None:
    with pytest.raises(UnreadableModel) as caught:
        read_config(json.dumps({**LLAMA, "hidden_size": None}).replace("null", literal, 1))
    assert caught.value.field == "hidden_size"
    assert literal in caught.value.reason


def test_an_upload_of_200_mb_is_left_unread_after_the_limit() -> None:
    read = 0

    def upload() -> Iterator[bytes]:
        nonlocal read
        for _ in range(200):
            read += 10**6
            yield b" " * 10**6

    tracemalloc.start()
    try:
        with pytest.raises(UnreadableModel):
            take(upload(), CONFIG)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read <= 2 * 10**6
    assert peak < 8 * MIB


@pytest.mark.parametrize(
    "unit", [b"[],", b"{},", b'"",', b'{"a":[0]},', b"1.5,", b'"\\u0041\\n",', b'{"a":{"b":{"c":{}}}},']
)
def test_the_memory_of_a_configuration_is_bounded_whatever_is_in_it(unit: bytes) -> None:
    data = b'{"a": [' + unit * ((MIB - 20) // len(unit)) + b"0]}"
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableModel):
            read_config(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 * MIB


def test_an_index_of_a_large_mixture_is_inside_the_limits() -> None:
    names = {f"model.layers.{layer}.mlp.experts.{expert}.down_proj.weight": "model-00001-of-00163.safetensors"
             for layer in range(61) for expert in range(1500)}  # fmt: skip
    data = json.dumps({"metadata": {"total_size": 10**12}, "weight_map": names})
    assert len(read_object(data, INDEX)["weight_map"]) == 91_500


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for config, weights in ((data, []), (json.dumps(LLAMA), [data])):
        try:
            read_model(config, weights)
        except UnreadableModel as error:
            str(error).encode()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(data: str) -> None:
    try:
        read_config(data)
    except UnreadableModel as error:
        str(error).encode()


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(PUBLISHED)), st.data(), VALUES)
def test_any_value_in_any_field_is_read_or_refused(name: str, data: st.DataObject, value: Any) -> None:
    config = json.loads(json.dumps(PUBLISHED[name]))
    nested = [config] + [inner for inner in config.values() if isinstance(inner, dict)]
    target = data.draw(st.sampled_from(nested))
    target[data.draw(st.sampled_from([*sorted(target), "new_field"]))] = value
    try:
        model = read_config(json.dumps(config))
    except UnreadableModel as error:
        str(error).encode()
    else:
        assert model.parameters > 0
        assert model.shape("x").cache_groups


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_quoted_words_are_short_printable_and_whole(words: str) -> None:
    quoted = shown(words)
    assert len(quoted) <= 60
    assert quoted.isprintable()
    quoted.encode()
