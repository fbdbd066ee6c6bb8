"""The servers of the suite itself: a restricted role while the command runs, and nothing afterwards."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 60
SHOW = """
import os, psycopg
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    query = "SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
    print(*connection.execute(query).fetchone())
print(os.environ["DATABASE_URL"], os.environ["REDIS_URL"], flush=True)
"""


def answers(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(url).port or 0)) == 0


@pytest.mark.system
def test_the_role_is_restricted_and_the_servers_go_with_the_command() -> None:
    # The pipes are read to their end: a server that had inherited one would hold this test until its time is up.
    result = subprocess.run(
        [sys.executable, ROOT / "tests" / "services.py", sys.executable, "-c", SHOW],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert result.returncode == 0, result.stderr
    role, urls = result.stdout.splitlines()
    assert role == "False False False False"
    assert not any(answers(url) for url in urls.split())


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_servers_go_when_the_starter_is_ended(number: signal.Signals) -> None:
    code = f"{SHOW}\nimport time; time.sleep({DEADLINE_SECONDS})"
    with subprocess.Popen(
        [sys.executable, ROOT / "tests" / "services.py", sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as starter:
        assert starter.stdout is not None
        starter.stdout.readline()
        urls = starter.stdout.readline().split()
        assert all(answers(url) for url in urls)
        starter.send_signal(number)
        starter.wait(DEADLINE_SECONDS)
        if number == signal.SIGKILL:
            # Nobody is left to end the command; the servers end by themselves.
            os.killpg(starter.pid, signal.SIGKILL)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while any(answers(url) for url in urls):
        assert time.monotonic() < deadline, "a server was left behind"
        time.sleep(0.1)
    # A killed starter cannot tidy up: the next one does.
    subprocess.run([sys.executable, ROOT / "tests" / "services.py", "true"], check=True, timeout=DEADLINE_SECONDS)
    assert not list(Path("/tmp").glob(f"berth-services-{starter.pid}-*"))
