"""Servers that go away under load: every client gets its order or a 503 in time, and afterwards nothing is missing."""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import httpx2
import pytest

from tests.system.clients import ApiClient, Browser, order_body
from tests.system.processes import Shape, wait_for

pytestmark = [pytest.mark.system, pytest.mark.postgres, pytest.mark.timeout(300)]

LOTS = 100_000


class Load:
    """Programs and browsers that order again and again, each time with a new key, and repeat what was refused.

    Each rests for a moment after an order: every order has two mails, which are sent so many at a time.
    """

    def __init__(self, web: Shape, clients: list[ApiClient], browsers: list[Browser], buyers: list[Any]) -> None:
        self.web, self.machine, self.stop = web, web.make("machine", lots=LOTS), Event()
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.faults: list[str] = []
        self.keys: set[str] = set()
        self.acts: list[Callable[[], None]] = [lambda client=client: self._program(client) for client in clients * 2]
        self.acts += [
            lambda browser=browser, slug=buyer["slug"]: self._browser(browser, slug)
            for browser, buyer in zip(browsers, buyers, strict=True)
        ]

    def _program(self, client: ApiClient) -> None:
        while not self.stop.is_set():
            key = uuid.uuid4().hex
            self._until_placed("api", key, lambda key=key: client.order(key, order_body(self.machine)), 201)
            self.stop.wait(2)

    def _browser(self, browser: Browser, slug: str) -> None:
        form = browser.review(slug, self.machine)
        while not self.stop.is_set():
            form["idempotency_key"] = key = uuid.uuid4().hex
            self._until_placed("page", key, lambda form=dict(form): browser.confirm(slug, form), 302)
            self.stop.wait(2)

    def _until_placed(self, kind: str, key: str, send: Callable[[], httpx2.Response], placed: int) -> None:
        """As a client should: the same request with the same key, until it has its order."""
        while True:
            began = time.monotonic()
            try:
                response = send()
            except httpx2.HTTPError as error:
                self.faults.append(f"{kind}: {error!r} after {time.monotonic() - began:.1f} s")
                return
            self.statuses[kind, response.status_code] += 1
            if response.status_code == placed:
                self.keys.add(key)
                return
            if response.status_code != 503 or not response.headers.get("Retry-After", "").isdigit():
                self.faults.append(f"{kind}: {response.status_code} {dict(response.headers)} {response.text[:2000]}")
                return
            time.sleep(0.2)

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(len(self.acts)) as pool:
            futures = [pool.submit(act) for act in self.acts]
            try:
                yield
            finally:
                self.stop.set()
            for future in futures:
                future.result()

    def placed(self) -> int:
        return self.statuses["api", 201] + self.statuses["page", 302]

    def wait_for_more(self, number: int = 20) -> None:
        before = self.placed()
        wait_for("orders", lambda: self.placed() >= before + number or self.faults)

    def wait_for_refusals(self, each: int = 4) -> None:
        """Until the server has been away for so long that everybody was told several times to come again."""
        before, wanted = self.refused(), each * len(self.acts)
        wait_for("refusals", lambda: self.refused() >= before + wanted or self.faults)

    def refused(self) -> int:
        return self.statuses["api", 503] + self.statuses["page", 503]

    def check(self) -> None:
        """Every answer was an order or a 503 within the client's patience; each answered order exists, once."""
        assert not self.faults, (self.statuses, self.faults[:5])
        stored = self.web.sql(
            "SELECT idempotency_key, count(*) FROM rentals_order WHERE machine_id = %s GROUP BY 1", self.machine
        )
        assert dict(stored) == dict.fromkeys(self.keys, 1)
        free = self.web.value("SELECT free_lots FROM catalog_machine WHERE id = %s", self.machine)
        assert free == LOTS - len(self.keys)
        self.web.check_invariants()


@pytest.fixture
def load(web: Shape, clients: list[ApiClient], browsers: list[Browser], buyers: list[Any]) -> Load:
    return Load(web, clients, browsers, buyers)


@pytest.fixture
def due(web: Shape, buyers: list[Any]) -> list[str]:
    """Orders whose term is over, beside a worker and a beat that will see to them."""
    machine = web.make("machine", lots=30)
    orders: list[str] = web.make("orders", slug=buyers[0]["slug"], machine=machine, number=30, days_ago=8)
    web.start("worker")
    web.start("beat")
    return orders


def check_caught_up(web: Shape, due: list[str], buyers: list[Any]) -> None:
    """All that was due has ended once, and every mail was sent once."""
    ended = "SELECT count(*) FROM rentals_order WHERE id = ANY(%s) AND status = 'ended'"
    wait_for("the ends", lambda: web.value(ended, due) == 30, 90)
    told = "SELECT count(*), count(DISTINCT object_id) FROM rentals_auditevent"
    assert web.sql(f"{told} WHERE action = 'order.ended' AND object_id = ANY(%s)", due) == [(30, 30)]
    organizations = [each["id"] for each in buyers]
    states = "SELECT state, count(*) FROM rentals_notice WHERE organization_id = ANY(%s) GROUP BY state"
    # Each order that was placed meanwhile has two: on a busy machine they are many.
    wait_for("the mails", lambda: "pending" not in dict(web.sql(states, organizations)), 300)
    notices = sum(dict(web.sql(states, organizations)).values())
    wait_for("their arrival", lambda: sum(web.mails.counted().values()) >= notices)
    counted = web.mails.counted()
    assert (len(counted), set(counted.values())) == (notices, {1})


def test_postgresql_is_stopped_and_started_under_load(
    web: Shape, load: Load, due: list[str], buyers: list[Any]
) -> None:
    with load.running():
        load.wait_for_more()
        web.stop_postgresql()
        web.start_postgresql()
        load.wait_for_more()
        web.stop_postgresql()
        load.wait_for_refusals()
        web.start_postgresql()
        load.wait_for_more()
    load.check()
    check_caught_up(web, due, buyers)


def test_redis_is_stopped_under_load(web: Shape, load: Load, due: list[str], buyers: list[Any]) -> None:
    with load.running():
        load.wait_for_more()
        web.stop_redis()
        load.wait_for_more(40)
        web.wait_until_missed()
        load.wait_for_more(40)
        web.start_redis()
        load.wait_for_more()
    load.check()
    # The database alone decides about orders.
    assert {status for _, status in load.statuses} <= {201, 302}
    check_caught_up(web, due, buyers)


def test_redis_is_frozen_under_load(web: Shape, load: Load, due: list[str], buyers: list[Any]) -> None:
    with load.running():
        load.wait_for_more()
        with web.redis_client() as client:
            client.client_pause(60_000, all=True)
            load.wait_for_more(40)
            # Answered when the minute is over.
            client.ping()
        load.wait_for_more()
    load.check()
    assert {status for _, status in load.statuses} <= {201, 302}
    check_caught_up(web, due, buyers)
