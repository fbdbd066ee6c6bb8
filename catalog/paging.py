"""Lists of the API, page by page: each page begins after the last row of the one before, whatever was added since.

Every ordering ends in the primary key, so rows of equal price are neither repeated nor lost between two pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db.models import Q, QuerySet

DEFAULT_LIMIT = 50
MAX_LIMIT = 100


class InvalidCursor(Exception):
    """The cursor is none that this list gave."""


@dataclass(frozen=True)
class Page:
    """Some rows of a list. `cursor` leads to those after them, None on the last page."""

    rows: list[Any]
    cursor: str | None


def page_of(
    rows: QuerySet[Any], ordering: tuple[str, ...], *, name: str, limit: int = DEFAULT_LIMIT, cursor: str = ""
) -> Page:
    """The next `limit` rows. `ordering` has names of fields that are never null, a minus before those that fall; its
    last is unique. `name` is the list's own, so that the cursor of one list is none of another.

    Raises: InvalidCursor.
    """
    salt = f"cursor:{name}:{','.join(ordering)}"
    rows = rows.order_by(*ordering)
    if cursor:
        rows = rows.filter(_after(ordering, _read(cursor, salt, len(ordering))))
    found = list(rows[: limit + 1])
    if len(found) <= limit:
        return Page(found, None)
    last = found[limit - 1]
    return Page(found[:limit], signing.dumps([_value(last, field) for field in ordering], salt=salt))


def _read(cursor: str, salt: str, count: int) -> list[Any]:
    try:
        values = signing.loads(cursor, salt=salt)
    except (signing.BadSignature, ValueError) as error:
        raise InvalidCursor from error
    if not isinstance(values, list) or len(values) != count:
        raise InvalidCursor
    return values


def _after(ordering: tuple[str, ...], values: list[Any]) -> Q:
    """Rows behind these values: (a, b) > (x, y) is a > x, or a = x and b > y."""
    behind, equal = Q(pk__in=[]), Q()
    for field, value in zip(ordering, values, strict=True):
        plain = field.removeprefix("-")
        comparison = "lt" if field.startswith("-") else "gt"
        behind |= equal & Q(**{f"{plain}__{comparison}": value})
        equal &= Q(**{plain: value})
    return behind


def _value(row: Any, field: str) -> Any:
    value = getattr(row, field.removeprefix("-"))
    return value if isinstance(value, int) else value.isoformat() if hasattr(value, "isoformat") else str(value)
