"""Cancelling a running order: by staff, with a reason and a credit that are written down; its lots go back once."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import OperationalError, transaction

from catalog.models import Machine
from catalog.pricing import CENT
from catalog.storable import storable
from catalog.visible import has_something_to_see
from rentals.audit import record
from rentals.endings import give_back
from rentals.errors import Busy, InvalidCancellation, NotPermitted, OrderOver
from rentals.models import Allocation, Notice, Order
from rentals.models.orders import Status, Via
from rentals.models.webhooks import EventKind
from rentals.notices import announce
from rentals.ordering import is_lock_timeout
from rentals.tenants import Across, across_tenants
from rentals.webhooks_events import tell_of_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User

MAX_REASON = 500


def cancel_order(order_id: UUID, *, reason: str, credit_usd: Decimal, actor: User, now: datetime) -> Order:
    """The order, cancelled. Only an active order can be: ended and cancelled are final.

    Raises: NotPermitted, InvalidCancellation, OrderOver, Busy, Order.DoesNotExist.
    """
    if not actor.is_staff:
        raise NotPermitted("Only staff cancel orders.")
    reason = _checked_reason(reason)
    try:
        with across_tenants(Across.ADMINISTRATION), transaction.atomic():
            return _cancel(order_id, reason, credit_usd, actor, now)
    except OperationalError as error:
        if is_lock_timeout(error):
            raise Busy from error
        raise


def least_credit_usd(order: Order, allocations: Iterable[Allocation]) -> Decimal:
    """What must be credited: a lot that was never handed over, in full. All lots of an order cost the same."""
    missing = sum(allocation.delivered_at is None for allocation in allocations)
    # Exact: each line is a price of one lot in cents, times the lots.
    return (order.total_usd / order.lots * missing).quantize(CENT)


def _cancel(order_id: UUID, reason: str, credit_usd: Decimal, actor: User, now: datetime) -> Order:
    unlocked = Order.objects.only("machine").get(pk=order_id)
    # The machine first, as at the end of a term; then the order, so that no lot is handed over meanwhile.
    machine = None
    if unlocked.machine_id is not None:
        machine = Machine.objects.select_for_update(of=("self",)).filter(pk=unlocked.machine_id).first()
    order = Order.objects.select_for_update(of=("self",)).select_related("organization").get(pk=order_id)
    lots = Allocation.objects.for_organization(order.organization).filter(order=order)
    if order.status_at(now) == Status.ACTIVE:
        _check_credit(order, credit_usd, least_credit_usd(order, lots))
    # One conditional update decides, on a database without row locks too.
    claimed = Order.objects.active(now).filter(pk=order_id).update(
        status=Status.CANCELLED, ended_at=now, cancel_reason=reason, credit_usd=credit_usd
    )  # fmt: skip
    if not claimed:
        raise OrderOver(f"This order is {order.status_at(now).label.lower()} already; that is final.")
    lots.update(state=Allocation.State.STOPPED)
    if machine is not None:
        give_back(machine, order.lots, now)
    record(order.organization, "order.cancelled", at=now, actor=actor, via=Via.STAFF, object_id=order.pk,
           lots=order.lots, credit_usd=str(credit_usd), reason=reason)  # fmt: skip
    announce(order, Notice.Kind.CANCELLED, now=now)
    order.status, order.ended_at, order.cancel_reason, order.credit_usd = Status.CANCELLED, now, reason, credit_usd
    tell_of_order(order, EventKind.ORDER_CANCELLED, now=now)
    return order


def _checked_reason(reason: str) -> str:
    reason = reason.strip() if storable(reason) else ""
    if not has_something_to_see(reason) or len(reason) > MAX_REASON:
        raise InvalidCancellation("reason", f"Say why, in 1 to {MAX_REASON} characters of plain text.")
    return reason


def _check_credit(order: Order, credit_usd: Decimal, least_usd: Decimal) -> None:
    if not credit_usd.is_finite() or not 0 <= credit_usd <= order.total_usd:
        raise InvalidCancellation("credit_usd", f"The credit must be from 0 to the total, {order.total_usd} USD.")
    if credit_usd != credit_usd.quantize(CENT):
        raise InvalidCancellation("credit_usd", "The credit may have at most two decimals.")
    if credit_usd < least_usd:
        raise InvalidCancellation(
            "credit_usd", f"Lots that were never handed over are credited in full: {least_usd} USD or more."
        )
