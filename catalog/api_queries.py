"""The query string of a list of the API: known names, each once, each of its kind; anything else is an error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.http import QueryDict
from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.paging import DEFAULT_LIMIT, MAX_LIMIT, InvalidCursor, Page, page_of
from catalog.quoting import did_you_mean, shown

PAGING = ("cursor", "limit")
# RFC 3339.
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


class ListQuery:
    """A reading of the query string that gathers every error, then raises them together."""

    def __init__(
        self, request: Request, known: Iterable[str] = (), *, repeatable: Iterable[str] = (), paged: bool = True
    ) -> None:
        self.request = request
        self.given: QueryDict = request.query_params
        self.errors: dict[str, list[ErrorDetail]] = {}
        names = (*known, *PAGING) if paged else tuple(known)
        for name in self.given:
            if name not in names:
                self.refuse(shown(name), f"“{shown(name)}” is not known.{_instead(name, names)}", "unknown_field")
            elif name not in repeatable and len(self.given.getlist(name)) > 1:
                self.refuse(name, f"“{name}” must be given once.", "repeated")
        self.limit = (self.whole("limit", most=MAX_LIMIT) if paged else None) or DEFAULT_LIMIT
        self.cursor: str = self.given.get("cursor", "")

    def refuse(self, name: str, detail: str, code: str = "invalid") -> None:
        self.errors.setdefault(name, []).append(ErrorDetail(detail, code))

    def raise_errors(self) -> None:
        if self.errors:
            raise ValidationError(self.errors)

    def one_of(self, name: str, values: Iterable[str]) -> str:
        """The value when it is one of these, empty when nothing is given."""
        value = self.given.get(name)
        if value is None or value in values:
            return value or ""
        self.refuse(name, f"“{name}” must be one of {', '.join(values)}.", "invalid_choice")
        return ""

    def whole(self, name: str, *, most: int) -> int | None:
        value = self.given.get(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) <= 19 and 1 <= int(value) <= most):
            self.refuse(name, f"“{name}” must be a whole number from 1 to {most:,}.")
            return None
        return int(value)

    def instant(self, name: str) -> datetime | None:
        """A moment with its offset: a time of day without one means another moment in every country."""
        value = self.given.get(name)
        if value is None:
            return None
        try:
            # Not the framework's reading alone: it takes weeks of a year, and digits of every script.
            moment = parse_datetime(value) if _MOMENT.fullmatch(value) else None
            if moment is not None and moment.tzinfo is not None:
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        self.refuse(name, f"“{name}” must be a moment such as 2026-12-01T09:30:00Z (write + as %2B).")
        return None

    def respond(self, rows: Any, ordering: tuple[str, ...], document: Any, *, name: str) -> Response:
        """The answer with one page of the rows and the address of the next."""
        return Response(self.envelope(self.page(rows, ordering, name=name), document))

    def page(self, rows: Any, ordering: tuple[str, ...], *, name: str) -> Page:
        self.raise_errors()
        try:
            return page_of(rows, ordering, name=name, limit=self.limit, cursor=self.cursor)
        except InvalidCursor:
            self.refuse("cursor", "This cursor is none of this list. Begin again without it.")
            self.raise_errors()
            raise

    def envelope(self, page: Page, document: Any) -> dict[str, Any]:
        following = None
        if page.cursor is not None:
            query = self.given.copy()
            query["cursor"] = page.cursor
            following = f"{settings.SITE_URL}{self.request.path}?{query.urlencode()}"
        return {"results": [document(row) for row in page.rows], "next": following}


def refuse_parameters(request: Request) -> None:
    """For addresses that take no parameter: one that is given would go unheard."""
    ListQuery(request, paged=False).raise_errors()


def _instead(name: str, known: tuple[str, ...]) -> str:
    if not known:
        return " This address takes no parameters."
    return did_you_mean(name, known) or f" Known: {', '.join(known)}."
