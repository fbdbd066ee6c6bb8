"""The two roles of docs/operations.md and compose.yaml, from an empty server to one that passes `check --deploy`."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import psycopg
import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = "manual"


def manual() -> str:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    return re.findall(r"^```sql\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)[0]


def test_compose_makes_the_roles_of_the_manual() -> None:
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    script = dedent(re.findall(r"<<'SQL'\n(.*?)^ *SQL$", compose, flags=re.MULTILINE | re.DOTALL)[0])
    as_written = script.replace(":'owner_password'", "'of-the-owner'").replace(":'password'", "'of-the-application'")
    assert as_written == manual()


@pytest.fixture
def server() -> Iterator[str]:
    """The superuser's address of the server without a database, the manual's statements carried out on it."""
    url = os.environ["TEST_SUPERUSER_URL"].rsplit("/", 1)[0]
    roles, grants = manual().replace("berth", NAME).split(f"\\connect {NAME}\n")
    try:
        with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
            for statement in roles.strip().splitlines():
                connection.execute(statement.encode())
        with psycopg.connect(f"{url}/{NAME}") as connection:
            connection.execute(grants.encode())
        yield url
    finally:
        with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)".encode())
            # template1 names neither: nothing else depends on them.
            connection.execute(f"DROP ROLE IF EXISTS {NAME}, {NAME}_owner".encode())


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "PATH": os.defpath,
        "DEMO": "0",
        "SECRET_KEY": "k" * 20 + "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGH",
        "SITE_URL": "https://berth.example",
        "REDIS_URL": "redis://127.0.0.1:6379/0",
    }
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, env=settings | environment, cwd=ROOT, capture_output=True, text=True)


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
