"""Refreshes by two workers and two schedulers: one at a time, and again soon after one was killed or Redis was away."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import ge

import pytest

from tests.system.processes import Shape, wait_for

pytestmark = [pytest.mark.system, pytest.mark.postgres, pytest.mark.timeout(300)]

INTERVAL_SECONDS = 30
MACHINES = 1200


class Feed:
    """A provider's server: it counts who asks at once, and holds its answers back while it is told to."""

    def __init__(self) -> None:
        self.asked = self.at_once = self.most_at_once = 0
        self.open = threading.Event()
        self.rows: list[dict[str, object]] = []
        self._lock = threading.Lock()
        feed = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                feed.answer(self)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.place = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        with self._lock:
            self.asked += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.open.wait(25)
            content = json.dumps({"offers": self.rows}).encode()
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
        except OSError:
            pass  # whoever asked was killed
        finally:
            with self._lock:
                self.at_once -= 1

    def close(self) -> None:
        self.open.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def feed() -> Iterator[Feed]:
    feed = Feed()
    yield feed
    feed.close()


@pytest.fixture
def provider(shape: Shape, feed: Feed) -> Iterator[int]:
    anchor = shape.make("machine", lots=1)
    ((gpu,),) = shape.sql(
        "SELECT g.name FROM catalog_gpu g JOIN catalog_machine m ON m.gpu_id = g.id WHERE m.id = %s", anchor
    )
    feed.rows = [
        {"id": f"o{number}", "gpu": gpu, "gpu_count": 1, "gpu_memory_mib": 24564, "tier": "community",
         "place": "DE", "hourly_usd": "0.40"}
        for number in range(MACHINES)
    ]  # fmt: skip
    slug = f"fed-by-{feed.server.server_port}"
    pk = shape.value(
        "INSERT INTO catalog_provider (slug, name, website, invented, feed_format, feed_url, sealed_secret,"
        " feed_interval_seconds) VALUES (%s, %s, '', true, 'berth', %s, '', %s) RETURNING id",
        slug, slug, f"http://{feed.place}/", INTERVAL_SECONDS,
    )  # fmt: skip
    yield pk
    shape.sql("UPDATE catalog_provider SET feed_url = '', feed_format = '' WHERE id = %s", pk)
    shape.sql("UPDATE catalog_machine SET listed = false WHERE provider_id = %s", pk)


def outcomes(shape: Shape, provider: int) -> list[str]:
    rows = shape.sql("SELECT outcome FROM catalog_feedrun WHERE provider_id = %s ORDER BY started_at, id", provider)
    return [outcome for (outcome,) in rows]


def machines(shape: Shape, provider: int) -> tuple[int, int]:
    """All machines of the provider, and their different ids."""
    ((all_of_them, different),) = shape.sql(
        "SELECT count(*), count(DISTINCT external_id) FROM catalog_machine WHERE provider_id = %s", provider
    )
    return all_of_them, different


def test_a_worker_killed_in_the_middle_is_replaced_within_two_intervals(
    shape: Shape, feed: Feed, provider: int
) -> None:
    workers = [shape.start("worker", OUTGOING_ALLOWED=feed.place) for _ in range(2)]
    schedulers = [shape.start("beat") for _ in range(2)]
    wait_for("the first question to the feed", lambda: feed.asked)

    def looks() -> list[int]:
        return [beat.text().count("Sending due task refresh-due-providers") for beat in schedulers]

    def seen() -> int:
        lines = [line for worker in workers for line in worker.text().splitlines()]
        return sum("refresh_due_providers" in line and "succeeded" in line for line in lines)

    # Both schedulers look twice more while the first refresh is on its way, and workers have done what they were sent.
    wanted, done = [number + 2 for number in looks()], seen()
    wait_for("the schedulers", lambda: all(map(ge, looks(), wanted)) and seen() >= done + 4, 22)
    assert (feed.asked, outcomes(shape, provider)) == (1, ["running"])
    for worker in workers:
        worker.kill()
    feed.open.set()
    shape.start("worker", OUTGOING_ALLOWED=feed.place)
    # The lease is two of these intervals; the rest is a scheduler's look and the work itself.
    wait_for("the next refresh", lambda: "ok" in outcomes(shape, provider), 3 * INTERVAL_SECONDS)
    assert outcomes(shape, provider)[:2] == ["interrupted", "ok"]
    assert machines(shape, provider) == (MACHINES, MACHINES)
    assert feed.most_at_once == 1
    shape.check_invariants()


def test_while_redis_is_away_refreshes_rest_and_then_go_on_by_themselves(
    shape: Shape, feed: Feed, provider: int
) -> None:
    feed.open.set()
    for _ in range(2):
        shape.start("worker", OUTGOING_ALLOWED=feed.place)
        shape.start("beat")
    wait_for("a refresh", lambda: "ok" in outcomes(shape, provider))
    shape.stop_redis()
    try:
        shape.wait_until_missed()
        due = "SELECT due_at < now() FROM catalog_feedstate WHERE provider_id = %s"
        wait_for("the next turn", lambda: shape.value(due, provider), 2 * INTERVAL_SECONDS)
        rested = len(outcomes(shape, provider))
    finally:
        shape.start_redis()
    wait_for("another refresh", lambda: len(outcomes(shape, provider)) > rested, 3 * INTERVAL_SECONDS)
    wait_for("its end", lambda: "running" not in outcomes(shape, provider))
    assert set(outcomes(shape, provider)) == {"ok"}
    assert machines(shape, provider) == (MACHINES, MACHINES)
    assert feed.most_at_once == 1
