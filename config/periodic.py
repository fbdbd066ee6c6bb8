"""When each periodic task last ended well: kept in the cache, which web and worker share."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

from catalog.freshness import ago

logger = logging.getLogger(__name__)

# What people wait for; the hourly housekeeping is nobody's but the operator's, who sees it in the metrics.
WORDS = {
    "refresh-due-providers": "Refreshing the providers' lists",
    "end-due-orders": "Ending terms that are over",
    "announce-ends": "Announcing terms that end soon",
    "send-notices": "Sending mails",
    "send-webhooks": "Sending webhooks",
    "tell-of-ends": "Telling webhooks of terms that end soon",
    "check-saved-searches": "Looking for saved searches",
}
KEPT_SECONDS = 7 * 24 * 60 * 60
# A run that is late by this much is nobody's worry yet: a worker may be busy, or just restarted.
SLACK = timedelta(minutes=1)


@dataclass(frozen=True)
class PeriodicWork:
    """One line of the schedule. `ran_at` is None when nothing is known of a run."""

    name: str
    every: timedelta
    ran_at: datetime | None
    now: datetime

    @property
    def label(self) -> str:
        return WORDS.get(self.name, self.name)

    @property
    def every_text(self) -> str:
        seconds = int(self.every.total_seconds())
        return f"{seconds} s" if seconds < 120 or seconds % 60 else f"{seconds // 60} min"

    @property
    def text(self) -> str:
        return "Not seen yet" if self.age is None else ago(self.age)

    @property
    def age(self) -> timedelta | None:
        return None if self.ran_at is None else max(self.now - self.ran_at, timedelta(0))

    @property
    def on_time(self) -> bool:
        return self.age is not None and self.age <= 2 * self.every + SLACK


def periodic_work(now: datetime) -> list[PeriodicWork] | None:
    """Every line of the schedule; None when the cache is away."""
    schedule = settings.CELERY_BEAT_SCHEDULE
    try:
        runs = cache.get_many([_key(entry["task"]) for entry in schedule.values()])
    except (RedisError, OSError):
        return None
    return [
        PeriodicWork(name, entry["schedule"], _time(runs.get(_key(entry["task"]))), now)
        for name, entry in schedule.items()
        if isinstance(entry["schedule"], timedelta)
    ]


def remember(task: str, now: datetime) -> None:
    """Write down that a task ended well; of the schedule's alone."""
    if task in {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}:
        try:
            cache.set(_key(task), now.isoformat(), timeout=KEPT_SECONDS)
        except (RedisError, OSError):
            logger.warning("The run of %s is not written down: the cache is away.", task)


def _key(task: str) -> str:
    return f"periodic:{task}"


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
