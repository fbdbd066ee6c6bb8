"""Files to rows: CSV and JSON, nothing guessed, and whatever is wrong named by its line.

Every cell is text, as a person wrote it; what it means is for the columns of the table to say.
"""

import codecs
import csv
import io
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from catalog.quoting import did_you_mean
from catalog.spreadsheets import is_formula
from catalog.storable import storable

MAX_BYTES = 16 * 2**20
MAX_ROWS = 50_000
MAX_COLUMNS = 64
MAX_CELL = 4_000
MOST_PROBLEMS = 200
MARK = "'"
_UNKEEPABLE = "has a sign that no text can hold (NUL, or half of a pair): leave it out."
_TOO_DEEP = "has lists inside of lists, too many to read: write each row as one object."
_JSON_WORDS = {
    "Expecting value": "a value is missing",
    "Expecting property name": "a name in double quotation marks is missing",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Unterminated string": "the quotation mark that ends a text is missing",
    "Invalid control character": "a text holds a line break or another sign that must be written as \\n or \\u…",
    "Invalid \\": "a backslash must be written twice",
    "Illegal trailing comma": "a comma follows the last value",
}


@dataclass(frozen=True)
class Fault:
    """What is wrong, in which line and column of the file; neither for what is wrong with all of it."""

    message: str
    line: int | None = None
    column: str = ""


class Unreadable(Exception):
    """The file is not a table of the kind that was asked for. Attributes: `faults`, at least one."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = list(faults)


@dataclass
class Table:
    """Rows as texts by column, each with the line it begins in; a column that the file has not is in no row."""

    columns: list[str]
    rows: list[dict[str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def read(content: bytes, *, known: Collection[str], required: Collection[str]) -> Table:
    """JSON when it begins like JSON, else CSV.

    Raises: Unreadable.
    """
    begins = content[:1000].removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    return (read_json if begins in (b"[", b"{") else read_csv)(content, known=known, required=required)


def read_csv(content: bytes, *, known: Collection[str], required: Collection[str]) -> Table:
    """A table with a header line, columns separated by commas, in UTF-8 with or without its mark.

    Raises: Unreadable.
    """
    text = _text(content)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    table: Table | None = None
    faults: list[Fault] = []
    for line, cells in _records(reader):
        if not any(cell.strip() for cell in cells):
            continue
        if table is None:
            table = Table(_header(cells, line, known, required))
            continue
        if len(cells) != len(table.columns):
            faults.append(Fault(f"has {len(cells)} cells; the header has {len(table.columns)}.", line))
        else:
            row = dict(zip(table.columns, map(_unmarked, cells), strict=True))
            faults += _oversized(row, line)
            table.rows.append(row)
            table.lines.append(line)
        if len(faults) >= MOST_PROBLEMS:
            break
        _bounded(table)
    return _checked(table, faults)


def read_json(content: bytes, *, known: Collection[str], required: Collection[str]) -> Table:
    """A list of objects, one a row.

    Raises: Unreadable.
    """
    text = _text(content)
    table, faults = Table([]), list[Fault]()
    for line, entry in _entries(text):
        if not isinstance(entry, dict):
            faults.append(Fault("must be an object with a name for each value.", line))
            continue
        if not all(map(storable, entry)):
            raise Unreadable(Fault(f"One of its names {_UNKEEPABLE}", line))
        for name in entry:
            if name not in table.columns:
                table.columns.append(name)
        if len(table.columns) > MAX_COLUMNS:
            raise Unreadable(Fault(f"The rows have more than {MAX_COLUMNS} names.", line))
        row = {}
        for name, value in entry.items():
            cell = _cell(value)
            if cell is None:
                faults.append(Fault("must be a text, a number, true, false, null or a list of texts.", line, name))
            elif not storable(cell):
                faults.append(Fault(_UNKEEPABLE, line, name))
            else:
                row[name] = cell
        faults += _oversized(row, line)
        table.rows.append(row)
        table.lines.append(line)
        if len(faults) >= MOST_PROBLEMS:
            break
        _bounded(table)
    if table.rows:
        _header(table.columns, table.lines[0], known, required)
    return _checked(table, faults)


def marked(value: str) -> str:
    """A cell as it is written to a CSV: a text that a spreadsheet would run is marked as text.

    >>> marked("=1+1"), marked("-5.5"), marked("Alpha")
    ("'=1+1", '-5.5', 'Alpha')
    """
    return MARK + value if is_formula(value) or value.startswith(MARK) else value


def _unmarked(cell: str) -> str:
    """What `marked` was given.

    >>> _unmarked("'=1+1"), _unmarked("Alpha's")
    ('=1+1', "Alpha's")
    """
    return cell[1:] if cell.startswith(MARK) and marked(cell[1:]) != cell[1:] else cell


def _text(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise Unreadable(Fault(f"The file has more than {MAX_BYTES // 2**20} MiB. Divide it."))
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable(Fault("The file is UTF-16. Save it as UTF-8 (in a spreadsheet: “CSV UTF-8”)."))
    if b"\0" in content:
        raise Unreadable(Fault("has a NUL byte: this is not a text file.", _line_of(content, content.index(b"\0"))))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = _line_of(content, error.start)
        raise Unreadable(Fault("is not UTF-8. Save it as UTF-8 (in a spreadsheet: “CSV UTF-8”).", line)) from None
    if not text.strip():
        raise Unreadable(Fault("The file is empty."))
    return text


def _line_of(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1


def _records(reader: Any) -> Iterator[tuple[int, list[str]]]:
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "field larger" in str(error):
                raise Unreadable(Fault(f"has a cell of more than {MAX_CELL:,} characters.", line)) from None
            raise Unreadable(Fault(f"is not CSV: {error}. Is a quotation mark missing?", line)) from None
        yield line, cells


def _header(cells: list[str], line: int, known: Collection[str], required: Collection[str]) -> list[str]:
    """The columns' names, without blanks around them and in lower case."""
    if len(cells) == 1 and (other := next((sign for sign in ";\t|" if sign in cells[0]), None)):
        sign = "tabs" if other == "\t" else f"“{other}”"
        raise Unreadable(Fault(f"The columns are separated by {sign}. Save the file with commas.", line))
    columns = [cell.strip().lower() for cell in cells]
    faults = []
    for place, name in enumerate(columns):
        if name in columns[:place]:
            faults.append(Fault("is there twice.", line, name[:60]))
        elif name not in known:
            meant = did_you_mean(name, known) or f" Known are {', '.join(known)}."
            faults.append(Fault(f"is not a column of this table.{meant}", line, name[:60]))
    faults += [Fault("is missing: every row needs it.", line, name) for name in required if name not in columns]
    if faults:
        raise Unreadable(*faults[:MAX_COLUMNS])
    return columns


def _oversized(row: dict[str, str], line: int) -> list[Fault]:
    return [
        Fault(f"has {len(cell):,} characters; at most {MAX_CELL:,} are read.", line, name)
        for name, cell in row.items()
        if len(cell) > MAX_CELL
    ]


def _bounded(table: Table) -> None:
    if len(table.rows) > MAX_ROWS:
        raise Unreadable(Fault(f"The file has more than {MAX_ROWS:,} rows. Divide it.", table.lines[-1]))


def _checked(table: Table | None, faults: list[Fault]) -> Table:
    if faults:
        raise Unreadable(*faults)
    if table is None or not table.rows:
        raise Unreadable(Fault("The file has no row."))
    return table


# --- JSON ---------------------------------------------------------------------------------------------------------


def _entries(text: str) -> Iterator[tuple[int, Any]]:
    """The entries of the outer list, one after the other, so that each has its line."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_named_once, parse_constant=_no_constant, parse_float=str, parse_int=str
    )
    position, line, counted = _skipped(text, 0), 1, 0
    if text[position : position + 1] != "[":
        raise Unreadable(Fault("This is no JSON list of rows: it must begin with “[”.", 1))
    position = _skipped(text, position + 1)
    more = text[position : position + 1] != "]"
    if not more:
        position = _skipped(text, position + 1)
    while more:
        line += text.count("\n", counted, position)
        counted = position
        try:
            entry, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            said = next((words for begins, words in _JSON_WORDS.items() if error.msg.startswith(begins)), error.msg)
            fault = Fault(f"is not JSON: {said}, at character {error.colno} of the line.", error.lineno)
            raise Unreadable(fault) from None
        except RecursionError:
            raise Unreadable(Fault(_TOO_DEEP, line)) from None
        except ValueError as error:
            raise Unreadable(Fault(f"is not JSON: {str(error)[:200]}.", line)) from None
        yield line, entry
        position = _skipped(text, position)
        sign = text[position : position + 1]
        if sign not in (",", "]"):
            raise Unreadable(Fault("is not JSON: a comma or the end of the list is missing.", line))
        more, position = sign == ",", _skipped(text, position + 1)
    if position != len(text):
        raise Unreadable(Fault("Something follows the end of the list.", text.count("\n", 0, position) + 1))


def _skipped(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name “{twice[:60]}” is there twice in one row")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a value")


def _cell(value: Any) -> str | None:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    return None
