"""kill -9 where it hurts: of a web worker at each step of an order, of a Celery worker amid ends of terms and mails.

No step waits for luck: another connection holds the row that the step needs next, so the process stands exactly there.
"""

import os
import signal
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.system.clients import ApiClient, order_body
from tests.system.processes import Shape, process_of, wait_for

pytestmark = [pytest.mark.system, pytest.mark.postgres, pytest.mark.timeout(300)]

POLICY = (
    "INSERT INTO rentals_organizationpolicy (organization_id, order_role, community_acknowledged, changed_at)"
    " VALUES (%s, 'member', false, now())"
)
# What is held, and the statement that then waits for it.
STEPS = {
    "before the transaction": ("SELECT id FROM rentals_apikey WHERE prefix = %(prefix)s", 'UPDATE "rentals_apikey"'),
    "after the key's record": (
        "SELECT id FROM rentals_organizationpolicy WHERE organization_id = %(organization)s",
        "rentals_organizationpolicy",
    ),
    "before the stock": ("SELECT id FROM catalog_machine WHERE id = %(machine)s", 'UPDATE "catalog_machine"'),
    # The references of new rows are checked by the commit: everything is written by then.
    "after the stock": ("SELECT id FROM auth_user WHERE id = %(owner)s", "COMMIT"),
}


class Buyer:
    """One organization with one key, which sends one order under one idempotency key."""

    def __init__(self, web: Shape) -> None:
        self.web, self.lots, self.key = web, 3, uuid.uuid4().hex
        self.organization = web.make("organizations", number=1)[0]
        self.machine = web.make("machine", lots=self.lots)
        text = self.organization["keys"][0]
        self.rows = {
            "prefix": text.split("_")[1], "organization": self.organization["id"], "machine": self.machine,
            "owner": self.organization["owner_id"],
        }  # fmt: skip
        self.client = ApiClient(web.url, text)
        web.sql(POLICY, self.organization["id"])

    def order(self) -> httpx2.Response:
        return self.client.order(self.key, order_body(self.machine))

    def lost(self) -> bool:
        """Send the order; whether the connection broke before an answer came."""
        try:
            response = self.order()
        except httpx2.TransportError:
            return True
        raise AssertionError(response.text)

    def check_one_order(self) -> None:
        organization = self.organization["id"]
        for table, more in (
            ("rentals_order", ""),
            ("rentals_idempotencyrecord", ""),
            ("rentals_allocation", ""),
            ("rentals_notice", ""),
            ("rentals_auditevent", " AND action = 'order.placed'"),
        ):
            found = f"SELECT count(*) FROM {table} WHERE organization_id = %s{more}"
            assert self.web.value(found, organization) == 1, table
        free = self.web.value("SELECT free_lots FROM catalog_machine WHERE id = %s", self.machine)
        assert free == self.lots - 1
        self.web.check_invariants()

    def check_one_mail(self) -> None:
        """A worker that starts only now sends what was written down with the order, once."""
        self.web.start("worker")
        for _ in range(2):
            self.web.send_task("rentals.tasks.send_notices")
        pending = "SELECT count(*) FROM rentals_notice WHERE organization_id = %s AND state <> 'sent'"
        wait_for("the mail", lambda: self.web.value(pending, self.organization["id"]) == 0)
        mails = [each for each in self.web.mails.counted().items() if each[0][0] == self.organization["owner"]]
        assert [count for _, count in mails] == [1]


@pytest.fixture
def buyer(web: Shape) -> Iterator[Buyer]:
    buyer = Buyer(web)
    yield buyer
    buyer.client.close()


@pytest.mark.parametrize("step", STEPS)
def test_an_order_whose_worker_is_killed_leaves_nothing_and_its_repeat_is_placed(
    web: Shape, buyer: Buyer, step: str
) -> None:
    held, waits_in = STEPS[step]
    with ThreadPoolExecutor(1) as pool:
        with web.holding(f"{held} FOR UPDATE", buyer.rows):
            lost = pool.submit(buyer.lost)
            backend, port = web.blocked(waits_in)
            os.kill(process_of(port, web.web_workers()), signal.SIGKILL)
            # A commit that waits would still succeed: here its connection is cut, as when the whole host dies.
            if waits_in == "COMMIT":
                web.sql("SELECT pg_terminate_backend(%s)", backend)
        first = buyer.order()
        assert lost.result()
    assert (first.status_code, first.headers.get("Idempotency-Replayed")) == (201, None)
    again = buyer.order()
    assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
    buyer.check_one_order()
    buyer.check_one_mail()


def test_an_order_whose_worker_is_killed_between_commit_and_answer_is_told_by_the_repeat(
    web: Shape, buyer: Buyer
) -> None:
    held, waits_in = STEPS["after the stock"]
    with ThreadPoolExecutor(1) as pool:
        with web.holding(f"{held} FOR UPDATE", buyer.rows):
            lost = pool.submit(buyer.lost)
            _, port = web.blocked(waits_in)
            worker = process_of(port, web.web_workers())
            # It sleeps while the database commits, and is killed before it can learn of it.
            os.kill(worker, signal.SIGSTOP)
        placed = "SELECT count(*) FROM rentals_order WHERE machine_id = %s"
        wait_for("the commit", lambda: web.value(placed, buyer.machine) == 1)
        os.kill(worker, signal.SIGKILL)
        repeat = buyer.order()
        assert lost.result()
    assert (repeat.status_code, repeat.headers["Idempotency-Replayed"]) == (201, "true")
    assert repeat.json()["id"] == str(web.value("SELECT id FROM rentals_order WHERE machine_id = %s", buyer.machine))
    buyer.check_one_order()
    buyer.check_one_mail()


def test_an_order_whose_web_service_is_killed_before_its_mail_still_gets_it_once(web: Shape, buyer: Buyer) -> None:
    assert buyer.order().status_code == 201
    for worker in web.web_workers():
        os.kill(worker, signal.SIGKILL)
    assert web.mails.counted() == {}
    buyer.check_one_mail()
    wait_for("new web workers", lambda: len(web.web_workers()) == 2)
    assert buyer.order().headers["Idempotency-Replayed"] == "true"
    buyer.check_one_order()


def test_a_hundred_orders_end_once_though_the_worker_that_ends_them_is_killed(shape: Shape) -> None:
    owner = shape.make("organizations", number=1)[0]
    machines = [shape.make("machine", lots=50) for _ in range(2)]
    orders: list[str] = []
    for number, machine in enumerate(machines):
        orders += shape.make("orders", slug=owner["slug"], machine=machine, number=50, days_ago=9 - number)
    ended = "SELECT count(*) FROM rentals_order WHERE id = ANY(%s) AND status = 'ended'"
    worker = shape.start("worker")
    with shape.holding("SELECT id FROM catalog_machine WHERE id = %s FOR UPDATE", machines[1]):
        shape.send_task("rentals.tasks.end_due_orders")
        # Half of them are through, and the next is begun.
        shape.blocked("catalog_machine")
        worker.kill()
        assert shape.value(ended, orders) == 50
    workers = [shape.start("worker"), shape.start("worker")]
    for _ in range(4):
        shape.send_task("rentals.tasks.end_due_orders")
    wait_for("the ends", lambda: shape.value(ended, orders) == 100)
    assert all(process.main.poll() is None for process in workers)
    for machine in machines:
        assert shape.value("SELECT free_lots FROM catalog_machine WHERE id = %s", machine) == 50
    found = "SELECT count(*), count(DISTINCT object_id) FROM rentals_auditevent"
    told = f"{found} WHERE action = %s AND object_id = ANY(%s)"
    assert shape.sql(told, "order.ended", orders) == [(100, 100)]
    shape.check_invariants()
    check_mails(shape, owner, 200)


def check_mails(shape: Shape, owner: dict[str, Any], number: int) -> None:
    """All notices of the organization go out, each once."""
    waiting = "SELECT count(*) FROM rentals_notice WHERE organization_id = %s AND state <> 'sent'"
    for _ in range(4):
        shape.send_task("rentals.tasks.send_notices")
    wait_for("the mails", lambda: shape.value(waiting, owner["id"]) == 0)
    mails = {each: count for each, count in shape.mails.counted().items() if each[0] == owner["owner"]}
    assert (len(mails), set(mails.values())) == (number, {1})


def test_no_mail_is_sent_twice_though_the_worker_that_sends_them_is_killed(shape: Shape) -> None:
    owner = shape.make("organizations", number=1)[0]
    machine = shape.make("machine", lots=20)
    shape.make("orders", slug=owner["slug"], machine=machine, number=20, days_ago=1)
    shape.mails.hold_at = 5
    worker = shape.start("worker")
    shape.send_task("rentals.tasks.send_notices")
    assert shape.mails.held.wait(60)
    worker.kill()
    shape.mails.release.set()
    for _ in range(2):
        shape.start("worker")
    for _ in range(4):
        shape.send_task("rentals.tasks.send_notices")
    pending = "SELECT count(*) FROM rentals_notice WHERE organization_id = %s AND state = 'pending'"
    wait_for("the other mails", lambda: shape.value(pending, owner["id"]) == 0)
    sent = "SELECT count(*) FROM rentals_notice WHERE organization_id = %s AND state = 'sent'"
    wait_for("their end", lambda: shape.value(sent, owner["id"]) == 19)
    # Of the one that was cut off nobody knows whether it arrived: it stays marked, and is not sent again.
    states = "SELECT state, count(*) FROM rentals_notice WHERE organization_id = %s GROUP BY state ORDER BY state"
    assert shape.sql(states, owner["id"]) == [("sending", 1), ("sent", 19)]
    mails = {each: count for each, count in shape.mails.counted().items() if each[0] == owner["owner"]}
    assert (len(mails), set(mails.values())) == (20, {1})
