"""The JSON shape of an order: the API's answer, the stored answer of a key, and the receipt to download."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from catalog import wording
from catalog.links import page_url
from catalog.models import Machine
from rentals import policies
from rentals.models import (
    Allocation,
    ApiKey,
    AuditEvent,
    Connection,
    Membership,
    Order,
    Organization,
    OrganizationPolicy,
)
from rentals.models.orders import Status
from rentals.models.organizations import Role
from rentals.plans import Planned
from rentals.quotes import Quote
from rentals.statements import Statement
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


def _allocation(
    allocation: Allocation, order: Order, now: datetime, connections: Mapping[int, Connection] | None = None
) -> dict[str, Any]:
    reached = {} if connections is None else {"connection": _connection(connections.get(allocation.pk))}
    return {
        "number": allocation.number,
        "state": allocation.state_at(order, now).value,
        "status_text": allocation.label_at(order, now),
        "delivered_at": instant(allocation.delivered_at),
        **reached,
    }


def _connection(connection: Connection | None) -> dict[str, Any] | None:
    if connection is None:
        return None
    return {
        "host": connection.host,
        "port": connection.port,
        "user": connection.login,
        "notes": connection.notes,
        "changed_at": instant(connection.changed_at),
    }


def order_document(
    order: Order,
    allocations: Iterable[Allocation],
    *,
    now: datetime,
    connections: Mapping[int, Connection] | None = None,
) -> dict[str, Any]:
    """What was copied when it was placed, with the pages where it is shown.

    `connections` are for who may be told how the lots are reached; without them nothing is said of it.
    """
    page = page_url("order", order.organization.slug, order.pk)
    return {
        "id": str(order.pk),
        "status": order.status_at(now).value,
        "machine": {**order.machine_facts, "html_url": page_url("machine", order.machine_facts["id"])},
        "term_days": order.term_days,
        "lots": order.lots,
        "cards": order.cards,
        "lines": order.lines,
        "total_usd": str(order.total_usd),
        "environment": {"preset": order.environment, "notes": order.environment_notes},
        "community_acknowledged": order.community_acknowledged,
        "misfit_acknowledged": order.misfit_acknowledged,
        "starts_at": instant(order.starts_at),
        "ends_at": instant(order.ends_at),
        "cancellation": _cancellation(order),
        "allocations": [_allocation(allocation, order, now, connections) for allocation in allocations],
        "sizing": order.sizing and {**order.sizing, "html_url": page},
        "idempotency_key": order.idempotency_key,
        "html_url": page,
    }


def _cancellation(order: Order) -> dict[str, Any] | None:
    if order.status != Status.CANCELLED:
        return None
    return {
        "cancelled_at": instant(order.ended_at),
        "reason": order.cancel_reason,
        "credit_usd": f"{order.credit_usd:.2f}",
    }


def allocation_document(allocation: Allocation, order: Order, now: datetime) -> dict[str, Any]:
    """One lot by itself, with the order it belongs to."""
    page = page_url("order", order.organization.slug, order.pk)
    return {"order": str(order.pk), **_allocation(allocation, order, now), "html_url": page}


def quote_document(offer: Quote) -> dict[str, Any]:
    """What a basket costs; nothing of it is stored."""
    return {
        "machine": offer.machine.pk,
        "term_days": offer.basket.term_days,
        "lots": offer.basket.lots,
        "cards": offer.cards,
        "lines": [line_document(line) for line in offer.lines],
        "total_usd": f"{offer.total_usd:.2f}",
        "html_url": page_url("machine", offer.machine.pk),
    }


def plan_document(planned: Planned, organization: Organization) -> dict[str, Any]:
    """What the planner says; nothing of it is stored or reserved."""
    fewest, by_budget = planned.fewest, planned.budget_usd is not None
    return {
        "machine": planned.machine.pk,
        "lots": planned.lots,
        "days": planned.plan.days,
        "total_usd": f"{planned.plan.total_usd:.2f}",
        "orders": len(planned.plan.terms),
        "terms": [
            {"term_days": days, "orders": number, "price_usd": f"{price:.2f}", "amount_usd": f"{amount:.2f}"}
            for days, number, price, amount in planned.steps
        ],
        "starts_at": instant(planned.starts_at),
        "ends_at": instant(planned.ends_at),
        "longer_text": None if by_budget else planned.longer_text,
        "left_usd": f"{planned.left_usd:.2f}" if by_budget else None,
        "fewest": fewest
        and {
            "terms": [{"term_days": days, "orders": number} for days, number in fewest.counts()],
            "days": fewest.days,
            "total_usd": f"{fewest.total_usd:.2f}",
            "extra_usd": f"{planned.extra_usd:.2f}",
            "text": planned.fewest_text,
        },
        "notes": [planned.chosen_text, f"{planned.reserves_text} {planned.stock_text}"],
        "html_url": f"{page_url('planner', organization.slug)}?{urlencode(planned.asked)}",
    }


def key_document(key: ApiKey) -> dict[str, Any]:
    """An API key, without what would open anything."""
    return {
        "prefix": key.prefix,
        "name": key.name,
        "scopes": key.scopes,
        "organization": key.organization.slug,
        "created_at": instant(key.created_at),
        "expires_at": instant(key.expires_at),
        "last_used_at": instant(key.last_used_at),
        "html_url": page_url("keys", key.organization.slug),
    }


def organization_document(organization: Organization) -> dict[str, Any]:
    return {
        "slug": organization.slug,
        "name": organization.name,
        "created_at": instant(organization.created_at),
        "html_url": page_url("organization", organization.slug),
    }


def policy_document(policy: OrganizationPolicy | None, organization: Organization, *, now: datetime) -> dict[str, Any]:
    """The rules of a policy, and what is ordered this month; null allows everything."""
    limits = {
        name: None if (amount := getattr(policy, name, None)) is None else f"{amount:.2f}"
        for name in ("max_order_usd", "max_month_usd")
    }
    return {
        "tiers": policy.tiers if policy else None,
        "countries": policy.countries if policy else None,
        **limits,
        "month_usd": f"{policies.spent_in_month(organization, now=now):.2f}",
        "order_role": policy.order_role if policy else Role.MEMBER.value,
        "community_acknowledged": policy.community_acknowledged if policy else None,
        "changed_at": instant(policy.changed_at) if policy else None,
        "html_url": page_url("policy", organization.slug),
    }


def usage_document(found: Statement) -> dict[str, Any]:
    """A month's statement. A credit is negative; a month is complete when it is over."""
    return {
        "month": str(found.month),
        "complete": found.complete,
        "ordered_usd": f"{found.ordered_usd:.2f}",
        "credited_usd": f"{found.credited_usd:.2f}",
        "total_usd": f"{found.total_usd:.2f}",
        "entries": [
            {
                "at": instant(entry.at),
                "what": entry.what,
                "order": str(entry.order.pk),
                "machine": entry.order.machine_facts["name"],
                "lots": entry.order.lots,
                "term_days": entry.order.term_days,
                "amount_usd": f"{entry.amount_usd:.2f}",
                "html_url": page_url("order", found.organization.slug, entry.order.pk),
            }
            for entry in found.entries
        ],
        "html_url": page_url("statement", found.organization.slug, found.month),
    }


def member_document(membership: Membership) -> dict[str, Any]:
    return {
        "email": membership.user.email,
        "role": membership.role,
        "since": instant(membership.created_at),
        "html_url": page_url("members", membership.organization.slug),
    }


def event_document(event: AuditEvent) -> dict[str, Any]:
    """One act of the audit trail. `actor` is null for what the system did by itself."""
    return {
        "at": instant(event.at),
        "action": event.action,
        "actor": event.actor_name or None,
        "via": event.via,
        "object_id": event.object_id,
        "data": event.data,
        "html_url": page_url("activity", event.organization.slug),
    }


def to_bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()
