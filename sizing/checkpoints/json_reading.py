"""Strict reading of JSON from people: bounded in size, depth, entries and digits before anything is built.

Python's own reader follows nesting by recursion and keeps the last of two equal keys. Here the nesting is measured
first without recursion, and a key that comes twice is refused by name.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from sizing.checkpoints.errors import UnreadableModel, shown

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SAFETENSORS = "safetensors header"

MIB = 2**20
DEEPEST = 32
LONGEST_NUMBER = 40

# A string (brackets in it are text), or one mark of structure. Possessive, and a string without an end reaches to the
# end of the document: every byte is looked at once.
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


@dataclass(frozen=True)
class Limits:
    """How much of a document is read. `tokens` counts strings, commas and brackets: they bound what is built of it."""

    bytes: int
    tokens: int


# The largest published config.json known is some 10 KiB. An index names each tensor: 92,000 names take 9 MB.
# A header says more of each tensor, and of one shard only; the format itself allows 100 MB.
LIMITS = {
    CONFIG: Limits(bytes=MIB, tokens=100_000),
    INDEX: Limits(bytes=24 * MIB, tokens=900_000),
    SAFETENSORS: Limits(bytes=16 * MIB, tokens=900_000),
}


@dataclass(frozen=True)
class Unusable:
    """A number that JSON does not have (NaN, Infinity) or that is out of range: allowed where nothing reads it."""

    words: str


def kind(value: object) -> str:
    """The kind of a JSON value in words, with the value where it is short."""
    if isinstance(value, Unusable):
        return shown(value.words)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return shown(value)
    if isinstance(value, str):
        return f"the text “{shown(value)}”"
    return "a list" if isinstance(value, list) else "an object"


def take(chunks: Iterable[bytes], document: str) -> bytes:
    """The bytes of an upload, read no further than the document's limit.

    Raises: UnreadableModel once the limit is passed; what follows is never read.
    """
    most = LIMITS[document].bytes
    taken = bytearray()
    for chunk in chunks:
        if len(taken) + len(chunk) > most:
            raise _too_large(document)
        taken += chunk
    return bytes(taken)


def read_object(data: bytes | str, document: str, limits: Limits | None = None) -> dict[str, Any]:
    """A JSON object as a dictionary. Numbers that are no whole or decimal number arrive as `Unusable`.

    Raises: UnreadableModel naming the key that comes twice, or the document when it cannot be read as a whole.
    """
    limits = limits or LIMITS[document]
    text = _checked_text(data, document, limits)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=Unusable,
            parse_int=_whole,
            parse_float=_decimal,
        )
    except ValueError as error:
        raise UnreadableModel(document, f"it is not JSON ({shown(str(error))})", "Upload the file unchanged") from None
    if not isinstance(value, dict):
        raise UnreadableModel(
            document, f"it is not a JSON object but {kind(value)}", f"Upload the {document} of a model"
        )
    return value


def _checked_text(data: bytes | str, document: str, limits: Limits) -> str:
    if len(data) > limits.bytes:
        raise _too_large(document, limits)
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError:
            raise UnreadableModel(document, "it has half a character in it", "Paste the text again") from None
        if len(data) > limits.bytes:
            raise _too_large(document, limits)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableModel(document, "it is not UTF-8 text", "Save it as UTF-8 and upload it again") from None
    _measure(data, document, limits)
    return text


def _measure(data: bytes, document: str, limits: Limits) -> None:
    depth = 0
    for tokens, token in enumerate(_TOKENS.finditer(data), start=1):
        mark = data[token.start()]
        if mark in b"[{":
            depth += 1
        elif mark in b"]}":
            depth -= 1
        if depth > DEEPEST:
            raise UnreadableModel(document, f"it is nested deeper than {DEEPEST} levels", "Upload the file unchanged")
        if tokens > limits.tokens:
            raise UnreadableModel(
                document, f"it has more than {limits.tokens:,} entries", "Upload the file of one model"
            )


def _too_large(document: str, limits: Limits | None = None) -> UnreadableModel:
    most = (limits or LIMITS[document]).bytes
    return UnreadableModel(document, f"it is larger than {most // MIB} MiB", f"Upload only the {document}")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise UnreadableModel(key, "it is given twice", "Keep one of the two")
            seen.add(key)
    return values


def _whole(digits: str) -> int | Unusable:
    if len(digits) > LONGEST_NUMBER:
        return Unusable(f"a number of {len(digits)} digits")
    return int(digits)


def _decimal(digits: str) -> float | Unusable:
    """The number, or as it stands in the file where Python would make an infinity of it."""
    number = float(digits)
    return number if isfinite(number) else Unusable(f"the number {digits}")
