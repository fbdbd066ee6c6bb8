"""The demo's data: complete after one command, kept by the next, begun anew when asked."""

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from rentals.management.serving import port_number

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


def start(database: Path, port: str, *options: str) -> subprocess.Popen[str]:
    """A serving demo; what it says comes together."""
    environment = {"PATH": os.defpath, "DEMO": "1", "DATABASE_URL": f"sqlite:///{database}"}
    command = [sys.executable, "manage.py", "demo", f"--port={port}", *options]
    return subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def said_until_served(process: subprocess.Popen[str]) -> str:
    said = ""
    assert process.stdout is not None
    for line in process.stdout:
        said += line
        if "starts over" in line:
            return said
    raise AssertionError(said)


def refusal(process: subprocess.Popen[str]) -> str:
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 1
    assert said.count("\n") == 1, said
    return said


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@contextmanager
def ended(*processes: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_a_reset_never_takes_the_data_from_under_another_demo(tmp_path: Path) -> None:
    database, port = tmp_path / "demo.sqlite3", free_port()
    with ended(first := start(database, port)):
        said_until_served(first)
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE rentals_organization SET name = 'Renamed'")
        assert f"is in use by port {port}: end that demo first" in refusal(start(database, free_port(), "--reset"))
        assert rows(database, "SELECT name FROM rentals_organization") == [("Renamed",)]
        assert f"Port {port} is taken" in refusal(start(tmp_path / "other.sqlite3", port))
        first.terminate()
        first.communicate(timeout=60)
        demo(database, "--reset")
        assert rows(database, "SELECT name FROM rentals_organization") == [("Acme",)]


def test_two_demos_begun_at_once_both_serve(tmp_path: Path) -> None:
    database = tmp_path / "demo.sqlite3"
    both = [start(database, free_port()) for _ in range(2)]
    with ended(*both):
        said = [said_until_served(process) for process in both]
    assert not any("Traceback" in text for text in said)


def test_two_demos_begun_at_once_at_one_port_are_one_and_a_clear_line(tmp_path: Path) -> None:
    port = free_port()
    both = [start(tmp_path / name, port) for name in ("a.sqlite3", "b.sqlite3")]
    with ended(*both):
        for process in both:
            assert process.stdout is not None
        first_lines = [process.stdout.readline() for process in both if process.stdout]
    assert sum("is taken" in line for line in first_lines) == 1, first_lines


@pytest.mark.parametrize("port", ["abc", "", " ", "0", "65536", "-1", "8_0", "٨٠"])
def test_what_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(CommandError, match="choose a number from 1 to 65535"):
        port_number(port)


def test_what_is_no_port_is_one_clear_line(tmp_path: Path) -> None:
    assert "choose a number from 1 to 65535" in refusal(start(tmp_path / "demo.sqlite3", "abc"))


def test_make_hands_over_whatever_the_port_is() -> None:
    for port in ("abc", "", "1 2"):
        made = subprocess.run(["make", "-n", "demo", f"PORT={port}"], cwd=ROOT, capture_output=True, text=True)
        assert f'--port="{port}"' in made.stdout
