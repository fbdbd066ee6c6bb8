"""What somebody made in an organization and what works on without them: named, and revoked or kept by a decision.

Keys belong to the organization, not to their maker: a program of the organization must not stop because a person left.
But who made a key may have its text, so whoever takes the person out says what becomes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models

from rentals.api_keys import revoke_api_key
from rentals.audit import record
from rentals.errors import RentalError
from rentals.models import ApiKey, Organization, SavedSearch, SshKey, WebhookEndpoint
from rentals.models.organizations import MANAGING_ROLES
from rentals.policies import may_order, policy_of
from rentals.webhooks_endpoints import drop_waiting

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class Fate(models.TextChoices):
    REVOKE = "revoke"
    KEEP = "keep"


@dataclass(frozen=True)
class LeftBehind:
    """By kind, what works on; a saved search stays the organization's and mails nobody who is gone."""

    api_keys: tuple[ApiKey, ...] = ()
    webhooks: tuple[WebhookEndpoint, ...] = ()
    ssh_keys: tuple[SshKey, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self) if getattr(self, field.name))

    def names(self, kind: str) -> list[str]:
        match kind:
            case "api_keys":
                return [f"API key {key.name} ({key.prefix})" for key in self.api_keys]
            case "webhooks":
                return [f"webhook {endpoint.shown_url}" for endpoint in self.webhooks]
        return [f"SSH key {key.comment} ({key.fingerprint})" for key in self.ssh_keys]


WORDS = {"api_keys": "API keys", "webhooks": "webhooks", "ssh_keys": "SSH keys"}


class Undecided(RentalError):
    """Nobody has said what becomes of what the person made. `kinds` are those without a decision."""

    def __init__(self, left: LeftBehind, kinds: tuple[str, ...]) -> None:
        made = [name for kind in kinds for name in left.names(kind)]
        super().__init__(f"Choose for each whether it is revoked or kept: {', '.join(made)}.")
        self.kinds = kinds


def left_behind(organization: Organization, user: User, *, now: datetime, role: str | None = None) -> LeftBehind:
    """What the user made here and what still works, as far as somebody in `role` could not make it; None: is gone."""
    manages = role in MANAGING_ROLES
    orders = role in may_order(policy_of(organization))
    keys = ApiKey.objects.for_organization(organization).live(now).filter(created_by=user)
    endpoints = WebhookEndpoint.objects.for_organization(organization).filter(created_by=user, enabled=True)
    ssh_keys = SshKey.objects.for_organization(organization).filter(added_by=user)
    return LeftBehind(
        () if manages else tuple(keys), () if manages else tuple(endpoints), () if orders else tuple(ssh_keys)
    )


def check_decided(left: LeftBehind, fates: Mapping[str, str]) -> None:
    """Raises: Undecided."""
    if missing := tuple(kind for kind in left.kinds if fates.get(kind) not in Fate.values):
        raise Undecided(left, missing)


def settle(
    left: LeftBehind, organization: Organization, fates: Mapping[str, str], *, actor: User, via: str, now: datetime
) -> dict[str, list[str]]:
    """Revoke what was decided to be; all else is kept. What became of each, for the trail of the act."""
    told: dict[str, list[str]] = {}
    for kind in left.kinds:
        revoke = fates.get(kind) == Fate.REVOKE
        told.setdefault("revoked" if revoke else "kept", []).extend(left.names(kind))
        if revoke:
            for row in getattr(left, kind):
                _revoke(row, organization, actor, via, now)
    return told


def _revoke(
    row: ApiKey | WebhookEndpoint | SshKey, organization: Organization, actor: User, via: str, now: datetime
) -> None:
    if isinstance(row, ApiKey):
        revoke_api_key(organization, row.pk, actor=actor, via=via, now=now)
    elif isinstance(row, WebhookEndpoint):
        row.enabled = False
        row.save(update_fields=["enabled"])
        drop_waiting(row, now)
        record(organization, "webhook.changed", at=now, actor=actor, via=via, object_id=row.pk, url=row.shown_url,
               events=row.events, enabled=False)  # fmt: skip
    else:
        SshKey.objects.filter(pk=row.pk).delete()
        record(organization, "ssh_key.removed", at=now, actor=actor, via=via, object_id=row.pk, comment=row.comment,
               fingerprint=row.fingerprint)  # fmt: skip


def saved_searches_of(organization: Organization, user: User) -> list[SavedSearch]:
    return list(SavedSearch.objects.for_organization(organization).filter(created_by=user))
