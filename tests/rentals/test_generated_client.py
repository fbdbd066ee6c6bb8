"""A client generated from the document sizes, recommends, quotes, orders, replays and stops a lot, first try."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from catalog.models import Machine
from rentals.models import Allocation, Order
from tests import api_scene
from tests.factories import make_api_key

pytestmark = [pytest.mark.system, pytest.mark.postgres]

SCRIPT = """
import json, sys
from berth_client import AuthenticatedClient
from berth_client.api.orders import place_order, quote, stop_allocation
from berth_client.api.sizing import recommend, size
from berth_client.models import OrderRequest, QuoteRequest, RecommendationsRequest, SizingRequest

site, key = sys.argv[1:]
client = AuthenticatedClient(base_url=site, token=key, raise_on_unexpected_status=True)
workload = {"task": "run", "model": "llama-3.1-8b", "precision_bits": 16, "context": 4096, "requests": 1}
memory = size.sync(client=client, body=SizingRequest.from_dict({"workload": workload}))
wish = {"workload": workload, "preferences": {"tier": "secure", "term_days": 7}}
best = recommend.sync(client=client, body=RecommendationsRequest.from_dict(wish)).recommended[0]
basket = {"machine": best.machine.id, "term_days": 7, "lots": 2}
offer = quote.sync(client=client, body=QuoteRequest.from_dict(basket))
wanted = OrderRequest.from_dict({**basket, "expected_total_usd": offer.total_usd, "workload": workload})
first = place_order.sync_detailed(client=client, body=wanted, idempotency_key="nightly-42")
again = place_order.sync_detailed(client=client, body=wanted, idempotency_key="nightly-42")
order = first.parsed
stopped = stop_allocation.sync(client=client, order_id=order.id, number=order.allocations[0].number)
print(json.dumps({
    "total_gib": memory.total_gib, "machine": best.machine.id, "total_usd": order.total_usd,
    "statuses": [first.status_code, again.status_code], "same": first.content == again.content,
    "replayed": again.headers.get("Idempotency-Replayed"), "order": str(order.id), "state": stopped.state.value,
    "sized": order.sizing.memory.total_gib,
}))
"""


def test_a_generated_client_places_an_order(live_server: Any, acme: Any, tmp_path: Path) -> None:
    api_scene.build(acme)
    key = make_api_key(acme)
    schema = tmp_path / "openapi.json"
    shutil.copy(Path(__file__).parents[2] / "docs" / "openapi.json", schema)
    run(tmp_path, str(Path(sys.executable).with_name("openapi-python-client")), "generate", "--path", str(schema),
        "--output-path", str(tmp_path / "berth_client"), "--meta", "none")  # fmt: skip
    (tmp_path / "order.py").write_text(SCRIPT, encoding="utf-8")
    found = json.loads(run(tmp_path, sys.executable, "order.py", live_server.url, key.text))
    order = Order.objects.get()
    assert found == {
        "total_gib": "19.55", "machine": Machine.objects.get(pk=12).pk, "total_usd": "220.00",
        "statuses": [201, 201], "same": True, "replayed": "true", "order": str(order.pk), "state": "stopped",
        "sized": "19.55",
    }  # fmt: skip
    assert order.lots == 2
    assert [lot.state for lot in Allocation.objects.order_by("number")] == ["stopped", "running"]


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1"}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
