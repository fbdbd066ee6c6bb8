"""The demo's data: complete after one command, kept by the next, begun anew when asked."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def demo(database: Path, *options: str) -> None:
    environment = {"PATH": os.defpath, "DEMO": "1", "DATABASE_URL": f"sqlite:///{database}"}
    command = [sys.executable, "manage.py", "demo", "--prepare", *options]
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


def test_the_demo_is_complete_kept_and_begun_anew(tmp_path: Path) -> None:
    database = tmp_path / "new" / "demo.sqlite3"
    demo(database)
    assert rows(database, "SELECT email, is_staff, is_superuser FROM auth_user ORDER BY email") == [
        ("admin@example.com", 1, 1),
        ("demo@example.com", 0, 0),
    ]
    assert rows(
        database,
        "SELECT o.slug, u.email, m.role FROM rentals_membership m"
        " JOIN rentals_organization o ON o.id = m.organization_id JOIN auth_user u ON u.id = m.user_id",
    ) == [("acme", "demo@example.com", "owner")]
    assert rows(database, "SELECT count(*) FROM account_emailaddress WHERE verified") == [(2,)]
    machines = rows(database, "SELECT count(*) FROM catalog_machine")
    assert machines >= [(150,)]

    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE rentals_organization SET name = 'Renamed'")
    demo(database)
    assert rows(database, "SELECT name FROM rentals_organization") == [("Renamed",)]
    assert rows(database, "SELECT count(*) FROM catalog_machine") == machines

    demo(database, "--reset")
    assert rows(database, "SELECT name FROM rentals_organization") == [("Acme",)]
