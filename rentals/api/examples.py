"""Commands to paste into a shell: the request of the API that does what a page shows."""

import json
import uuid
from typing import Any

from django.conf import settings
from django.urls import reverse

from rentals.models import Order
from sizing.permalinks import KEY_HEADER

_TOKEN = f"-H '{KEY_HEADER}'"


def order_command(body: dict[str, Any]) -> str:
    """The order of the review page, under a key of its own. A quote in a note cannot end the body."""
    text = json.dumps(body, ensure_ascii=False).replace("'", "\\u0027")
    return (
        "# One key for one order: sending it again answers the same and never orders twice.\n"
        f"curl -X POST {settings.SITE_URL}{reverse('api-orders')} \\\n"
        f"  {_TOKEN} \\\n"
        f"  -H 'Idempotency-Key: {uuid.uuid4()}' \\\n"
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d '{text}'"
    )


def receipt_command(order: Order) -> str:
    """Reading the order, and stopping its first lot."""
    address = f"{settings.SITE_URL}{reverse('api-order', args=[order.pk])}"
    return (
        f"curl {address} \\\n  {_TOKEN}\n\n"
        f"# Stop a lot; “start” starts it again. Repeating either changes nothing.\n"
        f"curl -X POST {address}/allocations/1/stop \\\n  {_TOKEN}"
    )
