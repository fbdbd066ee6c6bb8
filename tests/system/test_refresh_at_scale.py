"""A list of 100,000 offers becomes the catalog's while people ask and order: no fault, and little memory is used.

The times are printed beside those of COPY and MERGE of the same rows, which is as fast as PostgreSQL can; they are for
people to read, and nothing is decided by them.
"""

import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.system.clients import ApiClient, order_body
from tests.system.processes import Shape

pytestmark = [pytest.mark.system, pytest.mark.postgres, pytest.mark.timeout(600)]

OFFERS = 100_000
MOST_MEMORY_MIB = 400
# What the refresh itself answers for, and what may happen to an order whose machine's price or presence just moved.
ORDINARY_REFUSALS = {"price_changed", "sold_out", "off_line"}
WEEK_USD = "67.20"
DECLARED_WEEK_USD = "110.00"


def offers(gpu: str, first: int, dearer: Callable[[int], bool] = lambda number: False) -> Iterator[dict[str, Any]]:
    for number in range(first, first + OFFERS):
        yield {
            "id": f"offer-{number}", "name": f"Machine no. {number}", "gpu": gpu, "gpu_count": 1 + number % 4,
            "gpu_memory_mib": 24564, "tier": "community", "place": ("Berlin, DE", ", US", "Oslo, NO")[number % 3],
            "hourly_usd": "0.44" if dearer(number) else "0.40",
        }  # fmt: skip


def write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write('{"offers": [')
        for number, row in enumerate(rows):
            file.write((",\n" if number else "\n") + json.dumps(row))
        file.write("\n]}\n")


@pytest.fixture
def provider(shape: Shape) -> Iterator[tuple[int, str]]:
    """A provider with a feed, and the name of a GPU that the catalog knows."""
    anchor = shape.make("machine", lots=100)
    gpu = shape.value(
        "SELECT g.name FROM catalog_gpu g JOIN catalog_machine m ON m.gpu_id = g.id WHERE m.id = %s", anchor
    )
    pk = shape.value(
        "INSERT INTO catalog_provider (slug, name, website, invented, feed_format, feed_url, sealed_secret,"
        " feed_interval_seconds) VALUES ('large', 'Large', '', true, 'berth', 'https://feed.example/', '', 240)"
        " RETURNING id"
    )
    yield pk, gpu
    # The other tests of processes have their catalog back.
    shape.sql("UPDATE catalog_provider SET feed_url = '', feed_format = '' WHERE id = %s", pk)
    shape.sql("UPDATE catalog_machine SET listed = false WHERE provider_id = %s", pk)
    shape.sql(
        "DELETE FROM catalog_machine WHERE provider_id = %s AND id NOT IN"
        " (SELECT machine_id FROM rentals_order WHERE machine_id IS NOT NULL)"
        " AND id NOT IN (SELECT machine_id FROM catalog_feedabsence)",
        pk,
    )


def refresh(shape: Shape, file: Path) -> tuple[str, int, float]:
    """The command in a process of its own: what it printed, its greatest memory in MiB, its seconds."""
    command = [sys.executable, "manage.py", "refresh_providers", "--provider", "large", "--file", str(file)]
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=shape.image, env=shape.environment("worker"), stdout=output, stderr=subprocess.STDOUT
        )
        peak_kib = 0
        while process.poll() is None:
            # Of its own memory alone: the maximum that wait4 tells begins with what the parent had.
            with suppress(OSError):
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak_kib = max(peak_kib, *map(int, re.findall(r"VmHWM:\s+(\d+)", status)), 0)
            time.sleep(0.05)
        output.seek(0)
        printed = output.read()
    assert process.returncode == 0, printed
    assert peak_kib
    return printed, peak_kib // 1024, time.monotonic() - began


@contextmanager
def meanwhile(acts: list[Callable[[], str]]) -> Iterator[Counter[str]]:
    """Every act again and again until the block ends, each in a thread of its own; what they answered."""
    answers: Counter[str] = Counter()
    done = threading.Event()

    def repeat(act: Callable[[], str]) -> None:
        while not done.is_set():
            try:
                answers[act()] += 1
            except Exception as error:
                answers[f"{type(error).__name__}: {error}"] += 1

    threads = [threading.Thread(target=repeat, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        done.set()
        for thread in threads:
            thread.join()


def asking(client: ApiClient) -> Callable[[], str]:
    question = {
        "workload": {"task": "notebook", "gpu_memory_gib": "20"},
        "preferences": {"countries": ["DE"], "tier": "any"},
    }

    def ask() -> str:
        response = client._client.post("/api/v1/recommendations", json=question)
        return f"answer {response.status_code}"

    return ask


def ordering(client: ApiClient, machines: list[int], total_usd: str = WEEK_USD) -> Callable[[], str]:
    chance = random.Random(1)

    def order() -> str:
        body = order_body(chance.choice(machines), expected_total_usd=total_usd, community_acknowledged=True)
        response = client.order(f"scale-{uuid.uuid4()}", body)
        return "order 201" if response.status_code == 201 else f"order {response.json()['code']}"

    return order


def copy_and_merge(shape: Shape, provider: int, gpu: str) -> float:
    """The seconds that PostgreSQL needs for the same change, of a copy of the table."""
    columns = "external_id, name, hourly_usd, price_7_days_usd, price_30_days_usd"
    with psycopg.connect(shape.superuser_url) as connection:
        connection.execute("CREATE TABLE floor_machine (LIKE catalog_machine INCLUDING ALL)")
        # What the database computes for itself cannot be written.
        written = connection.execute(
            "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns"
            " WHERE table_name = 'catalog_machine' AND is_generated = 'NEVER'"
        ).fetchone()[0]
        connection.execute(
            f"INSERT INTO floor_machine ({written}) OVERRIDING SYSTEM VALUE SELECT {written} FROM catalog_machine"
        )
        connection.commit()
        began = time.monotonic()
        connection.execute(
            "CREATE TEMP TABLE incoming (external_id text, name text, hourly_usd numeric, price_7_days_usd numeric,"
            " price_30_days_usd numeric) ON COMMIT DROP"
        )
        with connection.cursor().copy(f"COPY incoming ({columns}) FROM STDIN") as copy:
            for row in offers(gpu, 1000, lambda number: number % 10 == 0):
                week, month = ("73.92", "316.80") if row["hourly_usd"] == "0.44" else (WEEK_USD, "288.00")
                copy.write_row((row["id"], row["name"], row["hourly_usd"], week, month))
        connection.execute(
            """
            MERGE INTO floor_machine m USING incoming i
            ON m.provider_id = %(provider)s AND m.external_id = i.external_id
            WHEN MATCHED AND (m.hourly_usd, m.online) IS DISTINCT FROM (i.hourly_usd, true) THEN UPDATE SET
                hourly_usd = i.hourly_usd, price_7_days_usd = i.price_7_days_usd,
                price_30_days_usd = i.price_30_days_usd, online = true, updated_at = now()
            WHEN NOT MATCHED BY SOURCE AND m.provider_id = %(provider)s AND m.online THEN UPDATE SET online = false
            """,
            {"provider": provider},
        )
        connection.commit()
        seconds = time.monotonic() - began
        connection.execute("DROP TABLE floor_machine")
    return seconds


def test_a_hundred_thousand_offers_in_one_run_while_people_ask_and_order(
    shape: Shape,
    clients: list[ApiClient],
    provider: tuple[int, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pk, gpu = provider
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    write(first, offers(gpu, 0))
    # A thousand go, a thousand come, a tenth become dearer.
    write(second, offers(gpu, 1000, lambda number: number % 10 == 0))
    declared = [shape.make("machine", lots=1000)]

    with meanwhile(
        [asking(clients[0]), asking(clients[1]), ordering(clients[2], declared, DECLARED_WEEK_USD)]
    ) as at_first:
        printed, first_mib, first_seconds = refresh(shape, first)
    assert "100,000 offers, 100,000 new, 0 changed" in printed

    german = "SELECT id FROM catalog_machine WHERE provider_id = %s AND country = 'DE' ORDER BY id LIMIT 3000"
    machines = [machine for (machine,) in shape.sql(german, pk)]
    acts = [asking(clients[0]), asking(clients[1]), ordering(clients[2], machines), ordering(clients[3], machines)]
    with meanwhile(acts) as at_second:
        printed, second_mib, second_seconds = refresh(shape, second)
    assert "Applied" in printed
    assert "100,000 offers, 1,000 new" in printed

    printed, same_mib, same_seconds = refresh(shape, second)
    assert "0 new, " in printed
    floor_seconds = copy_and_merge(shape, pk, gpu)
    lines = [
        f"100,000 offers: the first list took {first_seconds:.1f} s, a tenth of them changed {second_seconds:.1f} s",
        f"beside orders, the same again {same_seconds:.1f} s, with {max(first_mib, second_mib, same_mib)} MiB at most.",
        f"COPY and MERGE of that change took {floor_seconds:.1f} s: a ratio of {second_seconds / floor_seconds:.1f}.",
        f"Meanwhile: {dict(at_first)}, then {dict(at_second)}",
    ]
    with capsys.disabled():
        print("", *lines, sep="\n")
    assert max(first_mib, second_mib, same_mib) < MOST_MEMORY_MIB
    for answers in (at_first, at_second):
        assert answers["answer 200"] > 0
        assert answers["order 201"] > 0
        unexpected = answers.keys() - {"answer 200", "order 201", "answer 429", "order throttled"}
        assert unexpected <= {f"order {code}" for code in ORDINARY_REFUSALS}
    # Rented meanwhile or not: every machine of the list that nobody rents is as the list has it.
    assert shape.value(
        "SELECT count(*) FROM catalog_machine WHERE provider_id = %s AND free_lots = lots AND online", pk
    ) == OFFERS - shape.value(
        "SELECT count(*) FROM catalog_machine WHERE provider_id = %s AND free_lots < lots"
        " AND substr(external_id, 7)::int >= 1000",
        pk,
    )
    assert shape.value(
        "SELECT count(DISTINCT external_id) FROM catalog_machine WHERE provider_id = %s", pk
    ) == shape.value("SELECT count(*) FROM catalog_machine WHERE provider_id = %s", pk)
    shape.check_invariants()
