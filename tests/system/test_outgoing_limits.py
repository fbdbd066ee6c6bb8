"""The limits of a request as they are in production: half a minute, 64 MiB, and the memory that costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.outgoing import MOST_BYTES, MOST_SECONDS
from tests.hostile_answers import large_answers, slow_answers
from tests.stub_server import StubServer, respond

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
# The body that is allowed, and what a piece and the library take: 70 to 78 MB where it was measured.
MOST_MEMORY = MOST_BYTES + 48 * 1024 * 1024
ASK = r"""
import re, sys
import django
django.setup()
from catalog.outgoing import OutgoingError, fetch
def peak():
    # Not getrusage: its peak is that of whoever started this process, too.
    return int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]) * 1024
before = peak()
try:
    code = len(fetch(sys.argv[1]).expect_success().content)
except OutgoingError as error:
    code = error.code
print(code, peak() - before)
"""


@pytest.fixture
def stub() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


def ask(stub: StubServer) -> tuple[str, int]:
    """What a process of its own gets, and how many bytes of memory it needed more than before."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    environment["OUTGOING_ALLOWED"] = f"127.0.0.1:{stub.port}"
    command = [sys.executable, "-c", ASK, f"{stub.address}/feed"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    code, memory = result.stdout.split()
    return code, int(memory)


@pytest.mark.parametrize("name", large_answers())
def test_a_body_beyond_every_limit_needs_little_memory(name: str, stub: StubServer) -> None:
    stub.answers["/feed"] = large_answers()[name].answer
    code, memory = ask(stub)
    print(f"{name}: {memory / 1e6:.0f} MB")
    assert code == "too_large"
    assert memory < MOST_MEMORY


def test_the_largest_body_that_is_allowed_is_read(stub: StubServer) -> None:
    stub.answers["/feed"] = respond(200, b" " * MOST_BYTES)
    code, memory = ask(stub)
    print(f"64 MiB: {memory / 1e6:.0f} MB")
    assert int(code) == MOST_BYTES
    assert memory < MOST_MEMORY


def test_a_byte_a_second_is_left_after_half_a_minute(stub: StubServer) -> None:
    stub.answers["/feed"] = slow_answers()["a byte a second"].answer
    started = time.monotonic()
    code, _ = ask(stub)
    assert code == "too_slow"
    # Not a measure of speed: the limit is the promise. Twice as long leaves a busy machine its time.
    assert MOST_SECONDS <= time.monotonic() - started < 2 * MOST_SECONDS
