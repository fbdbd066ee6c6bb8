"""/metrics for Prometheus: counters of all processes of this host, and what the database knows."""

from __future__ import annotations

import os
from collections.abc import Iterator

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from catalog.measures import REGISTRY, FeedMeasures
from config.periodic import periodic_work
from rentals.measures import WebhookMeasures


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Whoever has not METRICS_TOKEN is told of no such page; without one nobody has it."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if not settings.METRICS_TOKEN or scheme.lower() != "bearer":
        raise Http404
    if not constant_time_compare(token.strip(), settings.METRICS_TOKEN):
        raise Http404
    return HttpResponse(_counters() + generate_latest(_read_now()), content_type=CONTENT_TYPE_LATEST)


def _counters() -> bytes:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    everybody = CollectorRegistry()
    MultiProcessCollector(everybody)
    return generate_latest(everybody)


def _read_now() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(FeedMeasures())
    registry.register(PeriodicMeasures())
    registry.register(WebhookMeasures())
    return registry


class PeriodicMeasures(Collector):
    """How long ago each periodic task ended well; a task that nothing is known of is left out."""

    def collect(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "berth_periodic_age_seconds", "Since the periodic task last ended well.", labels=["task"]
        )
        for work in periodic_work(timezone.now()) or ():
            if work.age is not None:
                age.add_metric([work.name], work.age.total_seconds())
        yield age
