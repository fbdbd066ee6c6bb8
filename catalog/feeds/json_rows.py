"""The rows of a JSON body, one after another: however large or broken it is, only a piece of it is held as objects.

A body of 64 MiB can hold thirty million rows of nothing, so it is never read as one list. Pieces of a megabyte are cut
between two objects and split by msgspec; a cut inside a row or a text does not parse, and then the standard library
reads that piece row by row. It also reads what strict JSON has no words for (NaN, Infinity), so that one such figure
costs its own row and not the whole list.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import msgspec

from catalog.feeds.offers import MOST_BYTES, MOST_ROWS, Unreadable
from catalog.feeds.texts import shown

PIECE_BYTES = 2**20
# What is read for one value, more each time until it is whole. The largest known rows have 3 KiB.
WINDOWS_BYTES = (2**13, 2**16, 2**20)
# So that the count of rows is looked at before much was read.
MOST_SLOW_ROWS = 2_000
CUTS_TRIED = 50
MOST_OBJECTS = 1_000
MOST_BESIDE = 100
MOST_DIGITS = 40

_SPACE = re.compile(rb"[ \t\n\r]*")
_ERROR_WORDS = ("error", "errors", "msg", "message", "detail", "success")
_rows_of_piece = msgspec.json.Decoder(list[msgspec.Raw])


class Oddity:
    """A number that is none: NaN, Infinity, or with more digits than anything real."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Oddity) and other.text == self.text

    __hash__ = None  # type: ignore[assignment]


class Keyed(dict[str, Any]):
    """An object, and the keys it has more than once with different values."""

    repeated: tuple[str, ...] = ()


def number(text: str) -> Decimal | Oddity:
    """A number with a point or an exponent, exactly as written."""
    try:
        return Decimal(text) if len(text) <= MOST_DIGITS else Oddity(text)
    except InvalidOperation:
        return Oddity(text)


def _whole(text: str) -> int | Oddity:
    return int(text) if len(text) <= MOST_DIGITS else Oddity(text)


def _object(pairs: list[tuple[str, Any]]) -> Keyed:
    found = Keyed(pairs)
    if len(found) < len(pairs):
        found.repeated = tuple(dict.fromkeys(key for key, value in pairs if not _same(found[key], value)))
    return found


def _same(one: Any, other: Any) -> bool:
    """Whether two values read alike; `true` is no `1`."""
    return type(one) is type(other) and one == other


_reader = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=number, parse_int=_whole, parse_constant=Oddity, strict=False
)
# Only finds where a value ends: what its numbers are is no question yet.
_scanner = json.JSONDecoder(parse_float=len, parse_int=len, parse_constant=len, strict=False)


def slowly(raw: bytes) -> Any:
    """One value as Python objects, repeated keys noted.

    Raises: ValueError, RecursionError.
    """
    if raw.count(b"{") > MOST_OBJECTS:
        raise ValueError("too many objects in one value")
    return _reader.decode(raw.decode("utf-8", "surrogateescape"))


class Body:
    """A JSON body whose rows are a list at `where`, such as `("data", "gpuTypes")`.

    `beside` holds the values that stand beside the way there, for whoever looks after the rows.
    """

    def __init__(self, body: bytes, *where: str) -> None:
        self.where = where
        self.beside: dict[str, Any] = {}
        self._body = body
        self._at = 3 if body.startswith(b"\xef\xbb\xbf") else 0
        self._found = False

    def rows(self) -> Iterator[msgspec.Raw | bytes]:
        """Each row, not read yet.

        Raises: Unreadable, also after some rows: nothing may be used before the last one came.
        """
        self._look_at_the_whole()
        yield from self._envelope(self.where)
        if self._next():
            self._not_json("has something after its end")
        if not self._found:
            self._without_rows()

    def _look_at_the_whole(self) -> None:
        if len(self._body) > MOST_BYTES:
            raise Unreadable("too_large", f"The body has {len(self._body):,} bytes; {MOST_BYTES:,} are read at most.")
        first = self._next()
        if not first:
            raise Unreadable("empty_body", "The body is empty: check the address and the key of the feed.")
        if first == b"<":
            raise Unreadable(
                "html", "The body is a page, not JSON: a login or error page. Check the address and the key."
            )
        if self._body.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in self._body[:4]:
            raise Unreadable("not_utf8", "The body is not UTF-8: send JSON in UTF-8.")
        if first != b"{":
            raise Unreadable("not_an_object", f"The body is {self._kind()}, not an object with “{self.where[0]}”.")

    def _envelope(self, where: tuple[str, ...]) -> Iterator[msgspec.Raw | bytes]:
        """An object on the way to the rows."""
        beside = 0
        self._at += 1
        if self._next() == b"}":
            self._at += 1
            return
        while True:
            if self._next() != b'"':
                self._not_json("has an object without a key")
            key = self._read()
            self._expect(b":")
            if key != where[0]:
                self.beside[key] = self._read()
                beside += 1
                if beside > MOST_BESIDE:
                    raise Unreadable("not_a_feed", f"The body has over {MOST_BESIDE} fields beside “{self.where[-1]}”.")
            elif self._found:
                raise Unreadable("repeated_key", f"{shown(key)} is there twice: which list counts is not known.")
            elif len(where) > 1:
                if self._next() == b"{":
                    yield from self._envelope(where[1:])
                elif self._read() is not None:
                    raise Unreadable("not_an_object", f"{shown(key)} is not an object.")
            else:
                yield from self._list(key)
            if self._next() == b"}":
                self._at += 1
                return
            self._expect(b",")

    def _list(self, key: str) -> Iterator[msgspec.Raw | bytes]:
        if self._next() != b"[":
            raise Unreadable("rows_not_a_list", f"{shown(key)} is {self._kind()}, not a list of rows.")
        self._found = True
        self._at += 1
        if self._next() == b"]":
            self._at += 1
            return
        count = 0
        while True:
            for row in self._piece():
                count += 1
                if count > MOST_ROWS:
                    raise Unreadable("too_many_rows", f"{shown(key)} has more than {MOST_ROWS:,} rows.")
                yield row
            if self._next() == b"]":
                self._at += 1
                return
            self._expect(b",")

    def _piece(self) -> list[msgspec.Raw | bytes]:
        """The next rows; ends before the comma or bracket after the last of them."""
        self._next()
        end = self._at + PIECE_BYTES
        if cut := self._cut(end):
            try:
                rows = _rows_of_piece.decode(b"[" + self._body[self._at : cut] + b"]")
            except (msgspec.DecodeError, RecursionError):
                # The cut went through a row, or the piece is not strict JSON.
                return self._slow_piece(end)
            self._at = cut
            return list(rows)
        return self._slow_piece(end)

    def _slow_piece(self, end: int) -> list[msgspec.Raw | bytes]:
        rows: list[msgspec.Raw | bytes] = [self._value()]
        while self._at < end and len(rows) < MOST_SLOW_ROWS and self._next() == b",":
            self._at += 1
            rows.append(self._value())
        return rows

    def _cut(self, end: int) -> int | None:
        """Where the last pair of neighbouring objects before `end` can be parted."""
        for _ in range(CUTS_TRIED):
            end = self._body.rfind(b"},", self._at, end)
            if end < 0:
                return None
            behind = _space(self._body, end + 2)
            if self._body[behind : behind + 1] == b"{":
                return end + 1
        return None

    def _value(self) -> bytes:
        """The bytes of the next value."""
        self._next()
        for size in WINDOWS_BYTES:
            text = self._body[self._at : self._at + size].decode("utf-8", "surrogateescape")
            whole = self._at + size >= len(self._body)
            try:
                end = _scanner.raw_decode(text)[1]
            except RecursionError:
                raise Unreadable("too_deep", f"The body is nested too deeply near byte {self._at:,}.") from None
            except ValueError as error:
                if whole:
                    self._not_json(_words(error), error)
                continue
            # A number that is cut at its point or exponent looks like a shorter one.
            if len(text) - end > 2 or whole:
                value = text[:end].encode("utf-8", "surrogateescape")
                self._at += len(value)
                return value
        raise Unreadable(
            "value_too_large", f"Near byte {self._at:,} is a value of over {WINDOWS_BYTES[-1]:,} bytes, or no JSON."
        )

    def _read(self) -> Any:
        """The next value as Python objects."""
        try:
            return slowly(self._value())
        except (ValueError, RecursionError):
            self._not_json("has a value that cannot be read")

    def _next(self) -> bytes:
        """The next byte that is no space, unread; empty at the end."""
        self._at = _space(self._body, self._at)
        return self._body[self._at : self._at + 1]

    def _expect(self, byte: bytes) -> None:
        if self._next() != byte:
            self._not_json(f"should have “{byte.decode()}”")
        self._at += 1

    def _kind(self) -> str:
        first = self._body[self._at : self._at + 1]
        kinds = {b"n": "null", b"{": "an object", b"[": "a list", b'"': "a text", b"t": "true", b"f": "false"}
        return kinds.get(first, "a number" if first in b"-0123456789" else "no JSON")

    def _not_json(self, words: str, error: Exception | None = None) -> NoReturn:
        if self._at >= len(self._body) or words == "ends too early":
            raise Unreadable("cut_off", f"The body ends too early, after {len(self._body):,} bytes.") from error
        raise Unreadable("not_json", f"The body is not JSON: near byte {self._at:,} it {words}.") from error

    def _without_rows(self) -> NoReturn:
        said = [f"{key}: {shown(_message(value))}" for key, value in self.beside.items() if key in _ERROR_WORDS]
        if said:
            raise Unreadable("error_body", f"The feed answers an error instead of a list ({', '.join(said)}).")
        raise Unreadable("rows_missing", f"The body has no “{'.'.join(self.where)}”: is it this format?")


def _message(value: Any) -> Any:
    """The sentence within an error: GraphQL has a list of objects with a `message` each."""
    if isinstance(value, list) and value:
        value = value[0]
    return value.get("message", value) if isinstance(value, dict) else value


def _space(body: bytes, at: int) -> int:
    found = _SPACE.match(body, at)
    return found.end() if found else at


def _words(error: ValueError) -> str:
    """What the standard library found, in words of ours where they are clearer."""
    if isinstance(error, json.JSONDecodeError):
        if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
            return "ends too early"
        return f"is wrong: {error.msg.lower()}"
    return "is wrong"
