"""What was answered to a key, so that a repeat gets the same answer and no second effect."""

from django.db import models

from rentals.models.orders import Order
from rentals.models.organizations import Organization
from rentals.querysets import TenantQuerySet


class IdempotencyRecord(models.Model):
    """Request and answer of one key of an organization, written in the transaction of the effect and kept for ever."""

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    key = models.CharField(max_length=255)
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=200)
    body = models.JSONField()
    sent = models.CharField(
        max_length=64, blank=True, default="", help_text="SHA-256 of the request as it came; empty: it was not kept."
    )
    response_status = models.PositiveSmallIntegerField(null=True)
    response_body = models.BinaryField(null=True)
    order = models.OneToOneField(Order, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "key"], name="idempotency_key_once_per_organization"),
        ]

    def __str__(self) -> str:
        return self.key
