"""Headers made for tests: safetensors and GGUF files without their tensors' values."""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from sizing.checkpoints.safetensors_header import BITS

Tensors = Mapping[str, tuple[str, Sequence[int]]]


def safetensors(tensors: Tensors, **changes: Any) -> bytes:
    """The start of a safetensors file with these tensors, one after the other; `changes` replace whole entries."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, (dtype, shape) in tensors.items():
        elements = 1
        for size in shape:
            elements *= size
        end = place + elements * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [place, end]}
        place = end
    header.update(changes)
    return framed(json.dumps(header).encode())


def framed(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header


def text(words: str) -> bytes:
    data = words.encode()
    return struct.pack("<Q", len(data)) + data


def value(item: object) -> bytes:
    """A GGUF value with the number of its type before it."""
    if isinstance(item, bool):
        return struct.pack("<IB", 7, item)
    if isinstance(item, int):
        return struct.pack("<II", 4, item)
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    if isinstance(item, str):
        return struct.pack("<I", 8) + text(item)
    assert isinstance(item, list)
    kinds = {bool: 7, int: 4, str: 8}
    kind = kinds[type(item[0])]
    body = b"".join(value(entry)[4:] for entry in item)
    return struct.pack("<IIQ", 9, kind, len(item)) + body


def gguf(
    keys: Mapping[str, object],
    tensors: Mapping[str, tuple[int, int, Sequence[int]]],
    *,
    version: int = 3,
    tensor_count: int | None = None,
    key_count: int | None = None,
) -> bytes:
    """The start of a GGUF file. A tensor is (number of its type, its bytes, its dimensions)."""
    data = b"GGUF" + struct.pack("<I", version)
    data += struct.pack(
        "<QQ", len(tensors) if tensor_count is None else tensor_count, len(keys) if key_count is None else key_count
    )
    for name, item in keys.items():
        data += text(name) + value(item)
    place = 0
    for name, (kind, size, dimensions) in tensors.items():
        data += text(name) + struct.pack("<I", len(dimensions))
        data += b"".join(struct.pack("<Q", each) for each in dimensions)
        data += struct.pack("<IQ", kind, place)
        place += -(-size // 32) * 32
    return data
