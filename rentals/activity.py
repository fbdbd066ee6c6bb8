"""The audit trail in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rentals.models import AuditEvent

ACTIONS = {
    "allocation.connection_changed": "Connection of a lot changed",
    "allocation.delivered": "Lot handed over",
    "allocation.running": "Lot started",
    "allocation.stopped": "Lot stopped",
    "api_key.created": "API key made",
    "api_key.revoked": "API key revoked",
    "invitation.accepted": "Invitation accepted",
    "invitation.revoked": "Invitation taken back",
    "invitation.sent": "Invitation sent",
    "invitation.sent_again": "Invitation sent again",
    "member.added": "Member added",
    "member.removed": "Member removed",
    "member.role_changed": "Role changed",
    "order.cancelled": "Order cancelled",
    "order.ended": "Order ended",
    "order.placed": "Order placed",
    "organization.created": "Organization made",
    "ownership.transferred": "Ownership transferred",
    "own_model.added": "Model kept",
    "own_model.deleted": "Model deleted",
    "own_model.published": "Model published into the catalog",
    "policy.changed": "Policy changed",
    "saved_search.added": "Search saved",
    "saved_search.deleted": "Search deleted",
    "ssh_key.added": "SSH key added",
    "ssh_key.removed": "SSH key removed",
    "webhook.changed": "Webhook changed",
    "webhook.created": "Webhook made",
    "webhook.given_up": "Webhook turned off: it failed for days",
    "webhook.removed": "Webhook removed",
    "webhook.secret_rotated": "Webhook given a new secret",
}


# What a detail is called in a sentence, where its name in the trail says less.
_LABELS = {"number": "lot", "url": "address", "max_order_usd": "limit per order", "max_month_usd": "limit per month"}


@dataclass(frozen=True)
class Act:
    """One event as a row: `details` are (what, value) pairs; `order_id` where the act is about an order."""

    event: AuditEvent
    what: str
    details: tuple[tuple[str, str], ...]
    order_id: str


def acts(events: list[AuditEvent]) -> list[Act]:
    return [
        Act(event, words(event.action), tuple(_details(event.data)), event.object_id if _of_order(event) else "")
        for event in events
    ]


def words(action: str) -> str:
    """An action by name; one without a name of its own by its code."""
    return ACTIONS.get(action) or action.replace(".", ": ").replace("_", " ").capitalize()


def _of_order(event: AuditEvent) -> bool:
    return event.action.split(".")[0] in ("order", "allocation")


def _details(data: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows = []
    for name, value in data.items():
        label = f"{prefix}{_LABELS.get(name) or name.replace('_', ' ').removesuffix(' usd')}"
        if isinstance(value, dict):
            rows += _details(value, f"{label}: ")
        else:
            rows.append((label, _value(name, value)))
    return rows


def _value(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "parameters" and isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"${value}" if name.endswith("_usd") else str(value)
