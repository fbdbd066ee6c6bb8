"""Which forms were sent already, so that one that comes twice makes nothing twice."""

from django.db import models

from rentals.models.organizations import Organization
from rentals.querysets import TenantQuerySet

MAX_MADE = 300


class SentForm(models.Model):
    """A form that made something, by the key it was shown with. Only `rentals.sent_forms` writes it.

    Written in the transaction of the act. `made` names what was made, and never holds a secret.
    """

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    key = models.CharField(max_length=36)
    sent = models.CharField(max_length=64, help_text="SHA-256 of the form as it came.")
    made = models.CharField(max_length=MAX_MADE, blank=True)
    made_at = models.DateTimeField()

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["-made_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "key"], name="sent_form_key_once_per_organization"),
        ]

    def __str__(self) -> str:
        return self.made
