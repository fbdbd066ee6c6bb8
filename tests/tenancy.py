"""The suite on PostgreSQL has both roles: the owner makes the test database, and what is tested connects as the other.

The tests' own rows are made and read across tenants, under the name `tests`; a request, in whichever thread it is
answered, starts as one in production does: for nobody.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.signals import request_finished, request_started
from django.db import connection, connections
from django.db.backends.signals import connection_created
from psycopg.pq import TransactionStatus

from rentals.tenants import NOBODY, Scope

INERROR = TransactionStatus.INERROR
_TESTS = Scope(across="tests")
_local = threading.local()


def become(role: str) -> None:
    """Let the default connection of every thread belong to `owner` or to `application`."""
    default = connections["default"]
    default.close()
    default.close_pool()
    source = connections["owner"].settings_dict if role == "owner" else _application
    default.settings_dict.update(USER=source["USER"], PASSWORD=source["PASSWORD"])


_application = {name: settings.DATABASES["default"].get(name) for name in ("USER", "PASSWORD")}


def watch() -> None:
    """From now on every connection is the tests' own, except while it answers a request."""
    connection_created.connect(_connected)
    request_started.connect(_request_started)
    request_finished.connect(_request_finished)


@contextmanager
def as_in_production() -> Iterator[None]:
    """What runs in the block starts without the tests' own sight of every tenant, as a task or a command does."""
    _begin(NOBODY)
    try:
        yield
    finally:
        _begin(_TESTS)


def statements(captured: Any) -> list[str]:
    """The captured questions, without what a block of a transaction adds: in production that is one a request."""
    plumbing = ("SAVEPOINT", "RELEASE", "ROLLBACK TO", "SELECT set_config('app.tenant'")
    return [query["sql"] for query in captured if not query["sql"].startswith(plumbing)]


def _connected(connection: Any, **_: object) -> None:
    _tell(connection, getattr(_local, "scope", _TESTS))


def _request_started(**_: object) -> None:
    _begin(NOBODY)


def _request_finished(**_: object) -> None:
    _begin(_TESTS)


def _begin(scope: Scope) -> None:
    _local.scope = scope
    _tell(connection, scope)


def _tell(to: Any, scope: Scope) -> None:
    """For the session, not for a transaction alone. By the driver itself: no test's count of queries sees it."""
    if to.vendor != "postgresql" or to.alias != "default":
        return
    if to.connection is None or to.connection.closed or to.connection.info.transaction_status == INERROR:
        return
    to.connection.execute(
        "SELECT set_config('app.tenant', '', false), set_config('app.user', '', false),"
        " set_config('app.across', %s, false)",
        [scope.across],
    )
    to.tenancy_scope = scope
