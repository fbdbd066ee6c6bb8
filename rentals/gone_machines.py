"""Machines that left their providers' lists long ago: those that nobody ever ordered are deleted."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, OuterRef

from catalog.refresh.forgetting import delete_machines, gone_for_good
from rentals.models import Order
from rentals.tenants import Across, across_tenants

CHUNK = 500


def forget_gone_machines(now: datetime) -> int:
    """Delete them in short transactions, in the order of ids; how many went.

    An order keeps its machine for good, whoever placed it, so the orders of every tenant are looked at. A machine that
    is off-line can be ordered by nobody meanwhile, and one that a refresh brings back at this moment is left alone.
    """
    forgotten = last = 0
    while True:
        with across_tenants(Across.GONE_MACHINES):
            never_ordered = gone_for_good(now).exclude(Exists(Order.objects.filter(machine=OuterRef("pk"))))
            held = never_ordered.filter(pk__gt=last).order_by("pk").select_for_update(skip_locked=True, of=("self",))
            ids = list(held.values_list("pk", flat=True)[:CHUNK])
            delete_machines(ids)
        if not ids:
            return forgotten
        forgotten, last = forgotten + len(ids), ids[-1]
