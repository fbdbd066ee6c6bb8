"""Berth as the server of production serves it, for tests of what comes before any page."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.conf import settings


@pytest.fixture(scope="session")
def gunicorn() -> Iterator[int]:
    """The port of a gunicorn with a single process and without data."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        bound.set_inheritable(True)
        environment = {"PATH": os.defpath, "DJANGO_SETTINGS_MODULE": "tests.settings", "WEB_CONCURRENCY": "1"}
        command = [sys.executable, "-m", "gunicorn", "-c", "python:config.gunicorn", "--bind", f"fd://{bound.fileno()}"]
        process = subprocess.Popen(
            [*command, "config.wsgi:application"], cwd=settings.BASE_DIR, env=environment, pass_fds=[bound.fileno()]
        )
        try:
            yield bound.getsockname()[1]
        finally:
            process.terminate()
            process.wait(30)
