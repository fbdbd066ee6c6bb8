"""Sending refreshes off when they are due, each as a task of its own, so that one slow list holds up no other."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Subquery
from kombu.exceptions import OperationalError as BrokerDown

from catalog.models import FeedRun
from catalog.refresh.turns import due_providers, make_due, queue

logger = logging.getLogger(__name__)

RUNS_KEPT = timedelta(days=14)

# Takes the provider's id and the seconds after which nobody needs the task any more.
Send = Callable[[int, int], Any]


def send_due(send: Send, now: datetime) -> int:
    """Send each due provider's refresh once, whoever else is sending; how many this call sent."""
    sent = 0
    for provider in due_providers(now):
        if not queue(provider, now):
            continue
        try:
            send(provider.pk, provider.feed_interval_seconds)
        except BrokerDown:
            # Nothing is lost: it is still due, and sent when the broker is back.
            make_due(provider, now)
            logger.warning("The broker does not answer; refreshes wait until it does.")
            return sent
        sent += 1
    return sent


def forget_old_runs(now: datetime) -> int:
    """Delete records of runs that are two weeks old, except each provider's last; how many went."""
    last = FeedRun.objects.filter(provider=OuterRef("provider")).order_by("-started_at", "-id")
    old = FeedRun.objects.filter(started_at__lt=now - RUNS_KEPT).exclude(pk=Subquery(last.values("pk")[:1]))
    # The count of runs alone: what went with them does not matter.
    return old.delete()[1].get("catalog.FeedRun", 0)
