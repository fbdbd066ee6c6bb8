"""Stopping and starting one lot of an order. The paid period runs on: `ends_at` never moves, nothing is refunded."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction

from rentals.api_keys import check_still_live
from rentals.audit import record
from rentals.errors import OrderOver
from rentals.models import Allocation, ApiKey, Order
from rentals.models.orders import Status
from rentals.models.webhooks import EventKind
from rentals.policies import ROLE_OF_KEYS, check_role, policy_of
from rentals.webhooks_events import tell_of_allocation

if TYPE_CHECKING:
    from rentals.audit import Actor


def stop(order: Order, number: int, *, actor: Actor, via: str, now: datetime) -> Allocation:
    """The allocation, stopped; stopping a stopped one changes nothing.

    Raises: OrderOver, Allocation.DoesNotExist, KeyNotAccepted, PolicyViolation.
    """
    return _set_state(order, number, Allocation.State.STOPPED, actor=actor, via=via, now=now)


def start(order: Order, number: int, *, actor: Actor, via: str, now: datetime) -> Allocation:
    """The allocation, running again until the order's end; starting a running one changes nothing.

    Raises: OrderOver, Allocation.DoesNotExist, KeyNotAccepted, PolicyViolation.
    """
    return _set_state(order, number, Allocation.State.RUNNING, actor=actor, via=via, now=now)


def _set_state(
    order: Order, number: int, state: Allocation.State, *, actor: Actor, via: str, now: datetime
) -> Allocation:
    with transaction.atomic():
        if isinstance(actor, ApiKey):
            check_still_live(actor, now=now)
            check_role(policy_of(order.organization), ROLE_OF_KEYS)
        # The order's row is held, so that the end of its term cannot pass between the question and the change.
        held = Order.objects.for_organization(order.organization).select_for_update(of=("self",)).get(pk=order.pk)
        allocation = Allocation.objects.for_organization(order.organization).get(order=held, number=number)
        if held.status_at(now) != Status.ACTIVE:
            cancelled = held.status_at(now) == Status.CANCELLED
            why = "This order was cancelled" if cancelled else "The term of this order is over"
            raise OrderOver(f"{why}; its machines cannot be started or stopped any more.")
        if allocation.state != state:
            allocation.state = state
            allocation.save(update_fields=["state"])
            record(
                held.organization, f"allocation.{state.value}", at=now, actor=actor, via=via, object_id=held.pk,
                number=number,
            )  # fmt: skip
            stopped = state == Allocation.State.STOPPED
            kind = EventKind.ALLOCATION_STOPPED if stopped else EventKind.ALLOCATION_STARTED
            tell_of_allocation(held, allocation, kind, now=now)
    return allocation
