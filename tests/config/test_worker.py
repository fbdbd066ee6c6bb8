"""Production's own way to the periodic work: a Celery worker and beat, as processes, on a real Redis."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from celery import Celery
from django.conf import settings

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 120


def is_soon(schedule: object) -> bool:
    return isinstance(schedule, timedelta) and schedule <= timedelta(seconds=30)


@pytest.mark.system
@pytest.mark.django_db(transaction=True)
def test_beat_sends_and_a_worker_runs_every_periodic_task(tmp_path: Path) -> None:
    if not settings.REDIS_URL:
        pytest.skip("needs Redis: python tests/services.py pytest")
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "LOG_LEVEL": "INFO"}
    # The test database, which is the one with tables.
    server = os.environ["DATABASE_URL"].rsplit("/", 1)[0]
    environment["DATABASE_URL"] = f"{server}/{settings.DATABASES['default']['NAME']}"
    queue = f"test-{uuid4().hex}"
    log = tmp_path / "worker.log"
    command = [sys.executable, "-m", "celery", "--app", "config", "worker", "--beat", "--loglevel", "INFO"]
    command += ["--concurrency", "1", "--queues", f"celery,{queue}", "--schedule", str(tmp_path / "beat")]
    with log.open("wb") as output:
        worker = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        with Celery(broker=settings.REDIS_URL) as sender:
            for entry in settings.CELERY_BEAT_SCHEDULE.values():
                sender.send_task(entry["task"], queue=queue)
        # Beat is awaited for what it sends within the half minute; the others show that a worker knows them.
        soon = [n for n, e in settings.CELERY_BEAT_SCHEDULE.items() if is_soon(e["schedule"])]
        wanted = [f"Sending due task {name}" for name in soon]
        wanted += [f"Task {entry['task']}[" for entry in settings.CELERY_BEAT_SCHEDULE.values()]
        wanted += ["succeeded in"]
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not all(words in (text := log.read_text(errors="replace")) for words in wanted):
            assert worker.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.2)
        assert "Traceback" not in text
    finally:
        worker.terminate()
        worker.wait(DEADLINE_SECONDS)
