"""The JSON shape of an order: the API's answer, the stored answer of a key, and the receipt to download."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from catalog import wording
from catalog.models import Machine
from rentals.models import Allocation, Order
from rentals.totals import Line


def instant(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC, always with microseconds.

    >>> instant(datetime(2026, 12, 1, 9, 30, tzinfo=UTC))
    '2026-12-01T09:30:00.000000Z'
    """
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def machine_facts(machine: Machine) -> dict[str, Any]:
    """The machine as it is sold; copied into the order, so nothing here may change with stock or price."""
    return {
        "id": machine.pk,
        "name": machine.name,
        "provider": machine.provider.name,
        "provider_invented": machine.provider.invented,
        "tier": machine.tier,
        "country": machine.country,
        "gpu": machine.gpu.slug,
        "gpu_name": machine.gpu.name,
        "gpu_count": machine.gpu_count,
        "memory_bytes_per_gpu": machine.gpu_memory_bytes,
        "memory_source": machine.memory_source or None,
        "memory_text": wording.memory(machine),
        "interruptible": machine.interruptible,
    }


def line_document(line: Line) -> dict[str, Any]:
    document: dict[str, Any] = {"code": line.code, "description": line.description}
    if line.option is not None:
        document |= {"option": line.option, "quantity": line.quantity}
    return document | {"unit_usd": str(line.unit_usd), "lots": line.lots, "amount_usd": str(line.amount_usd)}


def order_document(order: Order, allocations: Iterable[Allocation], *, now: datetime) -> dict[str, Any]:
    path = reverse("order", args=[order.organization.slug, order.pk])
    return {
        "id": str(order.pk),
        "status": order.status_at(now).value,
        "machine": order.machine_facts,
        "term_days": order.term_days,
        "lots": order.lots,
        "cards": order.cards,
        "lines": order.lines,
        "total_usd": str(order.total_usd),
        "environment": {"preset": order.environment, "notes": order.environment_notes},
        "community_acknowledged": order.community_acknowledged,
        "starts_at": instant(order.starts_at),
        "ends_at": instant(order.ends_at),
        "allocations": [
            {
                "number": allocation.number,
                "state": allocation.state_at(order, now).value,
                "delivered_at": instant(allocation.delivered_at),
            }
            for allocation in allocations
        ],
        "sizing": order.sizing,
        "idempotency_key": order.idempotency_key,
        "html_url": f"{settings.SITE_URL}{path}",
    }


def to_bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()
