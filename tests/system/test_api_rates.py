"""The rates of the API hold over all processes of the web service, and never take the service with them."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.system.clients import ApiClient
from tests.system.processes import Shape

pytestmark = [pytest.mark.system, pytest.mark.postgres, pytest.mark.timeout(300)]

LIMIT = 200


@pytest.fixture
def limited(shape: Shape) -> Iterator[Shape]:
    """The web service with its two workers and a low rate for each key."""
    shape.stop(*(process for process in shape.processes if process.service == "web"))
    process = shape.start("web", API_KEY_RATE=f"{LIMIT}/min")
    yield shape
    shape.stop(process)


def test_a_burst_of_600_is_held_to_the_limit_and_never_blocks_the_other_key(
    limited: Shape, buyers: list[dict[str, Any]]
) -> None:
    greedy, modest = ApiClient(limited.url, buyers[0]["keys"][0]), ApiClient(limited.url, buyers[1]["keys"][0])
    # Three of four requests are the greedy key's: 450, and 150 of the other, under its limit.
    burst = [(modest if number % 4 == 0 else greedy) for number in range(600)]
    assert len(limited.web_workers()) == 2
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda client: (client, client.get("/api/v1/key")), burst))
    counts = {client: Counter(answer.status_code for each, answer in answers if each is client)
              for client in (greedy, modest)}  # fmt: skip
    assert counts[modest] == {200: 150}
    assert set(counts[greedy]) == {200, 429}
    assert 0.9 * LIMIT <= counts[greedy][200] <= LIMIT
    for _, answer in answers:
        assert answer.headers["RateLimit-Limit"] == str(LIMIT)
        assert 0 <= int(answer.headers["RateLimit-Remaining"]) < LIMIT
        if answer.status_code == 429:
            assert answer.json()["code"] == "throttled"
            assert 1 <= int(answer.headers["Retry-After"]) <= 65
            assert 1 <= int(answer.headers["RateLimit-Reset"]) <= 65
    greedy.close()
    modest.close()


def test_without_redis_requests_are_answered_uncounted(limited: Shape, buyers: list[dict[str, Any]]) -> None:
    client = ApiClient(limited.url, buyers[0]["keys"][0])
    assert client.get("/api/v1/key").headers["RateLimit-Limit"] == str(LIMIT)
    limited.stop_redis()
    try:
        for path in ("/api/v1/key", "/api/v1/machines", "/api/v1/orders"):
            answer = client.get(path)
            assert answer.status_code == 200, answer.text
            assert "RateLimit-Limit" not in answer.headers
            assert answer.headers["X-Request-ID"]
    finally:
        limited.start_redis()
    assert client.get("/api/v1/key").headers["RateLimit-Remaining"].isdigit()
    client.close()
