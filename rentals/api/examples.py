"""The requests of the API that do what the pages of an organization show."""

import uuid
from typing import Any

from catalog.links import page_url
from catalog.programs import Call, Program
from rentals.models import Order, OwnModel, WebhookEndpoint
from rentals.models.webhooks import EventKind
from sizing.own_shape import OWN_PREFIX


def order_program(body: dict[str, Any]) -> Program:
    """The order of the review page, under a key of its own."""
    remark = "Reuse this idempotency key only to retry this order: it is answered the same and never placed twice."
    call = Call(page_url("api-orders"), body, "POST", remark, {"Idempotency-Key": str(uuid.uuid4())})
    return Program(call, with_key=True)


def receipt_program(order: Order) -> Program:
    """Reading the order, and stopping its first lot."""
    stop = page_url("api-allocation-stop", order.pk, 1)
    remark = "Stop a lot; “start” starts it again. Repeating either changes nothing."
    return Program(Call(page_url("api-order", order.pk)), Call(stop, None, "POST", remark), with_key=True)


def plan_program(asked: dict[str, Any]) -> Program:
    """The planner's question. The time goes on, so its ends do too."""
    return Program(Call(page_url("api-planner"), asked, "POST"), with_key=True)


def ssh_keys_program() -> Program:
    """The list, and adding to it."""
    address = page_url("api-ssh-keys")
    remark = "Add a key. One that is there already is found, not added again."
    body = {"key": "<the line of your file that ends in .pub>"}
    return Program(Call(address), Call(address, body, "POST", remark), with_key=True)


def webhooks_program() -> Program:
    """The list, and a new endpoint."""
    address = page_url("api-webhooks")
    remark = "Make an endpoint. Its secret is in this answer and in no other."
    body = {"url": "https://<your host>/berth", "events": [EventKind.ORDER_PLACED.value, EventKind.ORDER_ENDED.value]}
    return Program(Call(address), Call(address, body, "POST", remark), with_key=True)


def webhook_program(endpoint: WebhookEndpoint) -> Program:
    """What was delivered, and a test."""
    test = Call(page_url("api-webhook-test", endpoint.pk), None, "POST", "Send a test event.")
    return Program(Call(page_url("api-webhook-deliveries", endpoint.pk)), test, with_key=True)


def searches_program() -> Program:
    """The list, and a search of the answer that a result page gives."""
    address = page_url("api-saved-searches")
    remark = "Save a search: a question of POST /recommendations under a name."
    body = {
        "name": "A notebook with 24 GiB",
        "workload": {"task": "notebook", "gpu_memory_gib": "24"},
        "preferences": {"tier": "secure", "max_hourly_usd": "1.00"},
    }
    return Program(Call(address), Call(address, body, "POST", remark), with_key=True)


def own_models_program() -> Program:
    """The list, and another model by its config.json."""
    address = page_url("api-own-models")
    remark = "Keep a model: put the object of your config.json in."
    body = {"name": "My model", "config": "<the object of your config.json>"}
    return Program(Call(address), Call(address, body, "POST", remark), with_key=True)


def own_model_program(model: OwnModel) -> Program:
    """The model with its figures, and what it needs."""
    workload = {"task": "run", "model": f"{OWN_PREFIX}{model.slug}"}
    sized = Call(page_url("api-sizing"), {"workload": workload}, "POST", "What it needs.")
    return Program(Call(page_url("api-own-model", model.slug)), sized, with_key=True)
