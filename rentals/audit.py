"""Writing the audit trail: one function, called inside the transaction of the act it tells of."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rentals.models import ApiKey, AuditEvent

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from rentals.models import Organization

    # Who acts: a person, an organization's program by its key, or the system itself.
    Actor = User | ApiKey | None


def name_of(actor: Actor) -> str:
    """How a person or a key is named in records that outlive them."""
    if isinstance(actor, ApiKey):
        return f"API key {actor.name} ({actor.prefix})"
    return (actor.email or actor.get_username()) if actor else ""


def person(actor: Actor) -> User | None:
    """The actor where it is a person's account."""
    return None if isinstance(actor, ApiKey) else actor


def record(
    organization: Organization,
    action: str,
    *,
    at: datetime,
    actor: Actor = None,
    via: str,
    object_id: object = "",
    **data: object,
) -> None:
    AuditEvent.objects.create(
        organization=organization,
        at=at,
        actor=person(actor),
        actor_name=name_of(actor),
        via=via,
        action=action,
        object_id=str(object_id),
        data=data,
    )
