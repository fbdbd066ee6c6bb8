"""The log: one JSON object a line, found by the id of a request or of a task, and no line lets anybody in."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import structlog
from celery import Celery
from django.conf import settings as django_settings
from django.test import Client

from config.log_lines import HIDDEN, hide
from tests import factories

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 60
Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What production's handler has written so far."""
    written = io.StringIO()
    options = {
        name: value for name, value in django_settings.LOGGING["formatters"]["structured"].items() if name != "()"
    }
    handler = logging.StreamHandler(written)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(**options))
    loggers = [logging.getLogger(name) for name in ("", "django_structlog", "tests")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.INFO)
    loggers[0].addHandler(handler)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    loggers[0].removeHandler(handler)
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.mark.django_db
def test_every_line_of_a_request_has_the_id_that_its_answer_names(client: Client, lines: Lines) -> None:
    response = client.get("/no-such-page/")
    found = lines()
    assert {line["request_id"] for line in found if "request" in line} == {response["X-Request-ID"]}
    assert {line["event"] for line in found} >= {"request_started", "request_finished"}
    assert all({"event", "level", "logger", "timestamp"} <= set(line) for line in found)


@pytest.mark.django_db
def test_what_a_client_did_wrong_is_a_line_without_a_trace(client: Client, lines: Lines, acme: Any) -> None:
    key, member = factories.make_api_key(acme, "read"), factories.make_member(acme, "viewer")
    client.force_login(member)
    answers = [
        client.get("/no-such-page/"),
        client.get("/o/acme/keys/"),
        client.get("/o/another/"),
        client.get("/launch/result/?colour=red"),
        client.get("/catalog/", headers={"host": "evil.example"}),
        client.post("/catalog/"),
        client.get("/api/v1/nothing"),
        client.get("/api/v1/orders"),
        client.post("/api/v1/orders", "{}", "application/json", headers={"authorization": f"Bearer {key.text}"}),
        client.post("/api/v1/sizing", "x" * 2_000_000, "application/json"),
        Client(enforce_csrf_checks=True).post("/theme/"),
    ]
    assert [answer.status_code for answer in answers] == [404, 403, 404, 400, 400, 405, 404, 401, 403, 413, 403]
    found = lines()
    assert not [line for line in found if "exception" in line or "Traceback" in json.dumps(line)]
    for answer in answers:
        assert [line for line in found if line["logger"] != "django_structlog.middlewares.request"
                and line.get("request_id") == answer["X-Request-ID"]], answer  # fmt: skip
    assert all(line.get("request_id") for line in found)


@pytest.mark.django_db
def test_a_fault_of_ours_has_its_trace(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("config.theme.theme_of", fails)
    monkeypatch.setattr("config.context.theme_of", fails)
    response = Client(raise_request_exception=False).get("/glossary/")
    traced = [line for line in lines() if "ZeroDivisionError" in line.get("exception", "")]
    assert traced
    assert {line["request_id"] for line in traced} == {response["X-Request-ID"]}


@pytest.mark.django_db
def test_no_line_of_a_request_holds_a_link_a_key_or_a_query(client: Client, lines: Lines, acme: Any) -> None:
    key = factories.make_api_key(acme)
    secret = key.text.rpartition("_")[2]
    client.get("/invitations/s3cret-of-the-link/?utm_source=s3cret")
    client.get("/accounts/password/reset/key/1-s3cret/")
    client.get("/accounts/confirm-email/s3cret/")
    client.get("/catalog/?q=s3cret")
    client.post("/accounts/login/", {"login": acme.owner.email, "password": "s3cret"})
    client.get("/api/v1/key", headers={"authorization": f"Bearer {key.text}"})
    client.get("/api/v1/key", headers={"authorization": f"Bearer {key.text}x"})
    text = json.dumps(lines())
    assert "s3cret" not in text
    assert secret not in text
    assert f"/invitations/{HIDDEN}/" in text


def test_a_trace_is_a_part_of_its_line_and_hides_the_same(lines: Lines) -> None:
    try:
        raise RuntimeError(
            "no connection to redis://:s3cret@redis:6379/0 as Bearer s3cret for https://x.example/?k=s3cret"
        )
    except RuntimeError as error:
        logging.getLogger("tests").exception("failed")
        structlog.get_logger("tests").error("failed", error=error)
    first, second = lines()
    assert "Traceback" in first["exception"]
    assert f"redis://{HIDDEN}@redis:6379/0" in first["exception"]
    assert "s3cret" not in json.dumps([first, second])


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("GET /catalog/?tier=any&q=x", f"GET /catalog/?{HIDDEN}"),
        ("postgres://berth:pass@host:5432/berth", f"postgres://{HIDDEN}@host:5432/berth"),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {HIDDEN}"),
        ("berth_Ab3dEf6hIj9k_Zx81", f"berth_Ab3dEf6hIj9k_{HIDDEN}"),
        ("whsec_MfKQ9r8GKYqrTwjU+/==", f"whsec_{HIDDEN}"),
        ("/accounts/confirm-email/MQ:1v/ is over", f"/accounts/confirm-email/{HIDDEN}/ is over"),
        ("berth_orders has 5 rows? yes", "berth_orders has 5 rows? yes"),
        ("Is 3 > 2? Mail to a@b.example", "Is 3 > 2? Mail to a@b.example"),
        ("https://feeds.example/list", "https://feeds.example/list"),
    ],
)
def test_what_lets_somebody_in_is_hidden_and_the_rest_is_not(text: str, hidden: str) -> None:
    assert hide(text) == hidden


@pytest.mark.system
@pytest.mark.django_db(transaction=True)
def test_a_tasks_lines_have_the_request_that_sent_it_and_one_of_beat_has_its_own(tmp_path: Path) -> None:
    if not django_settings.REDIS_URL:
        pytest.skip("needs Redis: python tests/services.py pytest")
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "LOG_LEVEL": "INFO", "DEMO": "0"}
    server = os.environ["DATABASE_URL"].rsplit("/", 1)[0]
    environment["DATABASE_URL"] = f"{server}/{django_settings.DATABASES['default']['NAME']}"
    queue, request_id = f"test-{uuid4().hex}", str(uuid4())
    log = tmp_path / "worker.log"
    command = [sys.executable, "-m", "celery", "--app", "config", "worker", "--beat", "--concurrency", "1"]
    command += ["--queues", f"celery,{queue}", "--schedule", str(tmp_path / "beat")]
    with log.open("wb") as output:
        worker = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        with (
            Celery(broker=django_settings.REDIS_URL) as sender,
            structlog.contextvars.bound_contextvars(request_id=request_id),
        ):
            sent = sender.send_task("rentals.tasks.send_notices", queue=queue)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            found = [json.loads(line) for line in log.read_text(errors="replace").splitlines() if line.startswith("{")]
            ours = [line for line in found if line.get("task_id") == sent.id]
            of_beat = [line for line in found if line.get("task_id") not in (None, sent.id)]
            if all("task_succeeded" in {line["event"] for line in lines} for lines in (ours, of_beat)):
                break
            assert worker.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        assert {line.get("request_id") for line in ours} == {request_id}
        assert not any("request_id" in line for line in of_beat)
    finally:
        worker.terminate()
        worker.wait(DEADLINE_SECONDS)
