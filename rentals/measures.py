"""How many orders were placed, how many refused, and what became of messages to webhooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from catalog.measures import REGISTRY
from catalog.models import Tier
from rentals.errors import RentalError
from rentals.models import WebhookDelivery
from rentals.tenants import Across, across_tenants

if TYPE_CHECKING:
    from rentals.ordering import Placement

ORDERS = Counter("berth_orders", "Orders placed, by tier.", ["tier"], registry=REGISTRY)
REFUSALS = Counter("berth_refusals", "Orders refused, by the code of the refusal.", ["code"], registry=REGISTRY)
REPLAYS = Counter("berth_replays", "Answers given again to a request that was repeated.", registry=REGISTRY)

# There from the first moment on: a rate of a series that appears with its first event misses that event.
for _tier in Tier.values:
    ORDERS.labels(_tier)

P = ParamSpec("P")


def counted(place: Callable[P, Placement]) -> Callable[P, Placement]:
    """Counts what came of it once it is committed; a refusal stays the same refusal."""

    @wraps(place)
    def placed(*args: P.args, **kwargs: P.kwargs) -> Placement:
        try:
            placement = place(*args, **kwargs)
        except RentalError as error:
            REFUSALS.labels(error.code).inc()
            raise
        if placement.replayed:
            REPLAYS.inc()
        else:
            ORDERS.labels(placement.order.machine_facts["tier"]).inc()
        return placement

    return placed


class WebhookMeasures(Collector):
    """What became of the messages to webhooks, and how long the oldest waits. Read when asked: workers send them."""

    def collect(self) -> Iterator[Metric]:
        now, states = timezone.now(), WebhookDelivery.State
        recent = WebhookDelivery.objects.filter(event__created_at__gt=now - timedelta(days=1))
        pending = WebhookDelivery.objects.filter(state=states.PENDING)
        # What a sweep would take: neither an attempt's turn nor an endpoint that rests is waited for.
        due = pending.filter(next_attempt_at__lte=now, endpoint__enabled=True, endpoint__next_send_at__lte=now)
        with across_tenants(Across.WEBHOOKS):
            found = dict(recent.order_by().values_list("state").annotate(Count("pk")))
            oldest = pending.aggregate(at=Min("created_at"))["at"]
            overdue = due.aggregate(at=Min("next_attempt_at"))["at"]
        deliveries = GaugeMetricFamily(
            "berth_webhook_deliveries", "Messages of the last 24 hours, by what became of them.", labels=["state"]
        )
        for state in states.values:
            deliveries.add_metric([state], found.get(state, 0))
        yield deliveries
        yield GaugeMetricFamily(
            "berth_webhook_oldest_waiting_seconds", "Age of the oldest message that waits.", _seconds(oldest, now)
        )
        yield GaugeMetricFamily(
            "berth_webhook_overdue_seconds",
            "How long a message waits that could have been sent; 0 when there is none.",
            _seconds(overdue, now),
        )


def _seconds(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)
