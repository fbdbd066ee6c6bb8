"""A small world in which every operation of the API has an answer, the same on every run and every database."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from catalog.models import Tier
from catalog.units import GIB
from tests import factories
from tests.rentals.calls import call
from tests.sizing.own_files import config
from tests.sizing.seeded import seed

NOW = datetime(2026, 12, 1, 9, 30, 0, 123456, tzinfo=UTC)
WORKLOAD = {"task": "run", "model": "llama-3.1-8b", "precision_bits": 16, "context": 4096, "requests": 1}
BASKET = {"machine": 12, "term_days": 7, "lots": 2, "options": [{"option": "storage-500", "quantity": 1}]}


def build(organization: Any) -> Any:
    """Two machines, an option and a model; the key of the organization that may do everything."""
    gpu = factories.make_gpu("rtx-4090", pk=1, name="RTX 4090", memory_gb_nominal=24, architecture="Ada Lovelace",
                             compute_capability="8.9", bf16=True, fp8=True)  # fmt: skip
    north = factories.make_provider("north", pk=1, name="North", invented=True)
    home = factories.make_provider("home", pk=2, name="Home Rigs", invented=True)
    factories.make_machine(pk=12, name="North RTX 4090", gpu=gpu, provider=north, lots=400,
                           price_3_days_usd=Decimal("47.14"), price_7_days_usd=Decimal("110.00"),
                           price_30_days_usd=Decimal("471.43"))  # fmt: skip
    factories.make_machine(pk=13, name="Home RTX 4090", gpu=gpu, provider=home, tier=Tier.COMMUNITY, country="US",
                           gpu_memory_bytes=24 * GIB - 2**28, price_7_days_usd=Decimal("75.00"),
                           price_30_days_usd=Decimal("300.00"))  # fmt: skip
    factories.make_option("storage-500")
    seed("llama-3.1-8b")
    return factories.make_api_key(organization, name="batch", now=NOW)


# Every operation that only reads or computes: its path and its body.
READS: dict[str, tuple[str, str, Any]] = {
    "list_gpus": ("GET", "gpus", None),
    "get_gpu": ("GET", "gpus/rtx-4090", None),
    "list_machines": ("GET", "machines", None),
    "get_machine": ("GET", "machines/12", None),
    "list_options": ("GET", "options", None),
    "get_option": ("GET", "options/storage-500", None),
    "list_models": ("GET", "models", None),
    "get_model": ("GET", "models/llama-3.1-8b", None),
    "list_vectors": ("GET", "sizing/vectors", None),
    "list_errors": ("GET", "errors", None),
    "size": ("POST", "sizing", {"workload": WORKLOAD}),
    "recommend": (
        "POST",
        "recommendations",
        {
            "workload": WORKLOAD,
            "preferences": {
                "budget_usd": "300.00", "max_hourly_usd": "2.00", "tier": "secure", "countries": ["EU", "US"],
                "term_days": 7, "lots": 1,
            },
        },
    ),
    "read_model": ("POST", "models/read", {"config": json.loads(config()), "name": "My Llama"}),
    "calculate": (
        "POST",
        "calculator",
        {
            "parameters": 7_000_000_000,
            "bits": 16,
            "purpose": "inference",
            "reserve": [{"name": "Cache", "gib": "6.00", "reason": "four users at once", "state": "estimated"}],
        },
    ),
    "calculate_stages": (
        "POST",
        "calculator/stages",
        {
            "stages": [
                {"name": "Encode images", "weights_gib": "1.50", "working_memory_gib": "2.00", "load": "step"},
                {"name": "Generate the answer", "weights_gib": "14.50", "working_memory_gib": "4.00", "load": "kept"},
            ]
        },
    ),
    "quote": ("POST", "quotes", BASKET),
    "plan": ("POST", "planner", {"machine": 12, "lots": 2, "days": 45}),
}  # fmt: skip
# Of these, those that only a key opens.
WITH_KEY = ("quote", "plan")
OF_THE_TENANT = {
    "list_orders": "orders",
    "get_key": "key",
    "get_organization": "organization",
    "get_policy": "policy",
    "get_usage": "usage?month=2026-12",
    "list_members": "members",
    "list_audit_events": "audit",
}
_HOOK = {"url": "https://hooks.example.com/berth", "events": ["order.placed", "order.ended"], "description": "billing"}
_QUESTION = {"workload": WORKLOAD, "preferences": {"tier": "secure", "countries": ["EU"], "max_hourly_usd": "2.00"}}
# What makes something that is kept: its path and its body.
MADE: dict[str, tuple[str, Any]] = {
    "add_ssh_key": ("ssh-keys", {"key": factories.ssh_line("ada@example.com"), "name": "ada@laptop"}),
    "make_webhook": ("webhooks", _HOOK),
    "save_search": ("saved-searches", {"name": "A place for Llama", **_QUESTION}),
    "keep_own_model": ("own-models", {"config": json.loads(config()), "name": "My Llama"}),
}
ORDER = {
    **BASKET,
    "expected_total_usd": "241.00",
    "environment": {"preset": "vllm", "notes": ""},
    "community_acknowledged": False,
    "workload": WORKLOAD,
}
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw8nFVaLbGv0c="
EVENT_ID = "0d0a1a4e-6f0e-4c0e-9a53-6f0d1f0f5a11"
_SHORTENED = ("results", "vectors", "errors", "field_codes", "limits", "constraints", "assumptions", "splits")


def keep(key: Any) -> dict[str, Any]:
    """Everything that an organization may keep over the API: made, read and taken away again, under the number 1."""
    found: dict[str, Any] = {}

    def did(name: str, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        response = call(method, path, key, body)
        assert response.status_code == status, (name, response.status_code, response.content)
        found[name] = {} if status == 204 else {"response": response.json()}
        if body is not None:
            found[name]["request"] = body
        return found[name].get("response")

    def made(name: str) -> Any:
        return did(name, "POST", *MADE[name], 201)

    kept = made("add_ssh_key")
    did("list_ssh_keys", "GET", "ssh-keys")
    did("get_ssh_key", "GET", f"ssh-keys/{kept['id']}")
    did("remove_ssh_key", "DELETE", f"ssh-keys/{kept['id']}", status=204)
    found = _renumbered(found, kept["id"])
    kept = made("make_webhook")
    here = f"webhooks/{kept['id']}"
    did("list_webhooks", "GET", "webhooks")
    did("get_webhook", "GET", here)
    did("change_webhook", "PATCH", here, {"events": ["order.placed"]})
    new = did("replace_webhook_secret", "POST", f"{here}/secret", {"secret_made_at": kept["secret_made_at"]})
    sent = did("test_webhook", "POST", f"{here}/test", status=202)
    did("list_webhook_deliveries", "GET", f"{here}/deliveries")
    did("get_webhook_delivery", "GET", f"{here}/deliveries/{sent['event_id']}")
    did("replay_webhook_delivery", "POST", f"{here}/deliveries/{sent['event_id']}/replay", status=202)
    did("remove_webhook", "DELETE", here, status=204)
    search = made("save_search")
    did("list_saved_searches", "GET", "saved-searches")
    did("get_saved_search", "GET", f"saved-searches/{search['id']}")
    did("delete_saved_search", "DELETE", f"saved-searches/{search['id']}", status=204)
    delivery = sent["html_url"].strip("/").rpartition("/")[2]
    slug = made("keep_own_model")["slug"]
    did("list_own_models", "GET", "own-models")
    did("get_own_model", "GET", f"own-models/{slug}")
    did("delete_own_model", "DELETE", f"own-models/{slug}", status=204)
    for number in (kept["id"], int(delivery), search["id"]):
        found = _renumbered(found, number)
    invented = {kept["secret"]: SECRET, new["secret"]: SECRET, sent["event_id"]: EVENT_ID}
    return as_published(found, invented)


def _renumbered(document: Any, number: int) -> Any:
    """The document with the number 1 in place of the one that this run's database gave."""
    if isinstance(document, dict):
        return {
            name: 1 if name in ("id", "endpoint_id") and value == number else _renumbered(value, number)
            for name, value in document.items()
        }
    if isinstance(document, list):
        return [_renumbered(value, number) for value in document]
    return document.replace(f"/{number}/", "/1/") if isinstance(document, str) else document


def answer(method: str, path: str, key: Any, body: Any = None, status: int = 200, **headers: str) -> Any:
    response = call(method, path, key, body, **headers)
    assert response.status_code == status, (path, response.status_code, response.content)
    return response.json()


def as_published(document: Any, replaced: dict[str, str]) -> Any:
    """The document with invented names for what differs on each run, and long lists cut to their first two rows."""
    text = json.dumps(shortened(document), ensure_ascii=False)
    for found, shown in {**replaced, "http://testserver": "https://berth.example"}.items():
        text = text.replace(found, shown)
    return json.loads(re.sub(r'"request_id": "[^"]*"', '"request_id": "6a7e1f2c-5f0a-4c1e-8a53-0d6f3f2b7a10"', text))


def shortened(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: shortened(one, key) for key, one in value.items()}
    if isinstance(value, list):
        kept = value[:2] if name in _SHORTENED and len(value) > 2 and isinstance(value[0], dict) else value
        return [shortened(one) for one in kept]
    return value
