"""What the sweep sends: for each address that acts, a body with which it does act for who may.

A POST that is refused for what it says proves nothing about who says it; a test sends every one of these as the owner.
"""

from __future__ import annotations

import json
from typing import Any

from rentals.documents import instant
from tests.factories import ssh_line
from tests.sizing.own_files import config
from tests.sweep.world import WORD, Tenant, World

# The other tenant's model by its name, and by one so near that an answer might suggest the real one.
FOREIGN_MODELS = (f"own:secret-of-{WORD}", f"own:secret-of-{WORD[:-1]}")


def form_of(name: str, world: World) -> dict[str, Any]:
    """The fields of a page's form; an address without one is sent an empty form."""
    match name:
        case "keys":
            return {"name": "of the sweep", "scopes": ["read", "order"], "expires": "90"}
        case "members":
            return {"email": "sweep@berth.example", "role": "viewer"}
        case "member-role":
            return {"role": "viewer"}
        case "policy":
            return {"tiers": ["secure"], "countries": "DE", "max_order_usd": "1.00", "order_role": "owner"}
        case "ssh-keys":
            return {"key": ssh_line("sweep@berth"), "name": "sweep"}
        case "own-models":
            return {"own_name": "Model of the sweep", "config_text": config().decode()}
        case "order-review":
            return {
                "machine": world.machine.pk, "term_days": "7", "lots": "1", "environment": "vllm",
                "expected_total_usd": str(world.machine.price_7_days_usd),
                # Another organization's key is as good as any.
                "idempotency_key": world.theirs.order.idempotency_key,
            }  # fmt: skip
        case "webhooks" | "webhook":
            return {"url": "https://sweep.example/", "description": "of the sweep", "events": ["order.placed"]}
        case "webhook-secret":
            return {"made_at": instant(world.theirs.order.starts_at)}
        case "saved-searches":
            return {"name": "of the sweep", "query": "task=notebook&gpu_memory_gib=8"}
    return {}


def queries_of(name: str) -> list[dict[str, str]]:
    """Questions that might bring another tenant's rows into an answer."""
    ask = {"task": "run", "precision_bits": "16", "context": "4096", "requests": "1"}
    if name in ("organization-launch", "organization-launch-result", "launch", "launch-result"):
        return [ask | {"model": model} for model in FOREIGN_MODELS]
    if name in ("account_login", "account_signup", "organization-new"):
        return [{"next": f"/o/{WORD}-labs/orders/"}]
    return []


def json_of(name: str, world: World) -> list[dict[str, Any]]:
    """The bodies that are sent to an address of the API."""
    total = str(world.machine.price_7_days_usd)
    basket: dict[str, Any] = {"machine": world.machine.pk, "term_days": 7, "lots": 1}
    asks = [
        {"task": "run", "model": model, "precision_bits": 16, "context": 4096, "requests": 1}
        for model in FOREIGN_MODELS
    ]
    match name:
        case "api-orders":
            order = basket | {"expected_total_usd": total}
            return [order, *(order | {"workload": ask} for ask in asks)]
        case "api-ssh-keys":
            return [{"key": ssh_line("sweep@berth"), "name": "sweep"}]
        case "api-webhooks":
            return [{"url": "https://sweep.example/", "events": ["order.placed"], "description": "of the sweep"}]
        case "api-webhook-secret":
            return [{"secret_made_at": instant(world.theirs.order.starts_at)}]
        case "api-saved-searches":
            notebook = {"task": "notebook", "gpu_memory_gib": "8"}
            return [{"name": "of the sweep", "workload": ask} for ask in (notebook, *asks)]
        case "api-own-models":
            return [{"config": json.loads(config()), "name": "Model of the sweep"}]
        case "api-planner":
            return [{"machine": world.machine.pk, "days": 45}]
        case "api-quotes":
            return [basket]
        case "api-sizing" | "api-recommendations":
            return [{"workload": ask} for ask in asks]
    return [{}]


def owner_form(name: str, world: World, tenant: Tenant) -> dict[str, Any]:
    """As `form_of`, with a key that is free in the owner's own organization."""
    form = form_of(name, world)
    return form | ({"idempotency_key": f"another-of-{tenant.organization.slug}"} if "idempotency_key" in form else {})
