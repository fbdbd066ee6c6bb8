"""Commands to paste into a shell: the request of the API that does what a page shows."""

import json
from typing import Any

from django.conf import settings
from django.urls import reverse

from rentals.models import Order

_TOKEN = "-H 'Authorization: Bearer <your API key>'"


def order_command(body: dict[str, Any]) -> str:
    """The order of the review page. A quote in a note cannot end the body."""
    text = json.dumps(body, ensure_ascii=False).replace("'", "\\u0027")
    return (
        "# One key for one order: sending it again answers the same and never orders twice.\n"
        f"curl -X POST {settings.SITE_URL}{reverse('api-orders')} \\\n"
        f"  {_TOKEN} \\\n"
        "  -H 'Idempotency-Key: <a value of your own for this order>' \\\n"
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
