"""What must be true of all tenants' rows together, whatever happened at once. Empty lists are good news."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation

from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, Sum

from catalog.models import Machine
from rentals.models import (
    Allocation,
    IdempotencyRecord,
    Membership,
    Order,
    Organization,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEvent,
)
from rentals.models.orders import Status
from rentals.models.organizations import Role
from rentals.tenants import Across, across_tenants


@dataclass(frozen=True)
class Violation:
    rule: str
    row: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.row}: {self.detail}"


def violations() -> list[Violation]:
    """Every offending row of every rule."""
    with across_tenants(Across.CHECK_INVARIANTS):
        return [Violation(rule.__name__.lstrip("_"), row, detail) for rule in RULES for row, detail in rule()]


def _stock_and_active_lots_are_all_lots() -> Iterator[tuple[str, str]]:
    """A machine that was never ordered may have lots the operator keeps back; once ordered, none may be missing."""
    rented: dict[int, int] = dict(
        Order.objects.filter(status=Status.ACTIVE, machine__isnull=False)
        .order_by()
        .values_list("machine")
        .annotate(Sum("lots"))
    )
    ordered = Order.objects.filter(machine__isnull=False).values("machine")
    for machine in Machine.objects.filter(pk__in=ordered).only("id", "name", "lots", "free_lots"):
        active = rented.get(machine.pk, 0)
        # Lots lowered under running orders leave nothing free until enough of them end.
        if machine.free_lots != max(machine.lots - active, 0):
            yield (
                f"machine {machine.pk} ({machine.name})",
                f"{machine.free_lots} free + {active} rented, of {machine.lots} lots",
            )


def _one_allocation_for_each_lot() -> Iterator[tuple[str, str]]:
    numbered = Order.objects.annotate(
        found=Count("allocations"), first=Min("allocations__number"), last=Max("allocations__number")
    )
    for order in numbered.order_by("pk").iterator():
        if (order.found, order.first, order.last) != (order.lots, 1, order.lots):
            yield f"order {order.pk}", f"{order.found} allocations for {order.lots} lots"


def _one_order_for_each_key() -> Iterator[tuple[str, str]]:
    for record in IdempotencyRecord.objects.filter(
        Q(order__isnull=True) | Q(response_status__isnull=True) | Q(response_body__isnull=True)
    ):
        yield f"key {record.key}", "it has no order or no stored answer"
    for order in Order.objects.exclude(pk__in=IdempotencyRecord.objects.filter(order__isnull=False).values("order")):
        yield f"order {order.pk}", "no key led to it"


def _terms_last_exactly_their_days() -> Iterator[tuple[str, str]]:
    for order in Order.objects.order_by("pk").iterator():
        if order.ends_at - order.starts_at != timedelta(days=order.term_days):
            yield f"order {order.pk}", f"{order.ends_at - order.starts_at} for {order.term_days} days"
        if order.status == Status.ENDED and order.ended_at != order.ends_at:
            yield f"order {order.pk}", f"ended at {order.ended_at}, its term at {order.ends_at}"


def _totals_are_their_lines() -> Iterator[tuple[str, str]]:
    for order in Order.objects.order_by("pk").iterator():
        try:
            amounts = [Decimal(line["amount_usd"]) for line in order.lines]
            units = [Decimal(line["unit_usd"]) * line["lots"] for line in order.lines]
        except (KeyError, TypeError, InvalidOperation):
            yield f"order {order.pk}", "its lines cannot be read"
            continue
        if amounts != units or sum(amounts) != order.total_usd or amounts[:1] != [order.unit_usd * order.lots]:
            yield f"order {order.pk}", f"lines {', '.join(map(str, amounts))}, total {order.total_usd}"


def _no_row_refers_to_another_tenant() -> Iterator[tuple[str, str]]:
    for allocation in Allocation.objects.exclude(organization=F("order__organization")):
        yield f"allocation {allocation.pk}", f"of organization {allocation.organization_id}, its order of another"
    for record in IdempotencyRecord.objects.filter(order__isnull=False).exclude(organization=F("order__organization")):
        yield f"key {record.key}", f"of organization {record.organization_id}, its order of another"
    for event in WebhookEvent.objects.filter(order__isnull=False).exclude(organization=F("order__organization")):
        yield f"event {event.pk}", f"of organization {event.organization_id}, its order of another"
    foreign = ~Q(organization=F("endpoint__organization")) | ~Q(organization=F("event__organization"))
    for delivery in WebhookDelivery.objects.filter(foreign):
        yield f"delivery {delivery.pk}", f"of organization {delivery.organization_id}, its endpoint or event of another"
    for attempt in WebhookAttempt.objects.exclude(organization=F("delivery__organization")):
        yield f"attempt {attempt.pk}", f"of organization {attempt.organization_id}, its delivery of another"


def _what_is_delivered_was_answered_with_success() -> Iterator[tuple[str, str]]:
    answered = WebhookAttempt.objects.filter(delivery=OuterRef("pk"), problem="", status__range=(200, 299))
    for delivery in WebhookDelivery.objects.filter(~Exists(answered), state=WebhookDelivery.State.DELIVERED):
        yield f"delivery {delivery.pk}", "delivered, and no attempt was"


def _every_organization_has_an_owner() -> Iterator[tuple[str, str]]:
    owned = Membership.objects.filter(role=Role.OWNER).values("organization")
    for organization in Organization.objects.exclude(pk__in=owned):
        yield f"organization {organization.slug}", "it has no owner"


RULES: tuple[Callable[[], Iterator[tuple[str, str]]], ...] = (
    _stock_and_active_lots_are_all_lots,
    _one_allocation_for_each_lot,
    _one_order_for_each_key,
    _terms_last_exactly_their_days,
    _totals_are_their_lines,
    _no_row_refers_to_another_tenant,
    _what_is_delivered_was_answered_with_success,
    _every_organization_has_an_owner,
)
