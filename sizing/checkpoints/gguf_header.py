"""The header of a GGUF file: its keys and the list of its tensors, from the bytes at its start.

Source: the GGUF specification (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3,
little-endian.
"""

import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sizing.checkpoints.errors import UnreadableModel, shown
from sizing.checkpoints.gguf_types import INTEGERS, TENSOR_TYPES
from sizing.checkpoints.imported import StoredWeights
from sizing.checkpoints.json_reading import MIB

GGUF = "GGUF header"
MAGIC = b"GGUF"

# Vocabularies make headers of 5 to 15 MB; the largest known lists some 2,000 tensors.
MOST_HEADER_BYTES = 48 * MIB
MOST_KEYS = 10_000
MOST_TENSORS = 20_000
LONGEST_KEY = 500
LONGEST_TEXT = MIB
MOST_ITEMS = 1_500_000
DEEPEST_ARRAY = 3
MOST_DIMENSIONS = 4
MOST_BYTES = 10**15
KEPT_ITEMS = 10_000

_STRING, _ARRAY, _BOOL = 8, 9, 7
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d"}
_FIX = "Upload the file unchanged, or its first bytes"


class Items(NamedTuple):
    """An array that was walked over and not kept: only its length is of use."""

    length: int


@dataclass(frozen=True)
class GgufHeader:
    """The keys of a GGUF file, and its tensors added up."""

    version: int
    keys: dict[str, Any]
    stored: StoredWeights
    parts: tuple[tuple[str, int], ...]


def read_gguf_header(start: bytes) -> GgufHeader:
    """The header in the bytes at the start of a file.

    Raises: UnreadableModel naming the key or tensor, or saying how many bytes more are needed.
    """
    cursor = _Cursor(start)
    if start[:4] != MAGIC:
        raise UnreadableModel(GGUF, "the file does not begin with the letters GGUF", "Upload a .gguf file")
    cursor.skip(4)
    version = cursor.number("<I")
    if version not in (2, 3):
        words = "it is big-endian" if version in (2 << 24, 3 << 24) else f"version {version:,} is not read"
        raise UnreadableModel(GGUF, words, "Upload a little-endian GGUF file of version 2 or 3")
    tensors = cursor.count("tensors", MOST_TENSORS)
    keys = cursor.count("keys", MOST_KEYS)
    values: dict[str, Any] = {}
    for _ in range(keys):
        name = cursor.text("a key's name", LONGEST_KEY)
        if name in values:
            raise UnreadableModel(name, "it is given twice", _FIX)
        values[name] = cursor.value(name, cursor.number("<I"), 0)
    return GgufHeader(version, values, *_tensors(cursor, tensors, values))


def _tensors(cursor: "_Cursor", count: int, keys: dict[str, Any]) -> tuple[StoredWeights, tuple[tuple[str, int], ...]]:
    alignment = keys.get("general.alignment", 32)
    if type(alignment) is not int or not 1 <= alignment <= MIB or alignment % 8:
        raise UnreadableModel("general.alignment", f"{shown(alignment)} is not a multiple of 8 up to 1 MiB", _FIX)
    sizes: Counter[str] = Counter()
    parameters = place = 0
    seen: dict[str, int] = {}
    for _ in range(count):
        name = cursor.text("a tensor's name", LONGEST_KEY)
        if name in seen:
            raise UnreadableModel(name, "it is listed twice", _FIX)
        elements, first = _dimensions(cursor, name)
        number = cursor.number("<I")
        kind = TENSOR_TYPES.get(number)
        if kind is None:
            raise UnreadableModel(name, f"its type {number:,} is not known here", "Use a file with published types")
        if first % kind.block:
            raise UnreadableModel(
                name, f"rows of {first:,} values do not fill blocks of {kind.block} ({kind.name})", _FIX
            )
        offset = cursor.number("<Q")
        if offset % alignment or offset < place:
            raise UnreadableModel(name, f"its place {offset:,} overlaps the tensor before it or is not aligned", _FIX)
        size = elements // kind.block * kind.size
        place = offset + size
        if place > MOST_BYTES:
            raise UnreadableModel(name, f"it ends beyond {MOST_BYTES:,} bytes", _FIX)
        sizes[kind.name] += size
        seen[name] = elements
        if kind.name not in INTEGERS and not name.startswith("rope_"):
            parameters += elements
    if not seen:
        raise UnreadableModel(GGUF, "it lists no tensors", _FIX)
    ordered = tuple(sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0])))
    stored = StoredWeights(GGUF, sum(sizes.values()), len(seen), ordered, parameters, _layers(seen))
    return stored, tuple(seen.items())


def _dimensions(cursor: "_Cursor", name: str) -> tuple[int, int]:
    dimensions = cursor.number("<I")
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise UnreadableModel(name, f"it has {dimensions:,} dimensions, 1 to {MOST_DIMENSIONS} are possible", _FIX)
    elements, first = 1, 0
    for place in range(dimensions):
        size = cursor.number("<Q")
        elements *= size
        if not 0 < elements <= MOST_BYTES:
            raise UnreadableModel(name, f"it has no values, or more than {MOST_BYTES:,}", _FIX)
        if not place:
            first = size
    return elements, first


def _layers(names: dict[str, int]) -> int | None:
    numbers = [name.split(".")[1] for name in names if name.startswith("blk.") and name.count(".") > 1]
    found = {int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 7}
    return max(found) + 1 if found else None


class _Cursor:
    """A place in bytes that are all there is: every step forward is checked before it is made."""

    def __init__(self, data: bytes) -> None:
        if len(data) > MOST_HEADER_BYTES:
            data = data[:MOST_HEADER_BYTES]
        self._data = memoryview(data)
        self._place = 0
        self._items = 0

    def skip(self, size: int) -> int:
        """Moves over `size` bytes and gives where they began."""
        begin, end = self._place, self._place + size
        if end > MOST_HEADER_BYTES:
            raise UnreadableModel(GGUF, f"it is larger than {MOST_HEADER_BYTES // MIB} MiB", "Upload another file")
        if end > len(self._data):
            raise UnreadableModel(
                GGUF,
                f"it is cut off at byte {len(self._data):,}: at least {end - len(self._data):,} more are needed",
                f"Give more of the start of the file, up to {MOST_HEADER_BYTES // MIB} MiB",
            )
        self._place = end
        return begin

    def number(self, code: str) -> Any:
        return struct.unpack_from(code, self._data, self.skip(struct.calcsize(code)))[0]

    def count(self, of: str, most: int) -> int:
        number: int = self.number("<Q")
        if number > most:
            raise UnreadableModel(GGUF, f"it states {number:,} {of}, at most {most:,} are read", _FIX)
        return number

    def text(self, of: str, longest: int) -> str:
        length = self.number("<Q")
        if length > longest:
            raise UnreadableModel(GGUF, f"{of} takes {length:,} bytes, at most {longest:,} are read", _FIX)
        begin = self.skip(length)
        try:
            return bytes(self._data[begin : begin + length]).decode()
        except UnicodeDecodeError:
            raise UnreadableModel(GGUF, f"{of} at byte {begin:,} is not UTF-8 text", _FIX) from None

    def value(self, name: str, number: int, depth: int) -> Any:
        """One value of the type with this number. Long arrays and arrays of texts come as `Items`."""
        if number == _STRING:
            # The value of a text is kept short: a chat template is long, and nothing here reads one.
            length = self.number("<Q")
            if length > LONGEST_TEXT:
                raise UnreadableModel(name, f"its text takes {length:,} bytes, at most {LONGEST_TEXT:,} are read", _FIX)
            begin = self.skip(length)
            return bytes(self._data[begin : begin + min(length, 200)]).decode(errors="replace")
        if number == _ARRAY:
            return self._array(name, depth)
        code = _NUMBERS.get(number)
        if code is None:
            raise UnreadableModel(name, f"its type {number:,} is not one of GGUF's", _FIX)
        value = self.number(code)
        return bool(value) if number == _BOOL else value

    def _array(self, name: str, depth: int) -> Any:
        number, count = self.number("<I"), self.number("<Q")
        if depth >= DEEPEST_ARRAY:
            raise UnreadableModel(name, f"arrays are nested deeper than {DEEPEST_ARRAY} levels", _FIX)
        self._items += min(count, MOST_ITEMS) + 1
        if count > MOST_ITEMS or self._items > 2 * MOST_ITEMS:
            raise UnreadableModel(name, f"it states {count:,} items, at most {MOST_ITEMS:,} are read", _FIX)
        code = _NUMBERS.get(number)
        if code is not None:
            size = struct.calcsize(code)
            begin = self.skip(size * count)
            if count > KEPT_ITEMS:
                return Items(count)
            items = struct.unpack_from(f"<{count}{code[1]}", self._data, begin)
            return tuple(bool(item) for item in items) if number == _BOOL else items
        if number not in (_STRING, _ARRAY):
            raise UnreadableModel(name, f"its items have the type {number:,}, which is not one of GGUF's", _FIX)
        step: Callable[[], Any] = self._skip_text if number == _STRING else lambda: self._array(name, depth + 1)
        for _ in range(count):
            step()
        return Items(count)

    def _skip_text(self) -> None:
        self.skip(self.number("<Q"))
