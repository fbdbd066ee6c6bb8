"""What somebody made in an organization and what works on without them: named, and revoked or kept by a decision.

Keys belong to the organization, not to their maker: a program of the organization must not stop because a person left.
But who made a key may have its text, so whoever takes the person out says what becomes of it. What a key made over the
API counts as its maker's, and stands by itself when the key is revoked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models, transaction
from django.db.models import Q

from rentals.api_keys import revoke_api_key
from rentals.audit import name_of, record
from rentals.errors import RentalError
from rentals.models import ApiKey, Invitation, Organization, SavedSearch, SshKey, WebhookEndpoint
from rentals.models.organizations import MANAGING_ROLES, Role
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
    invitations: tuple[Invitation, ...] = ()

    @property
    def seen(self) -> str:
        """What tells this from what is left when somebody has made one thing more; a form carries it."""
        return hashlib.sha256("\n".join(name for kind in self.kinds for name in self.names(kind)).encode()).hexdigest()

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self) if getattr(self, field.name))

    def names(self, kind: str) -> list[str]:
        match kind:
            case "api_keys":
                return [f"API key {key.name} ({key.prefix})" for key in self.api_keys]
            case "webhooks":
                return [f"webhook {endpoint.shown_url}" for endpoint in self.webhooks]
            case "invitations":
                return [f"invitation of {one.email} as {one.role}" for one in self.invitations]
        return [f"SSH key {key.comment} ({key.fingerprint})" for key in self.ssh_keys]


WORDS = {"api_keys": "API keys", "webhooks": "webhooks", "ssh_keys": "SSH keys", "invitations": "invitations"}


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
    every_key = ApiKey.objects.for_organization(organization).filter(created_by=user)
    keys = every_key.live(now)
    endpoints, ssh_keys = _made(organization, every_key, user)
    return LeftBehind(
        () if manages else tuple(keys),
        () if manages else tuple(endpoints),
        () if orders else tuple(ssh_keys),
        () if role == Role.OWNER else tuple(_invitations(organization, user, role, now)),
    )


def left_by_key(organization: Organization, key: ApiKey) -> LeftBehind:
    """What the key made over the API and what works on when it is revoked."""
    endpoints, ssh_keys = _made(organization, [key])
    return LeftBehind((), tuple(endpoints), tuple(ssh_keys))


def _made(
    organization: Organization, keys: Iterable[ApiKey], user: User | None = None
) -> tuple[models.QuerySet[WebhookEndpoint], models.QuerySet[SshKey]]:
    """The webhooks that are told, and the SSH keys, that the user made, or one of these keys."""
    programs = [name_of(key) for key in keys]

    def made(by: str) -> Q:
        theirs = Q(**{by: user}) if user else Q(pk__in=[])
        return theirs | Q(**{f"{by}__isnull": True, f"{by}_name__in": programs})

    endpoints = WebhookEndpoint.objects.for_organization(organization).filter(made("created_by"), enabled=True)
    return endpoints, SshKey.objects.for_organization(organization).filter(made("added_by"))


def _invitations(
    organization: Organization, user: User, role: str | None, now: datetime
) -> models.QuerySet[Invitation]:
    """Open invitations of the user that somebody in `role` could not send: who leaves may have invited themselves."""
    sent = Invitation.objects.for_organization(organization).filter(
        invited_by=user, accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now
    )
    return sent.filter(role=Role.OWNER) if role in MANAGING_ROLES else sent


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


def revoke_key(
    organization: Organization, key_id: int, *, fates: Mapping[str, str], actor: User, via: str, now: datetime
) -> ApiKey:
    """The key, revoked, and with it what it made over the API so far as `fates` says so.

    Raises: NotPermitted, ApiKey.DoesNotExist.
    """
    with transaction.atomic():
        key = revoke_api_key(organization, key_id, actor=actor, via=via, now=now)
        settle(left_by_key(organization, key), organization, fates, actor=actor, via=via, now=now)
    return key


def _revoke(
    row: ApiKey | WebhookEndpoint | SshKey | Invitation,
    organization: Organization,
    actor: User,
    via: str,
    now: datetime,
) -> None:
    if isinstance(row, ApiKey):
        revoke_api_key(organization, row.pk, actor=actor, via=via, now=now)
    elif isinstance(row, WebhookEndpoint):
        row.enabled = False
        row.save(update_fields=["enabled"])
        drop_waiting(row, now)
        record(organization, "webhook.changed", at=now, actor=actor, via=via, object_id=row.pk, url=row.shown_url,
               events=row.events, enabled=False)  # fmt: skip
    elif isinstance(row, Invitation):
        # Conditional: one that is accepted at this moment has made a member, who is removed as such.
        if Invitation.objects.filter(pk=row.pk, accepted_at__isnull=True, revoked_at__isnull=True).update(
            revoked_at=now
        ):
            record(organization, "invitation.revoked", at=now, actor=actor, via=via, object_id=row.pk, email=row.email,
                   role=row.role)  # fmt: skip
    else:
        SshKey.objects.filter(pk=row.pk).delete()
        record(organization, "ssh_key.removed", at=now, actor=actor, via=via, object_id=row.pk, comment=row.comment,
               fingerprint=row.fingerprint)  # fmt: skip


def saved_searches_of(organization: Organization, user: User) -> list[SavedSearch]:
    return list(SavedSearch.objects.for_organization(organization).filter(created_by=user))
