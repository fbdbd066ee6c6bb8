"""Whose rows the database shows: PostgreSQL's row-level security, told once a transaction for whom it works.

The code scopes every query by itself; these blocks are the second lock below it, and `rentals.row_security` has its
policies. Outside of every block the database shows no tenant's row. SQLite has no such lock: the blocks do nothing.

What is set ends with its transaction (`SET LOCAL`), so a pooled connection never carries it on to the next request.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import structlog
from django.db import connection, transaction
from django.db.models import Func, Model, QuerySet, TextField, Value
from django.db.models.functions import Cast
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import StreamingHttpResponse

    from rentals.models import Organization

logger = structlog.get_logger(__name__)
AnyResponse = TypeVar("AnyResponse", bound=HttpResponseBase)
Row = TypeVar("Row", bound=Model)


class Across(enum.StrEnum):
    """Every reason to read or write rows of several tenants. Each use is logged under its name."""

    ADMINISTRATION = "administration"
    CHECK_INVARIANTS = "check invariants"
    END_OF_TERM = "end of term"
    GONE_MACHINES = "machines that went"
    INVITATION_LINK = "invitation link"
    MAILS = "mails about orders"
    NEW_ORGANIZATION = "new organization"
    OPERATOR = "operator's command"
    SAVED_SEARCHES = "saved searches"
    WEBHOOKS = "webhooks"


@dataclass(frozen=True)
class Scope:
    """What a transaction is told: the organization it works for, the person who asks, or why it crosses tenants."""

    tenant: int | None = None
    user: int | None = None
    across: str = ""

    def settings(self) -> list[str]:
        return ["" if value is None else str(value) for value in (self.tenant, self.user, self.across)]


NOBODY = Scope()
_SET = "SELECT set_config('app.tenant', %s, true), set_config('app.user', %s, true), set_config('app.across', %s, true)"


@contextmanager
def tenant(organization: Organization | int, *, user: User | None = None, durable: bool = False) -> Iterator[None]:
    """A transaction that sees one organization's rows, and what `user` may know of their own.

    `durable` is for acts that must be committed when the block ends: it cannot stand inside another transaction.
    """
    number = organization if isinstance(organization, int) else organization.pk
    with _scoped(Scope(tenant=number, user=user.pk if user else None), durable=durable):
        yield


@contextmanager
def person(user: User) -> Iterator[None]:
    """A transaction that sees a person's own memberships and invitations, and the names of their organizations."""
    if _current().user == user.pk and connection.in_atomic_block:
        # Inside an organization's page the person is known already.
        yield
        return
    with _scoped(Scope(user=user.pk)):
        yield


def enter(rows: QuerySet[Row]) -> Row | None:
    """The first of the rows, whose organization this transaction works for from here on.

    The question that finds the row sets it too, so a page needs no round trip more for it.
    """
    if connection.vendor != "postgresql":
        return rows.first()
    number = Cast("organization_id", TextField())
    setting = Func(Value("app.tenant"), number, Value(True), function="set_config", output_field=TextField())
    found = rows.annotate(entered=setting).first()
    if found is not None:
        connection.tenancy_scope = replace(_current(), tenant=found.organization_id)  # type: ignore[attr-defined]
    return found


@contextmanager
def across_tenants(reason: Across) -> Iterator[None]:
    """A transaction that sees every tenant's rows, for the work that is no tenant's own. The reason is logged."""
    if connection.vendor == "postgresql" and _current().across != reason:
        logger.info("across_tenants", reason=reason.value)
    with _scoped(Scope(across=reason.value)):
        yield


def finished(response: AnyResponse) -> AnyResponse:
    """The response with nothing left to be read later, when the block is closed and no row is seen any more."""
    if isinstance(response, SimpleTemplateResponse):
        response.render()
    elif response.streaming:
        streamed: StreamingHttpResponse = response  # type: ignore[assignment]
        streamed.streaming_content = list(streamed)
    return response


def _current() -> Scope:
    scope: Scope = getattr(connection, "tenancy_scope", NOBODY)
    return scope


@contextmanager
def _scoped(scope: Scope, *, durable: bool = False) -> Iterator[None]:
    if connection.vendor != "postgresql":
        if not durable:
            yield
            return
        with transaction.atomic(durable=True):
            yield
        return
    before, nested = _current(), connection.in_atomic_block
    if nested and scope == before and not durable:
        yield
        return
    try:
        with transaction.atomic(durable=durable):
            _tell(scope)
            yield
    except BaseException:
        # A rollback, of a savepoint too, takes the settings back by itself.
        connection.tenancy_scope = before  # type: ignore[attr-defined]
        raise
    if nested:
        _tell(before)
    connection.tenancy_scope = before  # type: ignore[attr-defined]


def _tell(scope: Scope) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SET, scope.settings())
    connection.tenancy_scope = scope  # type: ignore[attr-defined]
