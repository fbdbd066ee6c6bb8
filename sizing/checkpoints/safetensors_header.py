"""Bytes and tensors of a safetensors checkpoint, from its index or from the first bytes of its files.

Source: the safetensors format (https://github.com/huggingface/safetensors#format): 8 bytes little-endian length, a
JSON header of that length, then the tensors without a gap.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sizing.checkpoints.errors import UnreadableModel, shown
from sizing.checkpoints.imported import StoredWeights
from sizing.checkpoints.json_reading import INDEX, LIMITS, MIB, SAFETENSORS, kind, read_object

LENGTH_BYTES = 8
MOST_BYTES = 10**15
MOST_DIMENSIONS = 16
LONGEST_NAME = 500

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
# Integers of a quantized checkpoint hold several weights each, or scales: their number is not a number of parameters.
PACKED = frozenset({"U8", "I8", "I16", "U16", "I32", "U32", "F4", "F6_E2M3", "F6_E3M2", "F8_E8M0"})
BUFFERS = frozenset({"BOOL", "I64", "U64"})
_SCALES = re.compile(r".*[._](scales?|scale_inv|zeros|qzeros|g_idx|inv_freq|absmax|quant_map)")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d{1,6})\.")
_FIX = "Upload the file unchanged, or its first bytes"


@dataclass(frozen=True)
class Tensor:
    """One tensor of a header."""

    name: str
    dtype: str
    elements: int
    begin: int
    end: int


def header_bytes_needed(start: bytes) -> int:
    """How many bytes from the start of a file hold its whole header, from its first 8 bytes.

    Raises: UnreadableModel when there are fewer, or when it states more than is read here.
    """
    if len(start) < LENGTH_BYTES:
        raise UnreadableModel(
            SAFETENSORS, f"the file has {len(start)} bytes, the length of its header takes {LENGTH_BYTES}", _FIX
        )
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    most = LIMITS[SAFETENSORS].bytes
    if length > most:
        raise UnreadableModel(
            SAFETENSORS,
            f"it states a header of {length:,} bytes, at most {most // MIB} MiB are read",
            "Upload a .safetensors file; other formats are not read",
        )
    return LENGTH_BYTES + length


def read_safetensors_headers(starts: Sequence[bytes]) -> StoredWeights:
    """The tensors of a checkpoint, from the bytes at the start of each of its files; what follows is not looked at.

    Raises: UnreadableModel naming the tensor, or the header when it is cut off.
    """
    tensors: dict[str, Tensor] = {}
    for start in starts:
        for tensor in _tensors(start):
            if tensor.name in tensors:
                raise UnreadableModel(tensor.name, "it is in two of the files", "Give each shard once")
            tensors[tensor.name] = tensor
    if not tensors:
        raise UnreadableModel(SAFETENSORS, "it lists no tensors", _FIX)
    sizes: Counter[str] = Counter()
    for tensor in tensors.values():
        sizes[tensor.dtype] += tensor.end - tensor.begin
    ordered = tuple(sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0])))
    return StoredWeights(
        document=SAFETENSORS,
        total_bytes=sum(sizes.values()),
        tensors=len(tensors),
        bytes_by_dtype=ordered,
        parameters=_parameters(tensors.values()),
        layers=_layers(tensors),
        missing_layer=_missing_layer(tensors),
    )


def read_safetensors_index(data: bytes | str) -> StoredWeights:
    """The total of a sharded checkpoint, from its model.safetensors.index.json.

    Raises: UnreadableModel naming the field.
    """
    values = read_object(data, INDEX)
    metadata = values.get("metadata")
    if not isinstance(metadata, dict):
        raise UnreadableModel("metadata", "it is missing", "Upload the index unchanged")
    total = metadata.get("total_size")
    if total is None:
        raise UnreadableModel("metadata.total_size", "it is missing", "Upload the headers of the shards instead")
    size = _whole("metadata.total_size", total, least=1)
    weights = values.get("weight_map")
    if not isinstance(weights, dict) or not weights:
        raise UnreadableModel("weight_map", "it must be an object with the tensors", "Upload the index unchanged")
    for name, shard in weights.items():
        if not isinstance(shard, str):
            raise UnreadableModel(f"weight_map.{name}", f"it must be a file name, not {kind(shard)}", "Correct it")
    return StoredWeights(
        INDEX,
        total_bytes=size,
        tensors=len(weights),
        layers=_layers(weights),
        missing_layer=_missing_layer(weights),
    )


def _tensors(start: bytes) -> list[Tensor]:
    needed = header_bytes_needed(start)
    if len(start) < needed:
        raise UnreadableModel(
            SAFETENSORS,
            f"it is cut off: the header takes {needed:,} bytes, {len(start):,} were given",
            f"Give at least {needed - len(start):,} bytes more of the file",
        )
    entries = read_object(start[LENGTH_BYTES:needed], SAFETENSORS)
    entries.pop("__metadata__", None)
    tensors = [_tensor(name, entry) for name, entry in entries.items()]
    tensors.sort(key=lambda tensor: (tensor.begin, tensor.end))
    place = 0
    for tensor in tensors:
        if tensor.begin != place:
            words = "overlaps the one before it" if tensor.begin < place else "leaves a gap before it"
            raise UnreadableModel(tensor.name, f"it begins at byte {tensor.begin:,} and {words}", _FIX)
        place = tensor.end
    return tensors


def _tensor(name: str, entry: object) -> Tensor:
    if len(name) > LONGEST_NAME:
        raise UnreadableModel(name, f"the name is longer than {LONGEST_NAME} characters", _FIX)
    if not isinstance(entry, dict):
        raise UnreadableModel(name, f"it must be an object, not {kind(entry)}", _FIX)
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype not in BITS:
        words = kind(dtype) if dtype is not None else "missing"
        raise UnreadableModel(f"{name}.dtype", f"{words} is not a type of the format known here", _FIX)
    elements = _elements(name, entry)
    offsets = entry.get("data_offsets")
    if not isinstance(offsets, list) or len(offsets) != 2:
        raise UnreadableModel(f"{name}.data_offsets", "it must be two numbers, begin and end", _FIX)
    begin, end = (_whole(f"{name}.data_offsets", offset) for offset in offsets)
    bits = elements * BITS[dtype]
    if end - begin != bits // 8 or bits % 8:
        raise UnreadableModel(
            f"{name}.data_offsets",
            f"{begin:,} to {end:,} is not the size of {elements:,} values of {dtype}",
            _FIX,
        )
    return Tensor(name, dtype, elements, begin, end)


def _elements(name: str, entry: Mapping[str, Any]) -> int:
    shape = entry.get("shape")
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
        raise UnreadableModel(f"{name}.shape", f"it must be a list of at most {MOST_DIMENSIONS} numbers", _FIX)
    elements = 1
    for size in shape:
        elements *= _whole(f"{name}.shape", size)
        if elements > MOST_BYTES:
            raise UnreadableModel(f"{name}.shape", f"it has more than {MOST_BYTES:,} values", _FIX)
    return elements


def _whole(field: str, value: object, *, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnreadableModel(field, f"it must be a whole number, not {kind(value)}", _FIX)
    if not least <= value <= MOST_BYTES:
        raise UnreadableModel(field, f"it must be {least} to {MOST_BYTES:,}, not {shown(value)}", _FIX)
    return value


def _parameters(tensors: Iterable[Tensor]) -> int | None:
    """Values that are weights. None as soon as something is packed: there, only the bytes are certain."""
    count = 0
    for tensor in tensors:
        if tensor.dtype in PACKED:
            return None
        if tensor.dtype not in BUFFERS and not _SCALES.fullmatch(tensor.name):
            count += tensor.elements
    return count


def _layers(names: Iterable[str]) -> int | None:
    """How many decoder layers the tensors belong to; None where their names do not say."""
    return max(_layer_numbers(names), default=-1) + 1 or None


def _missing_layer(names: Iterable[str]) -> int | None:
    """The first layer below the highest that has no tensor; None where there is none."""
    numbers = _layer_numbers(names)
    first = next(number for number in range(len(numbers) + 1) if number not in numbers)
    return first if first < max(numbers, default=0) else None


def _layer_numbers(names: Iterable[str]) -> set[int]:
    """The numbers of decoder layers. A vision tower and a draft head count their own, so their names are left aside."""
    own = (_LAYER.search(name) for name in names if not ("vis" in name or "mtp" in name or "tower" in name))
    return {int(found[1]) for found in own if found is not None}
