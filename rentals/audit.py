"""Writing the audit trail: one function, called inside the transaction of the act it tells of."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rentals.models import AuditEvent

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from rentals.models import Organization


def name_of(actor: User | None) -> str:
    """How a person is named in records that outlive the account."""
    return (actor.email or actor.get_username()) if actor else ""


def record(
    organization: Organization,
    action: str,
    *,
    at: datetime,
    actor: User | None = None,
    via: str,
    object_id: object = "",
    **data: object,
) -> None:
    AuditEvent.objects.create(
        organization=organization,
        at=at,
        actor=actor,
        actor_name=name_of(actor),
        via=via,
        action=action,
        object_id=str(object_id),
        data=data,
    )
