"""Handing lots over: staff enter how each is reached, and correct it; the moment of the handing-over never moves."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction

from catalog.storable import storable
from rentals.audit import record
from rentals.errors import InvalidConnection, NotPermitted, OrderOver
from rentals.models import Allocation, Connection, Notice, Order
from rentals.models.orders import Status, Via
from rentals.notices import announce
from rentals.webhooks_events import tell_of_delivery

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


def connections_of(order: Order, *, now: datetime) -> dict[int, Connection]:
    """How the lots of a running order are reached, by allocation; for who may order, and nobody else."""
    if order.status_at(now) != Status.ACTIVE:
        return {}
    rows = Connection.objects.for_organization(order.organization).filter(allocation__order=order)
    return {connection.allocation_id: connection for connection in rows}


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
        lots = Allocation.objects.for_organization(order.organization)
        # One conditional update decides which is the first, on a database without row locks too.
        first = bool(lots.filter(pk=allocation_id, delivered_at__isnull=True).update(delivered_at=now))
        allocation = lots.get(pk=allocation_id)
        connection = _entered(allocation, details, now)
        if connection is None:
            return allocation
        # How it is reached is neither in the trail, which viewers read too, nor in a mail or an event.
        record(order.organization, "allocation.delivered" if first else "allocation.connection_changed", at=now,
               actor=actor, via=Via.STAFF, object_id=order.pk, number=allocation.number)  # fmt: skip
        announce(order, Notice.Kind.DELIVERED, now=now, lot=allocation.number, correction=connection.corrections)
        tell_of_delivery(order, allocation, corrected=not first, now=now)
    return allocation


def _entered(allocation: Allocation, details: Details, now: datetime) -> Connection | None:
    """The lot's connection, as it is from now on; None when it was so already and nobody need look again."""
    connection = Connection.objects.for_organization(allocation.organization).filter(allocation=allocation).first()
    if connection is None:
        connection = Connection(organization=allocation.organization, allocation=allocation)
    elif all(getattr(connection, name) == value for name, value in asdict(details).items()):
        return None
    else:
        connection.corrections += 1
    for name, value in asdict(details).items():
        setattr(connection, name, value)
    connection.changed_at = now
    connection.save()
    return connection


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _HOST.fullmatch(host) is not None and not re.fullmatch(r"[0-9.]+", host)
    return "%" not in host
