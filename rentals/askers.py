"""Who asks for a change inside an organization: a member on a page, or a program by one of its keys over the API.

A member's role and a key's life are asked again inside the transaction of the act. Its scopes say what a key may; where
the policy says which roles order, it counts as an admin.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from rentals.api_keys import check_still_live
from rentals.audit import name_of, person, record
from rentals.errors import NotPermitted
from rentals.models import ApiKey, Membership, Organization
from rentals.policies import ROLE_OF_KEYS, check_role, permits_ordering, policy_of

if TYPE_CHECKING:
    from rentals.audit import Actor

Asker = Membership | ApiKey


def check_may(asker: Asker, may: Callable[[Membership | None], bool], refusal: str, *, now: datetime) -> None:
    """Whether who asks may still do it; `may` is asked about the member as they are now, None when they are gone.

    Raises: NotPermitted with the words of `refusal`, KeyNotAccepted.
    """
    if isinstance(asker, ApiKey):
        check_still_live(asker, now=now)
    elif not may(Membership.objects.filter(pk=asker.pk).first()):
        raise NotPermitted(refusal)


def check_may_order_here(asker: Asker, organization: Organization, refusal: str, *, now: datetime) -> None:
    """Whether who asks may order by the policy, and so change what is kept for what is ordered.

    Raises: NotPermitted with the words of `refusal`, PolicyViolation, KeyNotAccepted.
    """
    policy = policy_of(organization)
    check_may(asker, lambda member: permits_ordering(member, policy), refusal, now=now)
    if isinstance(asker, ApiKey):
        check_role(policy, ROLE_OF_KEYS)


def actor_of(asker: Asker) -> Actor:
    """Whose name records bear."""
    return asker if isinstance(asker, ApiKey) else asker.user


def made_by(asker: Asker, prefix: str = "created_by") -> dict[str, object]:
    """The two fields of a row that say who made it."""
    actor = actor_of(asker)
    return {prefix: person(actor), f"{prefix}_name": name_of(actor)}


def record_act(
    asker: Asker, organization: Organization, action: str, *, at: datetime, object_id: object, **data: object
) -> None:
    """Write into the audit trail what was done, by whom and from where."""
    via = "api" if isinstance(asker, ApiKey) else "page"
    record(organization, action, at=at, actor=actor_of(asker), via=via, object_id=object_id, **data)
