"""What a cell of each kind means. What it cannot mean is a sentence that says how it is written."""

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from import_export.fields import Field  # type: ignore[import-untyped]
from import_export.widgets import Widget  # type: ignore[import-untyped]

from catalog import countries

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_AMOUNT = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")
_YES, _NO = {"true", "yes", "1"}, {"false", "no", "0"}


class Text(Widget):
    """A text; empty is empty, or None where that means unknown. `words` are the only ones that may stand there."""

    def __init__(self, *, words: Collection[str] = (), unknown: bool = False) -> None:
        super().__init__()
        self.words, self.unknown = words, unknown

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> str | None:
        text = value.strip()
        if text and self.words and text not in self.words:
            raise ValueError(f"must be one of {', '.join(self.words)}; it is {_said(text)}.")
        return None if not text and self.unknown else text

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else str(value)


class Country(Text):
    """A country's code; empty is unknown."""

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> str | None:
        code = value.strip().upper()
        if code and code not in countries.names():
            raise ValueError(f"must be a country code (ISO 3166-1 alpha-2) such as DE; it is {_said(code)}.")
        return code or None


class Whole(Text):
    """A whole number; empty is unknown."""

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Any:
        text = value.strip()
        if not text:
            return None
        if not _WHOLE.fullmatch(text):
            raise ValueError(f"must be a whole number without separators; it is {_said(text)}.")
        return int(text)


class Amount(Text):
    """A decimal number with a point; empty is unknown."""

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Any:
        text = value.strip()
        if not text:
            return None
        if not _AMOUNT.fullmatch(text):
            raise ValueError(f"must be a number such as 110.00, with a point and without signs; it is {_said(text)}.")
        return Decimal(text)

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else f"{value:f}"


class YesNo(Text):
    """True or false; `unknown` lets it be empty."""

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Any:
        text = value.strip().lower()
        if not text and self.unknown:
            return None
        if text not in _YES | _NO:
            raise ValueError(f"must be true or false; it is {_said(text)}.")
        return text in _YES

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else "true" if value else "false"


class Reference(Text):
    """Another row, named by its slug. `rows` are put in once for a file, so that no cell asks the database."""

    rows: Mapping[str, Any] = {}

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Any:
        found = self.rows.get(value.strip())
        if found is None:
            raise ValueError(f"must be the slug of one that is in the catalog; it is {_said(value.strip())}.")
        return found

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "" if value is None else value.slug


class Lines(Text):
    """A list of texts without blanks, such as addresses."""

    def clean(self, value: str, row: Any = None, **kwargs: Any) -> Any:
        return value.split()

    def render(self, value: Any, obj: Any = None, **kwargs: Any) -> str:
        return "\n".join(value or [])


def column(name: str, kind: Widget, attribute: str | None = None) -> Field:
    return Field(attribute=attribute or name, column_name=name, widget=kind)


def _said(text: str) -> str:
    return f"“{text[:60]}”" if text else "empty"
