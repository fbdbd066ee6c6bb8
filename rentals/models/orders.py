"""What an organization rents. Prices and machine facts are copied when it orders, never read again from the catalog."""

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.lookups import Exact

from catalog.models import Machine
from catalog.pricing import TERMS_DAYS, hourly_equivalent
from rentals.models.organizations import Organization
from rentals.querysets import OrderQuerySet, TenantQuerySet


class Environment(models.TextChoices):
    VLLM = "vllm", "vLLM"
    PYTORCH = "pytorch", "PyTorch"
    COMFYUI = "comfyui", "ComfyUI"
    JUPYTERLAB = "jupyterlab", "JupyterLab"
    CUDA = "cuda", "Plain CUDA"
    OTHER = "other", "Other"


class Status(models.TextChoices):
    ACTIVE = "active", "Active"
    ENDED = "ended", "Ended"
    CANCELLED = "cancelled", "Cancelled"


class Via(models.TextChoices):
    PAGE = "page", "Page"
    API = "api", "API"
    STAFF = "staff", "Staff"


def _lasts(days: int) -> Q:
    """A term is a number of seconds, not of calendar days: the difference is compared, so no time zone has a say."""
    span = Value(timedelta(days=days), output_field=models.DurationField())
    return Q(term_days=days) & Q(Exact(F("ends_at") - F("starts_at"), span))


# Who cancels says why and what is credited; who does not, credits nothing.
_CANCELLED = (
    Q(status=Status.CANCELLED, ended_at__isnull=False, ended_at__lt=F("ends_at"))
    & Q(credit_usd__gte=0, credit_usd__lte=F("total_usd"))
    & ~Q(cancel_reason="")
)
_NOT_CANCELLED = ~Q(status=Status.CANCELLED) & Q(credit_usd__isnull=True, cancel_reason="")


class Order(models.Model):
    """A promise of `lots` lots of one machine for one fixed term. Only `rentals.ordering` makes one; only verbs end it.

    Units: money is USD; `unit_usd` is one lot for the whole term; `ends_at` - `starts_at` = `term_days` x 86,400 s.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="orders")
    machine = models.ForeignKey(Machine, on_delete=models.SET_NULL, null=True, related_name="+")
    machine_facts = models.JSONField(help_text="The machine as it was sold.")
    term_days = models.PositiveSmallIntegerField("term (days)")
    lots = models.PositiveIntegerField()
    gpu_count = models.PositiveSmallIntegerField("cards per lot")
    unit_usd = models.DecimalField("unit price (USD, per lot and term)", max_digits=12, decimal_places=2)
    lines = models.JSONField()
    total_usd = models.DecimalField("total (USD)", max_digits=12, decimal_places=2)
    environment = models.CharField(max_length=12, choices=Environment, default=Environment.OTHER)
    environment_notes = models.CharField(max_length=500, blank=True)
    community_acknowledged = models.BooleanField(default=False)
    misfit_acknowledged = models.BooleanField(
        default=False, help_text="Ordered although the workload does not fit the machine."
    )
    workload = models.JSONField(null=True, blank=True)
    sizing = models.JSONField(null=True, blank=True, help_text="The sizing answer it was bought for.")
    status = models.CharField(max_length=12, choices=Status, default=Status.ACTIVE)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    cancel_reason = models.CharField(max_length=500, blank=True)
    credit_usd = models.DecimalField(
        "credit (USD)", max_digits=12, decimal_places=2, null=True, blank=True, help_text="Given when it was cancelled."
    )
    idempotency_key = models.CharField(max_length=255)
    placed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    placed_by_name = models.CharField(max_length=254, blank=True, help_text="Who ordered, kept when the account goes.")
    placed_via = models.CharField(max_length=8, choices=Via)

    objects = OrderQuerySet.as_manager()

    class Meta:
        ordering = ["-starts_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(term_days__in=TERMS_DAYS), name="order_term_is_fixed"),
            models.CheckConstraint(
                condition=_lasts(3) | _lasts(7) | _lasts(30), name="order_ends_exactly_when_its_term_does"
            ),
            models.CheckConstraint(condition=Q(lots__gte=1) & Q(gpu_count__gte=1), name="order_has_lots_and_cards"),
            models.CheckConstraint(condition=Q(unit_usd__gt=0) & Q(total_usd__gt=0), name="order_prices_positive"),
            models.CheckConstraint(condition=Q(status__in=Status.values), name="order_status_is_known"),
            models.CheckConstraint(
                condition=_CANCELLED | _NOT_CANCELLED, name="order_cancelled_with_reason_and_credit"
            ),
            models.UniqueConstraint(fields=["organization", "idempotency_key"], name="order_one_per_idempotency_key"),
        ]
        indexes = [
            models.Index(fields=["organization", "-starts_at", "-id"], name="order_latest_of_tenant"),
            models.Index(fields=["status", "ends_at"], name="order_due"),
            models.Index(fields=["machine", "status"], name="order_of_machine"),
        ]

    def __str__(self) -> str:
        return f"{self.reference} ({self.organization})"

    @property
    def reference(self) -> str:
        """The short form of the id that people read out."""
        return str(self.id)[:8].upper()

    @property
    def cards(self) -> int:
        return self.lots * self.gpu_count

    @property
    def hourly_usd(self):
        """The unit price divided by the hours of the term, per lot."""
        return hourly_equivalent(self.unit_usd, self.term_days)

    def status_at(self, now: datetime) -> Status:
        """The status as it is true at `now`: a term that is over has ended, whether or not the sweep has come by."""
        if self.status == Status.ACTIVE and self.ends_at <= now:
            return Status.ENDED
        return Status(self.status)


class Allocation(models.Model):
    """One lot of an order, running or stopped over the order's term. Members who may order stop and start it."""

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        STOPPED = "stopped", "Stopped"

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="allocations")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    delivered_at = models.DateTimeField(null=True, blank=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["order_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["order", "number"], name="allocation_number_once_per_order"),
            models.CheckConstraint(condition=Q(number__gte=1), name="allocation_numbers_start_at_one"),
            models.CheckConstraint(condition=Q(state__in=["running", "stopped"]), name="allocation_state_is_known"),
        ]

    def __str__(self) -> str:
        return f"Lot {self.number} of {self.order_id}"

    def state_at(self, order: Order, now: datetime) -> State:
        """The state as it is true at `now`: nothing runs once its order is over."""
        if order.status_at(now) != Status.ACTIVE:
            return self.State.STOPPED
        return self.State(self.state)

    def label_at(self, order: Order, now: datetime) -> str:
        """The state in words, on pages and in documents: what was not handed over yet is being prepared."""
        state = self.state_at(order, now)
        if state == self.State.RUNNING and self.delivered_at is None:
            return "Preparing"
        return str(state.label)
