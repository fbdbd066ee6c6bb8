"""Invitations: an address is asked to join, and nobody is a member before saying yes."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from rentals.models.organizations import Organization, Role
from rentals.querysets import TenantQuerySet

VALID_FOR = timedelta(days=7)


class Invitation(models.Model):
    """An offer of a role to whoever owns an email address. Only `rentals.invitations` writes it.

    The link's token itself is nowhere: a hash of it is enough to recognise it. Sending again makes a new token.
    """

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(max_length=254)
    role = models.CharField(max_length=12, choices=Role, default=Role.MEMBER)
    token_hash = models.CharField(
        max_length=64, unique=True, help_text="SHA-256 of the link's token, in hexadecimal digits."
    )
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    invited_by_name = models.CharField(max_length=254, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["organization_id", "-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                "organization",
                Lower("email"),
                condition=Q(accepted_at__isnull=True, revoked_at__isnull=True),
                name="invitation_open_once_per_address",
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_role_is_known"),
            models.CheckConstraint(
                condition=Q(accepted_at__isnull=True) | Q(revoked_at__isnull=True), name="invitation_ends_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.organization} ({self.role})"

    def is_open(self, now: datetime) -> bool:
        """Whether it can be accepted at `now`."""
        return self.accepted_at is None and self.revoked_at is None and self.expires_at > now
