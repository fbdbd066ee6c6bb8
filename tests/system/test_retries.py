"""One key, one order, one answer: repeats through real processes, and the table of idempotency row by row."""

import random
import uuid
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.system.clients import ApiClient, Browser, at_once, order_body, review_path
from tests.system.processes import Shape, wait_for

pytestmark = [pytest.mark.system, pytest.mark.postgres, pytest.mark.timeout(300)]


@pytest.fixture
def client(clients: list[ApiClient]) -> ApiClient:
    return clients[0]


@pytest.fixture
def machine(web: Shape) -> int:
    return web.make("machine", lots=5)


@pytest.fixture
def key() -> str:
    return uuid.uuid4().hex


def free(shape: Shape, machine: int) -> int:
    return shape.value("SELECT free_lots FROM catalog_machine WHERE id = %s", machine)


def orders_of(shape: Shape, machine: int) -> int:
    return shape.value("SELECT count(*) FROM rentals_order WHERE machine_id = %s", machine)


def refused(response: Any, status: int, code: str) -> dict[str, Any]:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    body: dict[str, Any] = response.json()
    return body


def test_a_hundred_keys_sent_ten_times_with_dropped_connections_are_a_hundred_orders(
    web: Shape, clients: list[ApiClient]
) -> None:
    machine, chance = web.make("machine", lots=150), random.Random(11)
    sends = [(number, repeat) for number in range(100) for repeat in range(10)]
    chance.shuffle(sends)
    dropped = set(chance.sample(sends, 200))
    answers: dict[int, list[Any]] = defaultdict(list)

    def send(each: tuple[int, int]) -> None:
        client, key = clients[each[0] % 8], f"retry-{machine}-{each[0]}"
        if each in dropped:
            client.order_and_leave(key, order_body(machine))
        else:
            answers[each[0]].append(client.order(key, order_body(machine)))

    with ThreadPoolExecutor(40) as pool:
        list(pool.map(send, sends))
    assert len(answers) == 100
    assert sum(map(len, answers.values())) == 800
    for number, responses in answers.items():
        assert {response.status_code for response in responses} == {201}, number
        assert len({response.content for response in responses}) == 1, number
    assert orders_of(web, machine) == 100
    assert free(web, machine) == 50
    web.check_invariants()


def test_a_replay_after_the_price_rose_and_the_last_lot_went_has_the_first_bytes(
    web: Shape, client: ApiClient, machine: int, key: str
) -> None:
    first = client.order(key, order_body(machine))
    assert (first.status_code, first.headers.get("Idempotency-Replayed")) == (201, None)
    web.sql("UPDATE catalog_machine SET price_7_days_usd = 999, listed = false WHERE id = %s", machine)
    web.sql("UPDATE catalog_machine SET lots = lots - free_lots, free_lots = 0 WHERE id = %s", machine)
    for _ in range(4):
        again = client.order(key, order_body(machine))
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers["Idempotency-Replayed"] == "true"
    assert orders_of(web, machine) == 1


def test_another_body_names_the_fields_and_another_path_does(
    web: Shape, client: ApiClient, browsers: list[Browser], buyers: Any, machine: int, key: str
) -> None:
    assert client.order(key, order_body(machine)).status_code == 201
    problem = refused(client.order(key, order_body(machine, lots=2)), 422, "idempotency_mismatch")
    assert {error["field"] for error in problem["errors"]} == {"lots", "expected_total_usd"}
    # The key of a page's form is one of the same organization.
    form = browsers[0].review(buyers[0]["slug"], machine)
    assert browsers[0].confirm(buyers[0]["slug"], form).status_code == 302
    problem = refused(client.order(form["idempotency_key"], order_body(machine)), 422, "idempotency_mismatch")
    assert "path" in {error["field"] for error in problem["errors"]}
    page = browsers[0].post(review_path(buyers[0]["slug"]), {**form, "idempotency_key": key})
    assert page.status_code == 422
    assert orders_of(web, machine) == 2


def while_the_first_runs(web: Shape, machine: int, acts: list[Callable[[], Any]]) -> list[Any]:
    """The answers of acts with one key, of which the first is held inside of its transaction until all others wait."""
    with ThreadPoolExecutor(len(acts)) as pool:
        with web.holding("SELECT id FROM catalog_machine WHERE id = %s FOR UPDATE", machine):
            first = pool.submit(acts[0])
            web.blocked('UPDATE "catalog_machine"')
            others = [pool.submit(act) for act in acts[1:]]
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
            statement = '%INSERT INTO "rentals_idempotencyrecord"%'
            wait_for("the repeats", lambda: web.value(waiting, statement) == len(others), 3)
        return [each.result() for each in [first, *others]]


def test_a_repeat_of_a_running_request_waits_and_replays_and_another_body_is_refused(
    web: Shape, client: ApiClient, machine: int, key: str
) -> None:
    same, other = order_body(machine), order_body(machine, lots=3)
    acts = [lambda: client.order(key, same), lambda: client.order(key, same), lambda: client.order(key, other)]
    first, repeat, another = while_the_first_runs(web, machine, acts)
    assert (first.status_code, repeat.status_code) == (201, 201)
    assert repeat.content == first.content
    assert repeat.headers["Idempotency-Replayed"] == "true"
    refused(another, 422, "idempotency_mismatch")
    assert orders_of(web, machine) == 1


def test_a_repeat_that_waited_long_enough_is_told_to_come_again(
    web: Shape, client: ApiClient, buyers: Any, machine: int, key: str
) -> None:
    record = (
        "INSERT INTO rentals_idempotencyrecord (organization_id, key, method, path, body, sent, created_at)"
        " VALUES (%s, %s, 'POST', '/api/v1/orders', '{}', '{}', now()) RETURNING id"
    )
    with web.holding(record, buyers[0]["id"], key):
        response = client.order(key, order_body(machine))
    refused(response, 409, "in_progress")
    assert int(response.headers["Retry-After"]) >= 1
    assert client.order(key, order_body(machine)).status_code == 201


def test_whatever_was_refused_leaves_the_key_free(
    web: Shape, client: ApiClient, buyers: Any, machine: int, key: str
) -> None:
    refused(client.order(key, order_body(machine, term_days="a week")), 400, "invalid")
    refused(client.order(key, order_body(machine, colour="red")), 400, "invalid")
    web.sql("UPDATE catalog_machine SET free_lots = 0 WHERE id = %s", machine)
    refused(client.order(key, order_body(machine)), 409, "sold_out")
    web.sql("UPDATE catalog_machine SET free_lots = lots, price_7_days_usd = 120 WHERE id = %s", machine)
    problem = refused(client.order(key, order_body(machine)), 409, "price_changed")
    assert (problem["old_total_usd"], problem["new_total_usd"]) == ("110.00", "120.00")
    web.sql(
        "INSERT INTO rentals_organizationpolicy"
        " (organization_id, max_order_usd, order_role, community_acknowledged, changed_at)"
        " VALUES (%s, 100, 'member', false, now())",
        buyers[0]["id"],
    )
    refused(client.order(key, order_body(machine, expected_total_usd="120.00")), 403, "policy")
    web.sql("DELETE FROM rentals_organizationpolicy WHERE organization_id = %s", buyers[0]["id"])
    with web.holding("SELECT id FROM catalog_machine WHERE id = %s FOR UPDATE", machine):
        busy = client.order(key, order_body(machine, expected_total_usd="120.00"))
    refused(busy, 503, "unavailable")
    assert int(busy.headers["Retry-After"]) >= 1
    assert web.value("SELECT count(*) FROM rentals_idempotencyrecord WHERE key = %s", key) == 0
    assert client.order(key, order_body(machine, expected_total_usd="120.00")).status_code == 201
    web.check_invariants()


@pytest.mark.parametrize("bad", [None, "", "k" * 256, "ké"])
def test_a_key_that_is_none_is_refused(web: Shape, client: ApiClient, machine: int, bad: str | None) -> None:
    problem = refused(client.order(bad, order_body(machine)), 400, "invalid")
    assert "key" in problem["detail"].lower()
    assert orders_of(web, machine) == 0


def test_the_same_key_of_another_organization_is_another_order(
    web: Shape, clients: list[ApiClient], machine: int, key: str
) -> None:
    acts = [lambda client=client: client.order(key, order_body(machine)) for client in (clients[0], clients[2])]
    answers = at_once(acts)
    assert [answer.status_code for answer in answers] == [201, 201]
    assert len({answer.json()["id"] for answer in answers}) == 2


def test_a_revoked_key_is_never_given_the_stored_answer(
    web: Shape, clients: list[ApiClient], buyers: Any, machine: int, key: str
) -> None:
    assert clients[0].order(key, order_body(machine)).status_code == 201
    prefix = buyers[0]["keys"][0].split("_")[1]
    web.sql("UPDATE rentals_apikey SET revoked_at = now() WHERE prefix = %s", prefix)
    refused(clients[0].order(key, order_body(machine)), 401, "unauthenticated")
    # The organization's other key is another door to the same answer.
    assert clients[1].order(key, order_body(machine)).headers["Idempotency-Replayed"] == "true"
