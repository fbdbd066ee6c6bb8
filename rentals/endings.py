"""The end of a term: each due order ends once, and its lots go back to stock once, whoever else is sweeping."""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import Sum

from catalog.models import Machine
from rentals.audit import record
from rentals.models import Allocation, Notice, Order
from rentals.models.orders import Status
from rentals.models.webhooks import EventKind
from rentals.notices import announce
from rentals.one_by_one import alone
from rentals.ordering import is_lock_timeout
from rentals.tenants import Across, across_tenants
from rentals.webhooks_events import tell_of_order

logger = logging.getLogger(__name__)


def end_due_orders(now: datetime) -> int:
    """End every order whose term is over at `now`; how many this call ended."""
    ended = 0
    with across_tenants(Across.END_OF_TERM):
        due = list(Order.objects.due(now).order_by("ends_at", "id").values_list("pk", flat=True))
    for order_id in due:
        with alone("Order %s cannot be ended.", order_id):
            try:
                ended += end_order(order_id, now)
            except OperationalError as error:
                # One machine's row held for too long must not keep the lots of all others; the next sweep tries again.
                if not is_lock_timeout(error):
                    raise
                logger.warning("Order %s could not be ended now.", order_id, exc_info=True)
    return ended


def end_order(order_id: UUID, now: datetime) -> bool:
    """End one due order in its own transaction; False when somebody else has."""
    with across_tenants(Across.END_OF_TERM), transaction.atomic():
        order = Order.objects.select_related("organization").get(pk=order_id)
        # The machine first and always: whoever changes a machine's active lots holds its row until the commit.
        machine = None
        if order.machine_id is not None:
            machine = Machine.objects.select_for_update(of=("self",)).filter(pk=order.machine_id).first()
        # One conditional update decides which worker ends it; the others change no row.
        claimed = Order.objects.due(now).filter(pk=order_id).update(status=Status.ENDED, ended_at=order.ends_at)
        if not claimed:
            return False
        Allocation.objects.for_organization(order.organization).filter(order=order).update(
            state=Allocation.State.STOPPED
        )
        if machine is not None:
            give_back(machine, order.lots, now)
        record(order.organization, "order.ended", at=now, via="system", object_id=order.pk, lots=order.lots)
        announce(order, Notice.Kind.ENDED, now=now)
        tell_of_order(order, EventKind.ORDER_ENDED, now=now)
    return True


def give_back(machine: Machine, lots: int, now: datetime) -> None:
    """Put lots back on a machine whose row this transaction holds, never more than its lots that nobody rents.

    Staff may have lowered `lots` under running orders: then the first lots that come back fill that hole. The orders of
    every tenant count, so the transaction is one across tenants.
    """
    rented = Order.objects.filter(machine=machine, status=Status.ACTIVE).aggregate(lots=Sum("lots"))["lots"] or 0
    free = min(machine.free_lots + lots, max(machine.lots - rented, 0))
    Machine.objects.filter(pk=machine.pk).update(free_lots=free, updated_at=now)
