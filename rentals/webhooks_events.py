"""Writing down what endpoints are told, in the transaction of the act it tells of; the periodic task sends it.

The act waits for no broker and no receiver. Where nobody listens it costs one question.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, FilteredRelation, OuterRef, Q

from catalog.links import page_url
from rentals.documents import allocation_document, instant, order_document
from rentals.models import Allocation, Order, Organization, WebhookDelivery, WebhookEndpoint, WebhookEvent
from rentals.models.webhooks import EventKind
from rentals.one_by_one import alone
from rentals.tenants import Across, across_tenants, tenant

logger = logging.getLogger(__name__)

ENDS_SOON = timedelta(hours=24)
# One sweep's share, as of the mails.
AT_ONCE = 200

Data = dict[str, Any]


def tell_of_order(
    order: Order, kind: EventKind, *, now: datetime, allocations: Iterable[Allocation] | None = None
) -> None:
    """Write down an event of an order. `allocations` are its lots where the caller has them."""

    def data() -> Data:
        return {"order": _order(order, allocations, now)}

    publish(order.organization, kind, data, now=now, order=order)


def tell_of_allocation(order: Order, allocation: Allocation, kind: EventKind, *, now: datetime) -> None:
    """Write down that a lot was stopped or started."""

    def data() -> Data:
        return {"order": _order(order, None, now), "allocation": allocation_document(allocation, order, now)}

    publish(order.organization, kind, data, now=now, order=order)


def tell_of_delivery(order: Order, allocation: Allocation, *, corrected: bool, now: datetime) -> None:
    """Write down that a lot is handed over, or reached in another way; how is asked for, never sent."""

    def data() -> Data:
        told = {"order": _order(order, None, now), "allocation": allocation_document(allocation, order, now)}
        return {**told, "corrected": corrected, "api_url": page_url("api-order", order.pk)}

    publish(order.organization, EventKind.ALLOCATION_DELIVERED, data, now=now, order=order)


def publish(
    organization: Organization,
    kind: EventKind,
    data: Callable[[], Data],
    *,
    now: datetime,
    order: Order | None = None,
    html_url: str = "",
) -> WebhookEvent | None:
    """The event, promised to every endpoint that wants it; None, and nothing is computed, where none does."""
    wanting = [pk for pk, kinds in _listening(organization) if kind.value in kinds]
    if not wanting:
        return None
    return promise(organization, kind.value, data(), wanting, now=now, order=order, html_url=html_url)


def promise(
    organization: Organization,
    kind: str,
    data: Data,
    endpoints: Iterable[int],
    *,
    now: datetime,
    order: Order | None = None,
    html_url: str = "",
) -> WebhookEvent:
    """The event, to be sent to these endpoints."""
    event = WebhookEvent(id=uuid.uuid4(), organization=organization, kind=kind, order=order, created_at=now)
    envelope = {
        "id": str(event.id),
        "type": kind,
        "created_at": instant(now),
        "organization": organization.slug,
        "html_url": html_url or data["order"]["html_url"],
        "data": data,
    }
    event.body = json.dumps(envelope, ensure_ascii=False)
    event.save(force_insert=True)
    _promise_to(event, endpoints, now)
    return event


def _promise_to(event: WebhookEvent, endpoints: Iterable[int], now: datetime) -> None:
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            organization_id=event.organization_id, endpoint_id=pk, event=event, created_at=now, next_attempt_at=now
        )
        for pk in endpoints
    )  # fmt: skip


def tell_of_ends(now: datetime) -> int:
    """Tell of orders that end within a day, once each endpoint that wants to know; of how many orders.

    An endpoint that is added or turned on within that day is told then: the end is still to come.
    """
    kind = EventKind.ORDER_ENDING
    told = WebhookDelivery.objects.filter(
        event__order=OuterRef("pk"), event__kind=kind.value, endpoint=OuterRef("listening")
    )
    with across_tenants(Across.WEBHOOKS):
        enabled = WebhookEndpoint.objects.filter(enabled=True).values_list("pk", "events")
        wanting = [pk for pk, kinds in enabled if kind.value in kinds]
        soon = Order.objects.active(now).filter(ends_at__lte=now + ENDS_SOON)
        soon = soon.annotate(listening=F("organization__webhook_endpoints")).filter(listening__in=wanting)
        soon = soon.exclude(Exists(told)).order_by("ends_at", "id", "listening")
        found = list(soon.values_list("organization", "pk", "listening")[:AT_ONCE]) if wanting else []
    orders = [(order, [row[2] for row in rows]) for order, rows in groupby(found, key=lambda row: row[:2])]
    for (organization_id, order_id), endpoints in orders:
        with alone("The end of order %s cannot be told of.", order_id):
            _tell_of_end(organization_id, order_id, endpoints, now)
    return len(orders)


def _tell_of_end(organization_id: int, order_id: UUID, endpoints: list[int], now: datetime) -> None:
    kind = EventKind.ORDER_ENDING
    try:
        with tenant(organization_id), transaction.atomic():
            order = Order.objects.select_related("organization").get(pk=order_id)
            event = WebhookEvent.objects.filter(order=order, kind=kind.value).first()
            if event is not None:
                _promise_to(event, endpoints, now)
            else:
                data = {"order": _order(order, None, now)}
                promise(order.organization, kind.value, data, endpoints, now=now, order=order)
    except IntegrityError:
        # Another sweep was here at the same moment, or the endpoint is gone: the next sweep sees what is left to tell.
        logger.info("The end of order %s is told by another sweep.", order_id)


def _listening(organization: Organization) -> list[tuple[int, list[str]]]:
    """The endpoints that are turned on, and what each wants.

    The API knows its organization by its number alone, and the answer to an order needs the name in addresses: one
    question reads both.
    """
    live = FilteredRelation("webhook_endpoints", condition=Q(webhook_endpoints__enabled=True))
    rows = Organization.objects.filter(pk=organization.pk).annotate(live=live).order_by("live__pk")
    found = list(rows.values_list("slug", "live__pk", "live__events"))
    if found and "slug" in organization.get_deferred_fields():
        organization.slug = found[0][0]
    return [(pk, kinds) for _, pk, kinds in found if pk is not None]


def _order(order: Order, allocations: Iterable[Allocation] | None, now: datetime) -> Data:
    if allocations is None:
        allocations = Allocation.objects.for_organization(order.organization).filter(order=order).order_by("number")
    return order_document(order, allocations, now=now)
