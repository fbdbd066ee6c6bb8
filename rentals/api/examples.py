"""The requests of the API that do what the pages of orders show."""

import uuid
from typing import Any

from catalog.links import page_url
from catalog.programs import Call, Program
from rentals.models import Order


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
