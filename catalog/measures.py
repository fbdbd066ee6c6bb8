"""What is counted for whoever watches Berth. Labels are few and ours: never a tenant, a user, an address or a text.

Counters live in the processes that serve, and add up over them; what the database knows is read when it is asked for,
so that the workers' doings show wherever they ran.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from catalog.freshness import freshness
from catalog.models import FeedRun

# Of our own counters alone: a process's memory and garbage are not what is asked for here.
REGISTRY = CollectorRegistry(auto_describe=False)


class FeedMeasures(Collector):
    """Each provider's list: its age, and how its last refresh ended. Providers are as many as the operator enters."""

    def collect(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "berth_refresh_age_seconds", "Age of the provider's last good list.", labels=["provider"]
        )
        outcome = GaugeMetricFamily(
            "berth_refresh_last_outcome",
            "1 for the outcome of the provider's last refresh, 0 for the others.",
            labels=["provider", "outcome"],
        )
        for each in freshness(timezone.now()):
            if not each.has_feed:
                continue
            slug = each.provider.slug
            age.add_metric([slug], float("inf") if each.age is None else each.age.total_seconds())
            for known in FeedRun.Outcome:
                if known != FeedRun.Outcome.RUNNING:
                    outcome.add_metric([slug, known.value], float(each.outcome == known))
        yield age
        yield outcome
