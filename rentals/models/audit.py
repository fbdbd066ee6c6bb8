"""Who did what, when and from where."""

from typing import Any

from django.conf import settings
from django.db import models

from rentals.models.orders import Via
from rentals.models.organizations import Organization
from rentals.querysets import AppendOnlyQuerySet


class AuditEvent(models.Model):
    """One act inside an organization. Append-only, and it never holds a secret: verbs write it, nobody changes it."""

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    actor_name = models.CharField(
        max_length=254, blank=True, help_text="Kept when the account goes; empty: the system."
    )
    via = models.CharField(max_length=8, choices=[*Via.choices, ("system", "System")])
    action = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64, blank=True)
    data = models.JSONField(default=dict, blank=True)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["organization", "-at", "-id"], name="audit_latest_of_tenant")]

    def __str__(self) -> str:
        return f"{self.action} {self.object_id}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("an audit event is never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("an audit event is never deleted")
