"""Sending refreshes off when they are due, each as a task of its own, so that one slow list holds up no other."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from kombu.exceptions import OperationalError as BrokerDown

from catalog.refresh.turns import due_providers, make_due, queue

logger = logging.getLogger(__name__)

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
