"""Everything that production runs, together: a list is refreshed, a lot ordered, its term ended, its mails sent.

And the same twice over: two workers and two beats do each thing once, and one that is killed costs nothing.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.clients import ApiClient, order_body
from tests.system.feed_server import FeedServer, offer
from tests.system.processes import Process, Shape, process_of, wait_for

pytestmark = [pytest.mark.system, pytest.mark.postgres, pytest.mark.timeout(400)]

INTERVAL_SECONDS = 30


@pytest.fixture
def feed() -> Iterator[FeedServer]:
    server = FeedServer()
    yield server
    server.close()


@pytest.fixture
def provider(shape: Shape, feed: FeedServer) -> Iterator[int]:
    made = shape.make("provider", feed_url=feed.url, seconds=INTERVAL_SECONDS)
    yield made
    shape.sql("UPDATE catalog_provider SET feed_url = '', feed_format = '' WHERE id = %s", made)


def start(shape: Shape, feed: FeedServer, service: str) -> Process:
    return shape.start(service, OUTGOING_ALLOWED=feed.place)


def machines(shape: Shape, provider: int) -> dict[str, tuple[Any, ...]]:
    found = shape.sql(
        "SELECT external_id, id, free_lots, price_7_days_usd, online FROM catalog_machine WHERE provider_id = %s",
        provider,
    )
    assert len({name for name, *_ in found}) == len(found)
    return {name: tuple(facts) for name, *facts in found}


def runs(shape: Shape, provider: int) -> list[tuple[Any, ...]]:
    """Outcome, new and unchanged machines of each run, the first first; no two of them at the same time."""
    overlap = (
        "SELECT count(*) FROM catalog_feedrun a JOIN catalog_feedrun b ON a.provider_id = b.provider_id AND a.id < b.id"
        " WHERE a.provider_id = %s AND a.finished_at > b.started_at"
    )
    assert shape.value(overlap, provider) == 0
    columns = "outcome, new, changed, unchanged"
    return shape.sql(f"SELECT {columns} FROM catalog_feedrun WHERE provider_id = %s ORDER BY id", provider)


def good_runs(shape: Shape, provider: int) -> int:
    return sum(outcome == "ok" for outcome, *_ in runs(shape, provider))


def test_a_refreshed_machine_is_ordered_and_its_term_ends(web: Shape, feed: FeedServer, provider: int) -> None:
    feed.offers = [offer(1), offer(2)]
    worker, beat = start(web, feed, "worker"), start(web, feed, "beat")
    wait_for("the list", lambda: len(machines(web, provider)) == 2)
    buyer = web.make("organizations", number=1)[0]
    client = ApiClient(web.url, buyer["keys"][0])
    machine, *_ = machines(web, provider)["offer-1"]
    wait_for("the machine to be fresh", lambda: good_runs(web, provider))
    assert client.get(f"/api/v1/machines/{machine}").json()["free_lots"] == 2
    placed = client.order("shape-1", order_body(machine))
    assert placed.status_code == 201, placed.text
    order = placed.json()["id"]
    # Under its request's id the log has the request.
    log = next(process for process in web.processes if process.service == "web").text()
    lines = [line for line in log.splitlines() if placed.headers["X-Request-ID"] in line]
    assert any('"request_finished"' in line and '"code": 201' in line for line in lines)
    wait_for("the mail", lambda: sum(web.mails.counted().values()) == 1)
    # The next list has another price for both; the one under rent stays as it was sold.
    feed.offers = [offer(1, price_7_days_usd="120.00"), offer(2, price_7_days_usd="120.00")]
    wait_for("the new price", lambda: machines(web, provider)["offer-2"][2] == 120)
    assert machines(web, provider)["offer-1"][:3] == (machine, 1, 110)
    web.sql(
        "UPDATE rentals_order SET starts_at = starts_at - interval '7 days', ends_at = ends_at - interval '7 days'"
        " WHERE id = %s",
        order,
    )
    assert client.get(f"/api/v1/orders/{order}").json()["status"] == "ended"
    # From the instant on it is over; the lots come back with the sweep.
    wait_for("the sweep", lambda: web.value("SELECT status FROM rentals_order WHERE id = %s", order) == "ended")
    assert machines(web, provider)["offer-1"][1] == 2
    wait_for("the second mail", lambda: sum(web.mails.counted().values()) == 2)
    assert {recipient for recipient, _ in web.mails.counted()} == {buyer["owner"]}
    assert {subject.split()[-1] for _, subject in web.mails.counted()} == {"placed", "ended"}
    web.check_invariants()
    for process in (worker, beat):
        assert process.main.poll() is None
        assert "Traceback" not in process.text()
    client.close()


def test_two_workers_and_two_beats_do_each_thing_once(shape: Shape, feed: FeedServer, provider: int) -> None:
    owner = shape.make("organizations", number=1)[0]
    machine = shape.make("machine", lots=20)
    due = shape.make("orders", slug=owner["slug"], machine=machine, number=20, days_ago=8)
    feed.offers = [offer(number) for number in range(50)]
    for service in ("worker", "worker", "beat", "beat"):
        start(shape, feed, service)
    wait_for("the list", lambda: good_runs(shape, provider))
    ended = "SELECT count(*) FROM rentals_order WHERE id = ANY(%s) AND status = 'ended'"
    wait_for("the ends", lambda: shape.value(ended, due) == 20)
    told = "SELECT count(*), count(DISTINCT object_id) FROM rentals_auditevent"
    assert shape.sql(f"{told} WHERE action = 'order.ended' AND object_id = ANY(%s)", due) == [(20, 20)]
    assert shape.value("SELECT free_lots FROM catalog_machine WHERE id = %s", machine) == 20
    wait_for("the mails", lambda: sum(shape.mails.counted().values()) >= 40)
    assert len(machines(shape, provider)) == 50
    counted = {each: count for each, count in shape.mails.counted().items() if each[0] == owner["owner"]}
    assert (len(counted), set(counted.values())) == (40, {1})
    shape.check_invariants()


def test_a_refresh_whose_worker_is_killed_at_half_is_completed_by_the_next(
    shape: Shape, feed: FeedServer, provider: int
) -> None:
    feed.offers = [offer(number) for number in range(1500)]
    feed.offers += [offer(number, gpu="H100 SXM5", gpu_memory_mib=81559) for number in range(1500, 3000)]
    workers = [start(shape, feed, "worker"), start(shape, feed, "worker")]
    # The commit checks that the GPU of each row exists, and waits for whoever holds it.
    with shape.holding("SELECT id FROM catalog_gpu WHERE slug = 'h100-sxm5-80gb' FOR UPDATE"):
        for _ in range(2):
            start(shape, feed, "beat")
        backend, port = shape.blocked("COMMIT")
        children = {child: worker for worker in workers for child in worker.children()}
        children[process_of(port, list(children))].kill()
        shape.sql("SELECT pg_terminate_backend(%s)", backend)
    # Whole chunks of what came first.
    assert len(machines(shape, provider)) == 1500
    assert runs(shape, provider) == [("running", 0, 0, 0)]
    # The turn of the dead one is free again within two of the usual intervals.
    wait_for("the next run", lambda: good_runs(shape, provider), 2 * 60)
    interrupted, completed = runs(shape, provider)[:2]
    assert interrupted[0] == "interrupted"
    assert completed == ("ok", 1500, 0, 1500)
    assert sorted(machines(shape, provider)) == sorted(each["id"] for each in feed.offers)
    shape.check_invariants()
