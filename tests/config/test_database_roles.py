"""The two roles of docs/operations.md and compose.yaml, from an empty server to one that passes `check --deploy`."""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import psycopg
import pytest

from tests.config.manual_roles import NAME, manage, manual, prepared_server

ROOT = Path(__file__).resolve().parents[2]


def test_compose_makes_the_roles_of_the_manual() -> None:
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    script = dedent(re.findall(r"<<'SQL'\n(.*?)^ *SQL$", compose, flags=re.MULTILINE | re.DOTALL)[0])
    as_written = script.replace(":'owner_password'", "'of-the-owner'").replace(":'password'", "'of-the-application'")
    assert as_written == manual()


@pytest.fixture
def server() -> Iterator[str]:
    with prepared_server() as url:
        yield url


@pytest.mark.postgres
@pytest.mark.system
def test_the_roles_of_the_manual_pass_and_one_role_for_all_does_not(server: str) -> None:
    host = server.rpartition("@")[2]
    owner = f"postgres://{NAME}_owner:of-the-owner@{host}/{NAME}"
    application = f"postgres://{NAME}:of-the-application@{host}/{NAME}"
    migrated = manage("migrate", "--no-input", DATABASE_URL=application, DATABASE_OWNER_URL=owner)
    assert migrated.returncode == 0, migrated.stderr
    checked = manage("check", "--deploy", "--fail-level", "WARNING", DATABASE_URL=application)
    assert checked.returncode == 0, checked.stderr
    # Everything the application does by itself is within its rights.
    assert manage("check_invariants", DATABASE_URL=application).returncode == 0
    refused = manage("check", "--deploy", DATABASE_URL=owner)
    assert refused.returncode == 1
    assert "rentals.E002" in refused.stderr
    with psycopg.connect(application) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("TRUNCATE rentals_order")
