"""What Prometheus reads, who may, and that the counts of several processes add up."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from catalog.models import FeedRun
from rentals.models import WebhookDelivery, WebhookEndpoint
from tests import factories
from tests.rentals.calls import order, order_body
from tests.tenancy import as_in_production

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-the-operator"
QUESTION = "/launch/result/?task=notebook&gpu_memory_gib=24&term_days=7&lots=1&tier=any"
DEADLINE_SECONDS = 60


@pytest.fixture
def read(client: Client, settings):
    """Reads one series: 0.0 while it is not there."""
    settings.METRICS_TOKEN = TOKEN

    def value(series: str) -> float:
        text = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"}).content.decode()
        found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    return value


@pytest.mark.django_db
@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
def test_who_has_no_token_is_told_of_no_such_page(client: Client, settings, header) -> None:
    headers = {} if header is None else {"authorization": header}
    for token in (TOKEN, ""):
        settings.METRICS_TOKEN = token
        assert client.get("/metrics", headers=headers).status_code == 404


@pytest.mark.django_db
def test_lists_of_providers_show_their_age_and_their_last_outcome(read) -> None:
    now = timezone.now()
    provider = factories.make_provider("farm")
    factories.make_provider("by-hand")
    provider.feed_format, provider.feed_url = "berth", "https://feeds.example/list"
    provider.refreshed_at = now - timedelta(seconds=100)
    provider.save()
    FeedRun.objects.create(provider=provider, started_at=now, finished_at=now, outcome=FeedRun.Outcome.HELD)
    assert 100 <= read('berth_refresh_age_seconds{provider="farm"}') < 400
    assert read('berth_refresh_last_outcome{outcome="held",provider="farm"}') == 1
    assert read('berth_refresh_last_outcome{outcome="ok",provider="farm"}') == 0
    assert read('berth_refresh_age_seconds{provider="by-hand"}') == 0


@pytest.mark.django_db
def test_messages_to_webhooks_show_what_became_of_them_and_how_long_the_oldest_waits(read, acme, globex) -> None:
    now = timezone.now()
    waiting, overdue = "berth_webhook_oldest_waiting_seconds", "berth_webhook_overdue_seconds"
    assert (read(waiting), read(overdue)) == (0, 0)
    for organization, hours in ((acme, 30), (acme, 2), (acme, 1), (globex, 3)):
        factories.make_endpoint(organization, now=now - timedelta(days=2))
        factories.make_order(organization, placement={"now": now - timedelta(hours=hours)})
    WebhookDelivery.objects.update(next_attempt_at=now + timedelta(hours=1))
    with as_in_production():
        # One endpoint was there for the first order of acme, two for the second, three for the third; one of globex.
        assert read('berth_webhook_deliveries{state="pending"}') == 6
        assert read('berth_webhook_deliveries{state="delivered"}') == 0
        assert 30 * 3600 <= read(waiting) < 31 * 3600
        assert read(overdue) == 0
    WebhookDelivery.objects.filter(organization=globex).update(next_attempt_at=now - timedelta(minutes=10))
    WebhookDelivery.objects.filter(organization=acme).update(state="failed", finished_at=now)
    assert 600 <= read(overdue) < 1200
    assert 3 * 3600 <= read(waiting) < 4 * 3600
    assert read('berth_webhook_deliveries{state="failed"}') == 5
    WebhookEndpoint.objects.update(next_send_at=now + timedelta(hours=1))
    assert read(overdue) == 0


@pytest.mark.django_db(transaction=True)
def test_orders_are_counted_by_tier_refusals_by_code_and_answers_by_task(read, client, acme, machine) -> None:
    key = factories.make_api_key(acme, "order")
    placed, sold_out = f'berth_orders_total{{tier="{machine.tier}"}}', 'berth_refusals_total{code="sold_out"}'
    series = (placed, sold_out, "berth_replays_total", 'berth_answers_total{task="notebook"}')
    before = [read(name) for name in series]
    body = order_body(machine)
    assert order(key, body, "first").status_code == 201
    assert order(key, body, "first").status_code == 201
    assert order(key, order_body(machine, total="110000.00", lots=1000), "second").status_code == 409
    assert client.get(QUESTION).status_code == 200
    assert [read(name) - then for name, then in zip(series, before, strict=True)] == [1, 1, 1, 1]


@pytest.mark.django_db(transaction=True)
def test_nothing_of_a_tenant_is_in_what_is_read(read, client, acme, machine) -> None:
    order(factories.make_api_key(acme, "order"), order_body(machine))
    text = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"}).content.decode()
    for word in (acme.slug, acme.name, acme.owner.email, machine.name):
        assert word not in text
    # What labels are for is a handful of values, known beforehand.
    assert set(re.findall(r"(\w+)=\"", text)) <= {"tier", "code", "task", "provider", "outcome", "state"}


@pytest.fixture
def two_processes(tmp_path: Path) -> Iterator[str]:
    """Berth behind gunicorn with two processes, as compose.yaml starts it; its address."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    environment = {
        "PATH": os.defpath,
        "DEMO": "1",
        "DATABASE_URL": f"sqlite:///{tmp_path / 'berth.sqlite3'}",
        "REDIS_URL": "",
        "IN_PROCESS_SCHEDULER": "0",
        "METRICS_TOKEN": TOKEN,
        "WEB_CONCURRENCY": "2",
        "BIND": f"127.0.0.1:{port}",
        "TMPDIR": str(tmp_path),
    }
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=environment, check=True)
    command = [sys.executable, "-m", "gunicorn", "--config", "python:config.gunicorn", "config.wsgi:application"]
    server = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                ask(f"http://127.0.0.1:{port}/healthz")
                break
            except OSError:
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(DEADLINE_SECONDS)
    assert not list(tmp_path.glob("**/*.db"))


def ask(url: str) -> str:
    """Each time over a connection of its own, so that any of the processes may take it."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return str(response.read().decode())


@pytest.mark.system
def test_the_counts_of_all_processes_add_up_whichever_is_asked(two_processes: str) -> None:
    for _ in range(30):
        ask(two_processes + QUESTION)
    texts = [ask(f"{two_processes}/metrics") for _ in range(10)]
    assert {
        count for text in texts for count in re.findall(r'^berth_answers_total\{task="notebook"\} (.+)$', text, re.M)
    } == {"30.0"}
