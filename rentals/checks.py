"""What `manage.py check --deploy` demands before Berth serves: safe settings, and a database that holds tenants apart.

The second asks the database, which Django's own checks of a deployment never do: it runs with `--deploy` alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DatabaseError, connection

from rentals.row_security import role_faults, unprotected_tables

LEAST_KEY_LENGTH = 50
LEAST_KEY_LETTERS = 5
_LOCAL = ("localhost", "127.0.0.1", "::1", "")
_ROLES = "docs/operations.md, “Roles and row-level security”, has the statements."


@register(Tags.security, deploy=True)
def settings_are_safe(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    return list(_unsafe_settings())


@register(Tags.security, deploy=True)
def tenants_are_held_apart(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    if connection.vendor != "postgresql":
        hint = "Set DATABASE_URL to a PostgreSQL database; SQLite has no row-level security."
        return [Error("The database does not repeat the rule that tenants see their own rows.", hint=hint, id=_id(1))]
    try:
        return list(_unsafe_database())
    except DatabaseError as error:
        return [Error(f"The database cannot be asked: {error}", hint="Is it up, and migrated?", id=_id(4))]


def _unsafe_database() -> Iterator[CheckMessage]:
    for fault in role_faults(connection):
        role = connection.settings_dict["USER"]
        yield Error(f"The database role {role} can pass row-level security: {fault}.", hint=_ROLES, id=_id(2))
    for table, fault in unprotected_tables(connection).items():
        hint = "Run manage.py migrate; a new table's migration ends with EnableTenantPolicies()."
        yield Error(f"The tenants' table {table} is not protected: {fault}.", hint=hint, id=_id(3))


def _unsafe_settings() -> Iterator[CheckMessage]:
    if settings.DEMO:
        yield Error("Demo mode has logins that everybody knows.", hint="Unset DEMO.", id=_id(5))
    key = settings.SECRET_KEY
    if len(key) < LEAST_KEY_LENGTH or len(set(key)) < LEAST_KEY_LETTERS:
        hint = 'python -c "import secrets; print(secrets.token_urlsafe(50))"'
        yield Error(f"SECRET_KEY is guessable: shorter than {LEAST_KEY_LENGTH} characters, or too regular.", hint=hint,
                    id=_id(6))  # fmt: skip
    if not settings.HTTPS:
        yield Error("Pages and keys travel unencrypted.", hint="Set HTTPS=true, behind a proxy that speaks it.",
                    id=_id(7))  # fmt: skip
    if not settings.REDIS_URL:
        yield Error("Limits are counted and periodic work is done by each process for itself.", hint="Set REDIS_URL.",
                    id=_id(8))  # fmt: skip
    if settings.ACCOUNT_EMAIL_VERIFICATION != "mandatory":
        yield Error("Anybody can sign up with anybody's address.", hint="Set ACCOUNT_EMAIL_VERIFICATION=mandatory.",
                    id=_id(9))  # fmt: skip
    if urlsplit(settings.SITE_URL).hostname in (*_LOCAL, None):
        yield Error(f"Links in mails lead to {settings.SITE_URL}.", hint="Set SITE_URL to the public address.",
                    id=_id(10))  # fmt: skip
    if settings.OUTGOING_ALLOWED:
        yield Error("Feeds and webhooks may reach servers that are not public.", hint="Unset OUTGOING_ALLOWED.",
                    id=_id(11))  # fmt: skip


def _id(number: int) -> str:
    return f"rentals.E{number:03}"
