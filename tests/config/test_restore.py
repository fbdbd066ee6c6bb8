"""The restore drill of docs/operations.md: a backup becomes a database that holds every rule, and serves."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from catalog.digest import Digest
from tests.config.manual_roles import NAME, manage, prepared_server
from tests.services import postgresql_folders

ROOT = Path(__file__).resolve().parents[2]
RESTORED = f"{NAME}_restored"
ROWS = """
import django, json
django.setup()
from tests.system import rows
machine = rows.machine(lots=9)
for each in rows.organizations(2):
    rows.orders(each["slug"], machine, 3, days_ago=1)
"""
COUNTS = """
import django, json
django.setup()
from django.apps import apps
from rentals.tenants import Across, across_tenants
with across_tenants(Across.OPERATOR):
    print(json.dumps({model._meta.db_table: model._default_manager.count() for model in apps.get_models()}))
"""
pytestmark = pytest.mark.system


def python(code: str, url: str) -> str:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_URL": url, "DEMO": "0"}
    environment.update(DATABASE_OWNER_URL="", REDIS_URL="", SECRET_KEY="of-the-drill", LOG_LEVEL="WARNING")
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def counts(url: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(python(COUNTS, url))
    return found


def commands(heading: str) -> list[str]:
    """The lines of the first shell block below a heading of the manual."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    below = text.split(f"\n{heading}\n", 1)[1]
    block = re.search(r"^```sh\n(.*?)^```", below, re.MULTILINE | re.DOTALL)
    assert block
    return block[1].strip().splitlines()


def carry_out(line: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    programs = next(path for path in postgresql_folders() if (path / "pg_dump").exists())
    environment = {"PATH": f"{programs}:{Path(sys.executable).parent}:{os.defpath}", **variables}
    return subprocess.run(["sh", "-ec", line], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def server() -> Iterator[str]:
    with prepared_server() as url:
        try:
            yield url
        finally:
            with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
                connection.execute(f"DROP DATABASE IF EXISTS {RESTORED} WITH (FORCE)".encode())


@pytest.mark.postgres
def test_a_backup_of_postgresql_is_restored_with_roles_and_policies(server: str, tmp_path: Path) -> None:
    host = server.rpartition("@")[2]
    serving = {name: f"postgres://{NAME}:of-the-application@{host}/{name}" for name in (NAME, RESTORED)}
    owning = {name: f"postgres://{NAME}_owner:of-the-owner@{host}/{name}" for name in (NAME, RESTORED)}
    migrated = manage("migrate", "--no-input", DATABASE_URL=serving[NAME], DATABASE_OWNER_URL=owning[NAME])
    assert migrated.returncode == 0, migrated.stderr
    python(ROWS, serving[NAME])
    before = counts(serving[NAME])
    assert (before["rentals_order"], before["rentals_organization"]) == (6, 2)

    (dump,) = commands("### PostgreSQL")
    # Neither of the two roles sees every tenant's rows, and the tool says so rather than leaving them out.
    refused = carry_out(dump, tmp_path, SOURCE=owning[NAME])
    assert refused.returncode != 0
    assert "row-level security" in refused.stderr
    dumped = carry_out(dump, tmp_path, SOURCE=f"{server}/{NAME}")
    assert dumped.returncode == 0, dumped.stderr
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {RESTORED} OWNER {NAME}_owner".encode())
    restore, *proofs = commands("### The restore drill")
    restored = carry_out(restore, tmp_path, TARGET=f"{server}/{RESTORED}")
    assert restored.returncode == 0, restored.stderr

    assert [line.partition("#")[0].split() for line in proofs] == [
        ["python", "manage.py", "check_invariants"],
        ["python", "manage.py", "check", "--deploy"],
        ["python", "manage.py", "migrate", "--check"],
    ]
    for line in proofs:
        proof = manage(*line.partition("#")[0].split()[2:], DATABASE_URL=serving[RESTORED])
        assert proof.returncode == 0, proof.stderr
    assert counts(serving[RESTORED]) == before
    with psycopg.connect(serving[RESTORED]) as connection:
        # Nobody's rows, to whoever has not said for whom they work.
        assert connection.execute("SELECT count(*) FROM rentals_order").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("TRUNCATE rentals_order")
    # Sequences go on where they were, and the next migration's tables will be served too.
    python(ROWS.replace("lots=9", "lots=8"), serving[RESTORED])
    assert counts(serving[RESTORED])["rentals_order"] == 12
    with psycopg.connect(owning[RESTORED]) as connection:
        connection.execute("CREATE TABLE of_the_next_migration (id int)")
    with psycopg.connect(serving[RESTORED]) as connection:
        assert connection.execute("SELECT count(*) FROM of_the_next_migration").fetchone() == (0,)


def test_a_backup_of_sqlite_is_whole_though_it_is_written_to_meanwhile(tmp_path: Path) -> None:
    (tmp_path / ".data").mkdir()
    database = tmp_path / ".data" / "berth.sqlite3"
    url = f"sqlite:///{database}"
    environment = {"DATABASE_URL": url, "REDIS_URL": ""}
    assert manage("migrate", "--no-input", **environment).returncode == 0
    python(ROWS, url)
    before = counts(url)
    assert before["rentals_order"] == 6
    (backup,) = commands("### SQLite")
    with sqlite3.connect(database, isolation_level=None) as writer:
        # Rows that are only half an order: a copy of the file would have caught them or torn it. They are rolled back,
        # so it matters to nobody what is written for their digests.
        writer.create_function(Digest.function, 1, len, deterministic=True)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE catalog_machine SET free_lots = 0")
        copied = carry_out(backup, tmp_path)
        writer.execute("ROLLBACK")
    writer.close()
    assert copied.returncode == 0, copied.stderr
    restored = {**environment, "DATABASE_URL": f"sqlite:///{tmp_path / 'berth-backup.sqlite3'}"}
    checked = manage("check_invariants", **restored)
    assert checked.returncode == 0, checked.stderr
    assert manage("migrate", "--check", **restored).returncode == 0
    assert counts(restored["DATABASE_URL"]) == before
    assert counts(url) == before
