"""The two roles of docs/operations.md, made by its own statements, and commands run as in production."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parents[2]
NAME = "manual"


def manual() -> str:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    return re.findall(r"^```sql\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)[0]


@contextmanager
def prepared_server() -> Iterator[str]:
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
