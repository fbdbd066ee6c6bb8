"""Keys with which an organization's programs use the API."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q

from rentals.models.organizations import Organization
from rentals.querysets import ApiKeyQuerySet

PREFIX_LENGTH = 12


class Scope(models.TextChoices):
    READ = "read", "Read"
    ORDER = "order", "Order"


class ApiKey(models.Model):
    """A key of an organization, not of a person: when its maker leaves, it works on unless it is revoked with them.

    Only `rentals.api_keys` writes it.

    The secret itself is nowhere: a hash of it is enough to recognise it, and it was shown once.
    """

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=80)
    scopes = models.JSONField(default=list, help_text="What the key may do: read, order.")
    prefix = models.CharField(max_length=PREFIX_LENGTH, unique=True, help_text="The part by which it is looked up.")
    secret_hash = models.CharField(max_length=64, help_text="SHA-256 of the secret, in hexadecimal digits.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=~Q(name="") & ~Q(secret_hash=""), name="api_key_has_name_and_hash"),
        ]
        indexes = [models.Index(fields=["organization", "-created_at", "-id"], name="api_key_latest_of_tenant")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"

    def is_live(self, now: datetime) -> bool:
        """Whether the key opens anything at `now`: the same rule for one row as `live()` is for the table."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def may(self, scope: str) -> bool:
        return scope in self.scopes
