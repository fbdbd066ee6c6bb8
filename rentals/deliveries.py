"""Handing lots over: staff enter how each is reached, and correct it; the moment of the handing-over never moves."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction

from rentals.audit import record
from rentals.baskets import storable
from rentals.errors import InvalidConnection, NotPermitted, OrderOver
from rentals.models import Allocation, Connection, Order
from rentals.models.orders import Status, Via

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet

MAX_NOTES = 1000
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*", re.IGNORECASE)
_LOGIN = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")


@dataclass(frozen=True)
class Details:
    """How a lot is reached. Raises: InvalidConnection naming the field."""

    host: str
    login: str
    port: int = 22
    notes: str = ""

    def __post_init__(self) -> None:
        if not _is_host(self.host):
            raise InvalidConnection("host", "Give a host name or an IP address, such as gpu7.example.net.")
        if type(self.port) is not int or not 1 <= self.port <= 65535:
            raise InvalidConnection("port", "The port must be a whole number from 1 to 65,535.")
        if not _LOGIN.fullmatch(self.login):
            raise InvalidConnection("login", "Give the user's name as the machine has it, such as ubuntu.")
        if not storable(self.notes) or len(self.notes) > MAX_NOTES:
            raise InvalidConnection("notes", f"Write at most {MAX_NOTES:,} characters of plain text.")


def to_deliver(now: datetime) -> QuerySet[Allocation]:
    """Lots that somebody pays for and nobody has handed over yet, the longest waiting first."""
    return Allocation.objects.filter(
        delivered_at__isnull=True, order__status=Status.ACTIVE, order__ends_at__gt=now
    ).order_by("order__starts_at", "order_id", "number")


def deliver(allocation_id: int, details: Details, *, actor: User, now: datetime) -> Allocation:
    """The lot, handed over; when it was already, how it is reached is corrected.

    Raises: NotPermitted, OrderOver, Allocation.DoesNotExist.
    """
    if not actor.is_staff:
        raise NotPermitted("Only staff hand lots over.")
    with transaction.atomic():
        found = Allocation.objects.only("order").get(pk=allocation_id)
        # The order is held, so that it cannot be cancelled as never handed over at this moment.
        order = Order.objects.select_for_update(of=("self",)).select_related("organization").get(pk=found.order_id)
        if order.status_at(now) != Status.ACTIVE:
            raise OrderOver(
                f"This order is {order.status_at(now).label.lower()}; its lots are not handed over any more."
            )
        allocation = Allocation.objects.for_organization(order.organization).get(pk=allocation_id)
        Connection.objects.update_or_create(
            allocation=allocation,
            defaults={
                "organization": order.organization,
                "host": details.host,
                "port": details.port,
                "login": details.login,
                "notes": details.notes,
                "changed_at": now,
            },
        )
        first = allocation.delivered_at is None
        if first:
            allocation.delivered_at = now
            allocation.save(update_fields=["delivered_at"])
        # How it is reached is not in the trail: viewers read that one too.
        record(order.organization, "allocation.delivered" if first else "allocation.connection_changed", at=now,
               actor=actor, via=Via.STAFF, object_id=order.pk, number=allocation.number)  # fmt: skip
    return allocation


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _HOST.fullmatch(host) is not None and not re.fullmatch(r"[0-9.]+", host)
    return "%" not in host
