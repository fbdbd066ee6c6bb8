"""CSV that a spreadsheet opens without running anything: text that would be a formula is marked as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from decimal import Decimal

from django.http import HttpResponse

from catalog.spreadsheets import is_formula


def cell(value: object) -> str:
    """A value as it is written. Numbers stay numbers, negative ones too; text that begins like a formula gets a '.

    >>> cell(Decimal("-5.00")), cell("-5"), cell('=HYPERLINK("http://x","y")'), cell(None)
    ('-5.00', '-5', '\\'=HYPERLINK("http://x","y")', '')
    """
    if value is None:
        return ""
    if isinstance(value, int | Decimal):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    text = str(value)
    return f"'{text}" if is_formula(text) else text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """RFC 4180: commas, CRLF, a header line."""
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow(header)
    writer.writerows([cell(value) for value in row] for row in rows)
    return written.getvalue()


def csv_response(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    disposition = f'attachment; filename="{name}.csv"'
    content = csv_text(header, rows)
    return HttpResponse(content, "text/csv; charset=utf-8", headers={"Content-Disposition": disposition})
