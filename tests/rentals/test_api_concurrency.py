"""The API under real HTTP requests at once: a server with threads, sockets, and PostgreSQL's own locks."""

import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pytest

from catalog.models import Machine
from rentals.invariants import violations
from rentals.models import Order
from tests.factories import make_api_key, make_machine, make_organization
from tests.rentals.calls import order_body

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


_door = threading.Lock()


def at_once(sends: list[Any]) -> list[tuple[int, bytes, str | None]]:
    """Each request on a connection of its own, all sent together once all are connected.

    One connects after the other: the server of the tests has a short queue at its door.
    """
    barrier = threading.Barrier(len(sends))

    def run(each: Any) -> Any:
        server, key, body, idempotency_key = each
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        headers = {
            "Authorization": f"Bearer {key.text}",
            "Content-Type": "application/json",
            "Idempotency-Key": idempotency_key,
        }
        try:
            with _door:
                connection.connect()
                time.sleep(0.01)
            barrier.wait(60)
            connection.request("POST", "/api/v1/orders", json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read(), response.headers.get("Idempotency-Replayed")
        finally:
            connection.close()

    with ThreadPoolExecutor(len(sends)) as pool:
        return list(pool.map(run, sends))


@pytest.fixture
def acme(transactional_db: None) -> Any:
    return make_organization("acme")


def test_one_key_sent_fifty_times_at_once_is_one_order_and_one_answer(live_server: Any, acme: Any) -> None:
    """B138."""
    machine, key = make_machine(price_7_days_usd=Decimal("110.00"), lots=50), make_api_key(acme)
    answers = at_once([(live_server, key, order_body(machine), "k")] * 50)
    assert {status for status, _, _ in answers} == {201}
    assert len({body for _, body, _ in answers}) == 1
    assert sorted(replayed or "" for _, _, replayed in answers) == [""] + ["true"] * 49
    assert Order.objects.count() == 1
    assert Machine.objects.get().free_lots == 49
    assert not violations()


def test_fifty_buyers_of_ten_lots_are_ten_orders(live_server: Any, acme: Any) -> None:
    machine = make_machine(price_7_days_usd=Decimal("110.00"), lots=10)
    keys = [make_api_key(acme), make_api_key(make_organization("globex"))]
    answers = at_once([(live_server, keys[n % 2], order_body(machine), f"k{n}") for n in range(50)])
    assert sorted(status for status, _, _ in answers) == [201] * 10 + [409] * 40
    assert {json.loads(body)["code"] for status, body, _ in answers if status == 409} == {"sold_out"}
    assert Machine.objects.get().free_lots == 0
    assert not violations()


def test_one_key_with_two_bodies_at_once_is_one_order_and_mismatches(live_server: Any, acme: Any) -> None:
    machine, key = make_machine(price_7_days_usd=Decimal("110.00"), lots=50), make_api_key(acme)
    bodies = [order_body(machine), order_body(machine, "220.00", lots=2)]
    answers = at_once([(live_server, key, bodies[n % 2], "k") for n in range(20)])
    assert sorted(status for status, _, _ in answers) == [201] * 10 + [422] * 10
    assert Order.objects.count() == 1
    assert not violations()
