"""Mails about an order: each written down with the act it tells of, then sent, at most once."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from rentals.models.orders import Order
from rentals.models.organizations import Organization
from rentals.querysets import TenantQuerySet


class Notice(models.Model):
    """One mail to one person about one order: the row is the promise, `state` what became of it.

    `sending` is written before the mail server is asked: a row that stays there was cut off in between, and is not sent
    again, because nobody can tell whether the mail went out.
    """

    class Kind(models.TextChoices):
        PLACED = "placed", "Order placed"
        ENDS_SOON = "ends_soon", "Ends in 24 hours"
        ENDED = "ended", "Ended"
        CANCELLED = "cancelled", "Cancelled"
        DELIVERED = "delivered", "Lot handed over"

    class State(models.TextChoices):
        PENDING = "pending", "To be sent"
        SENDING = "sending", "Being sent, or cut off"
        SENT = "sent", "Sent"
        DROPPED = "dropped", "Not sent: no longer true, or no longer a member"
        FAILED = "failed", "Given up"

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=12, choices=Kind)
    lot = models.PositiveIntegerField(default=0, help_text="0: it is about the whole order.")
    correction = models.PositiveIntegerField(default=0, help_text="Which correction of the lot's connection; 0: none.")
    recipient = models.EmailField(max_length=254)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=200, blank=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["order", "kind", "lot", "correction", "recipient"], name="notice_once_per_occasion_and_person"
            ),
            models.CheckConstraint(
                condition=Q(state="sent", sent_at__isnull=False) | (~Q(state="sent") & Q(sent_at__isnull=True)),
                name="notice_sent_has_its_moment",
            ),
        ]
        indexes = [models.Index(fields=["state", "next_attempt_at"], name="notice_due")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} to {self.recipient}"
