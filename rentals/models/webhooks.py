"""What an organization's programs are told: where to, of what, and every attempt that was made to tell them."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from catalog import outgoing
from rentals.models.orders import Order
from rentals.models.organizations import Organization
from rentals.querysets import TenantQuerySet

MAX_URL = 500
MAX_DESCRIPTION = 100
MAX_ANSWER = 500


class EventKind(models.TextChoices):
    """What can be chosen, in the order of an order's life."""

    ORDER_PLACED = "order.placed", "An order is placed"
    ORDER_ENDING = "order.ending", "An order ends within 24 hours"
    ORDER_ENDED = "order.ended", "The term of an order is over"
    ORDER_CANCELLED = "order.cancelled", "Staff cancelled an order"
    ALLOCATION_DELIVERED = "allocation.delivered", "A lot is handed over, or how it is reached has changed"
    ALLOCATION_STOPPED = "allocation.stopped", "A lot is stopped"
    ALLOCATION_STARTED = "allocation.started", "A lot is started again"
    MACHINE_AVAILABLE = "machine.available", "A machine appears for a saved search"


# Sent to one endpoint by a button; nobody chooses it.
TEST = "webhook.test"
ONCE_PER_ORDER = (
    EventKind.ORDER_PLACED.value,
    EventKind.ORDER_ENDING.value,
    EventKind.ORDER_ENDED.value,
    EventKind.ORDER_CANCELLED.value,
)


class WebhookEndpoint(models.Model):
    """An address that is told of events. Only `rentals.webhooks_endpoints` and the sending write it.

    The secrets are sealed with a key that is not in the database. `next_send_at` is when it may be sent to again: a
    worker that has the endpoint in hand puts it off, so that nobody else sends to it meanwhile.
    """

    class GivenUp(models.TextChoices):
        FAILED = "failed", "Nothing was answered with success for days"
        GONE = "gone", "It answered that it is gone"

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="webhook_endpoints")
    url = models.CharField(max_length=MAX_URL)
    description = models.CharField(max_length=MAX_DESCRIPTION, blank=True)
    events = models.JSONField(default=list, help_text="The kinds of events it is told of.")
    enabled = models.BooleanField(default=True)
    secret = models.CharField(max_length=400, help_text="Sealed.")
    secret_made_at = models.DateTimeField()
    previous_secret = models.CharField(max_length=400, blank=True, help_text="Sealed; signs too until its time is up.")
    previous_until = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_by_name = models.CharField(max_length=254, blank=True)
    created_at = models.DateTimeField()
    next_send_at = models.DateTimeField()
    failing_since = models.DateTimeField(null=True, blank=True, help_text="The first failure since the last success.")
    given_up_at = models.DateTimeField(null=True, blank=True, help_text="When it was turned off because it failed.")
    given_up_why = models.CharField(max_length=6, choices=GivenUp, blank=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(condition=~Q(url="") & ~Q(secret=""), name="webhook_endpoint_has_url_and_secret"),
            models.CheckConstraint(
                condition=Q(previous_secret="", previous_until__isnull=True)
                | (~Q(previous_secret="") & Q(previous_until__isnull=False)),
                name="webhook_previous_secret_has_its_end",
            ),
        ]
        indexes = [models.Index(fields=["organization", "created_at", "id"], name="webhook_endpoint_of_tenant")]

    def __str__(self) -> str:
        return self.description or self.shown_url

    @property
    def shown_url(self) -> str:
        """The address for trails, mails and staff."""
        return outgoing.shown_address(self.url)


class WebhookEvent(models.Model):
    """Something that happened, written in the transaction in which it did; `body` is what every endpoint gets."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=24)
    order = models.ForeignKey(Order, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    body = models.TextField()
    created_at = models.DateTimeField()

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["order", "kind"], condition=Q(kind__in=ONCE_PER_ORDER), name="webhook_event_once_per_order"
            )
        ]
        indexes = [models.Index(fields=["created_at"], name="webhook_event_age")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class WebhookDelivery(models.Model):
    """One event for one endpoint: the row is the promise, `state` what became of it.

    `tries` counts the attempts of the present round of the schedule; a replay begins another.
    """

    class State(models.TextChoices):
        PENDING = "pending", "To be sent"
        DELIVERED = "delivered", "Delivered"
        FAILED = "failed", "Given up"
        DROPPED = "dropped", "Not sent: turned off"

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries")
    event = models.ForeignKey(WebhookEvent, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(max_length=9, choices=State, default=State.PENDING)
    tries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "event"], name="webhook_delivery_once_per_endpoint"),
            models.CheckConstraint(
                condition=Q(state="pending", finished_at__isnull=True)
                | (~Q(state="pending") & Q(finished_at__isnull=False)),
                name="webhook_delivery_pending_or_finished",
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=Q(state="pending"), name="webhook_delivery_due"),
            models.Index(fields=["endpoint", "-created_at", "-id"], name="webhook_delivery_latest"),
        ]

    def __str__(self) -> str:
        return f"{self.event_id} to {self.endpoint_id}"


class WebhookAttempt(models.Model):
    """One request that was made, and what came of it. Neither a secret nor a signature is kept."""

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    delivery = models.ForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    milliseconds = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="None: there was no answer.")
    problem = models.CharField(max_length=300, blank=True, help_text="Why it counts as failed; empty: delivered.")
    answer = models.CharField(max_length=MAX_ANSWER, blank=True, help_text="How the answer began.")

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["at", "id"]
        indexes = [models.Index(fields=["delivery", "at", "id"], name="webhook_attempt_in_order")]

    def __str__(self) -> str:
        return f"{self.status or 'no answer'} at {self.at:%Y-%m-%d %H:%M:%S}"
