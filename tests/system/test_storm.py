"""Everybody at once, through real processes: nothing oversold, no lot lost, and no fault that a client would see."""

import random
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.system.clients import ApiClient, Browser, at_once, order_body
from tests.system.processes import Shape, wait_for

GONE = "has too few lots free"

pytestmark = [pytest.mark.system, pytest.mark.postgres, pytest.mark.timeout(300)]


def stock(shape: Shape, machine: int) -> tuple[int, int]:
    """Lots that are free, and lots that active orders hold."""
    free = shape.value("SELECT free_lots FROM catalog_machine WHERE id = %s", machine)
    held = shape.value(
        "SELECT coalesce(sum(lots), 0) FROM rentals_order WHERE machine_id = %s AND status = 'active'", machine
    )
    return free, int(held)


def words(response: httpx2.Response) -> str:
    """What a page says, for the report of a failure."""
    return " ".join(re.sub(r"<[^>]*>", " ", response.text.partition("<main")[2]).split())


def buying(client: ApiClient, machine: int, number: int, lots: int = 1) -> Callable[[], str]:
    def buy() -> str:
        response = client.order(f"storm-{machine}-{number}", order_body(machine, lots))
        # A row that a crowd waits for may take longer than an order may wait: the same key goes again, as clients do.
        for _ in range(5):
            if response.status_code != 503:
                break
            time.sleep(int(response.headers["Retry-After"]))
            response = client.order(f"storm-{machine}-{number}", order_body(machine, lots))
        return str(response.status_code) if response.is_success else response.json()["code"]

    return buy


def confirming(browser: Browser, slug: str, form: dict[str, str]) -> Callable[[], str]:
    """The button of the review page: the receipt, or the page that says the lots are gone."""

    def confirm() -> str:
        response = browser.confirm(slug, form)
        if response.status_code == 409 and GONE in response.text:
            return "sold_out"
        return "201" if response.status_code == 302 else f"{response.status_code} {words(response)}"

    return confirm


def placing(staff: Browser, organization: int, machine: int) -> Callable[[], str]:
    """Staff's form on behalf of an organization: the total first, then the order."""
    path = "/admin/rentals/order/add/"
    wanted = {"organization": str(organization), "machine": str(machine), "term_days": "7", "lots": "1"}
    form = staff.form(path, wanted)

    def place() -> str:
        response = staff.post(path, {**form, "place": "1"})
        if response.status_code == 200 and "0 free" in response.text:
            return "sold_out"
        return "201" if response.status_code == 302 else f"{response.status_code} {words(response)}"

    return place


def cancelling(staff: Browser, order: str) -> Callable[[], str]:
    path = f"/admin/rentals/order/{order}/cancel/"
    form = {**staff.form(path, {}), "reason": "Withdrawn by the provider", "credit_usd": "110.00"}

    def cancel() -> str:
        response = staff.post(path, form)
        if response.status_code == 200 and "that is final" in response.text:
            return "over"
        return "cancelled" if response.status_code == 302 else f"{response.status_code} {words(response)}"

    return cancel


def test_a_hundred_buyers_of_ten_lots_are_ten_orders(web: Shape, clients: list[ApiClient]) -> None:
    machine = web.make("machine", lots=10)
    answers = at_once([buying(clients[number % 8], machine, number) for number in range(100)])
    assert Counter(answers) == {"201": 10, "sold_out": 90}
    assert stock(web, machine) == (0, 10)
    web.check_invariants()


def test_random_quantities_of_twenty_five_lots_never_oversell(web: Shape, clients: list[ApiClient]) -> None:
    machine, chance = web.make("machine", lots=25), random.Random(7)
    acts = [buying(clients[number % 8], machine, number, chance.randint(1, 3)) for number in range(100)]
    answers = at_once(acts)
    assert set(answers) == {"201", "sold_out"}
    # Nobody who wanted one lot was sent away while there was one.
    assert stock(web, machine) == (0, 25)
    web.check_invariants()


def test_api_page_and_staff_at_once_never_oversell(
    web: Shape,
    clients: list[ApiClient],
    browsers: list[Browser],
    buyers: list[dict[str, Any]],
    staff: Browser,
) -> None:
    machine = web.make("machine", lots=20)
    acts = [buying(clients[number % 8], machine, number) for number in range(40)]
    for number in range(20):
        browser, slug = browsers[number % 4], buyers[number % 4]["slug"]
        acts.append(confirming(browser, slug, browser.review(slug, machine)))
    acts += [placing(staff, buyers[number % 4]["id"], machine) for number in range(10)]
    random.Random(3).shuffle(acts)
    answers = at_once(acts)
    assert Counter(answers) == {"201": 20, "sold_out": 50}
    assert stock(web, machine) == (0, 20)
    web.check_invariants()


def test_buyers_cancellations_and_ends_at_once_lose_no_lot(
    web: Shape,
    clients: list[ApiClient],
    browsers: list[Browser],
    buyers: list[dict[str, Any]],
    staff: Browser,
) -> None:
    """Two Celery workers sweep twice each, while every running order is cancelled by two of the staff at once."""
    machine = web.make("machine", lots=40)
    due = web.make("orders", slug=buyers[0]["slug"], machine=machine, number=15, days_ago=7.5)
    running = web.make("orders", slug=buyers[1]["slug"], machine=machine, number=15, days_ago=1)
    for service in ("worker", "worker"):
        web.start(service)
    acts: list[Callable[[], Any]] = [cancelling(staff, order) for order in running * 2]
    acts += [buying(clients[number % 8], machine, number) for number in range(40)]
    for number in range(8):
        browser, slug = browsers[number % 4], buyers[number % 4]["slug"]
        acts.append(confirming(browser, slug, browser.review(slug, machine)))
    random.Random(5).shuffle(acts)
    acts += [lambda: web.send_task("rentals.tasks.end_due_orders")] * 4
    answers = Counter(at_once(acts))
    assert set(answers) <= {"201", "sold_out", "cancelled", "over", None}
    assert answers["cancelled"] == 15
    assert answers["over"] == 15
    ended = "SELECT count(*) FROM rentals_order WHERE id = ANY(%s) AND status = 'ended'"
    wait_for("the ends of all due orders", lambda: web.value(ended, due) == 15)
    placed = answers["201"]
    assert stock(web, machine) == (40 - placed, placed)
    found = "SELECT count(*), count(DISTINCT object_id) FROM rentals_auditevent"
    events = f"{found} WHERE action = %s AND object_id = ANY(%s)"
    assert web.sql(events, "order.ended", due) == [(15, 15)]
    assert web.sql(events, "order.cancelled", running) == [(15, 15)]
    web.check_invariants()
