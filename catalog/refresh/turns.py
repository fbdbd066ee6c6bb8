"""Whose turn it is: never two refreshes of one provider at once, however many workers and schedulers there are.

A turn is a lease in the database that its holder renews with every step. A worker that dies gives it back by not
renewing it, and one that was too slow finds at its next write that the turn is another's.
"""

import random
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q

from catalog.models import FeedRun, FeedState, Provider

# Longer than any single step (a fetch has 30 s); and two of the shortest intervals, so a dead worker costs no more.
LEASE = timedelta(seconds=60)
LONGEST_BACK_OFF = timedelta(minutes=15)


class Busy(Exception):
    """Another refresh of this provider has the turn."""

    code = "busy"

    def __init__(self, until: datetime | None) -> None:
        when = f" until {until:%H:%M:%S} UTC at the latest" if until else ""
        super().__init__(f"Another refresh of this provider is running{when}. Try again when it is over.")


class TurnLost(Exception):
    """The lease ran out and somebody else has the turn: whatever comes next is not ours to write."""


@dataclass(frozen=True)
class Turn:
    provider_id: int
    claim: UUID

    def renew(self, now: datetime) -> None:
        """Keep the turn. Inside a transaction nobody else can take it before the commit.

        Raises: TurnLost.
        """
        mine = FeedState.objects.filter(provider_id=self.provider_id, claim=self.claim)
        if not mine.update(claimed_until=now + LEASE):
            raise TurnLost


def _free(now: datetime) -> Q:
    return Q(claim__isnull=True) | Q(claimed_until__lte=now)


def _due(now: datetime) -> Q:
    return Q(due_at__isnull=True) | Q(due_at__lte=now)


def due_providers(now: datetime) -> list[Provider]:
    """Providers whose list is to be fetched now, the longest waiting first."""
    waiting = FeedState.objects.filter(~(_free(now) & _due(now))).values("provider")
    return list(
        Provider.objects.exclude(feed_url="")
        .exclude(pk__in=waiting)
        .order_by(F("feed_state__due_at").asc(nulls_first=True), "pk")
    )


def queue(provider: Provider, now: datetime) -> bool:
    """Whether this call is the one to send the provider's refresh off; the next may do so one interval later.

    A task that gets lost on the way is therefore sent again, and two schedulers send it once.
    """
    FeedState.objects.get_or_create(provider=provider)
    mine = FeedState.objects.filter(_free(now), _due(now), provider=provider)
    return bool(mine.update(due_at=now + timedelta(seconds=provider.feed_interval_seconds)))


def make_due(provider: Provider, now: datetime) -> None:
    """The provider's list is fetched at the next opportunity."""
    FeedState.objects.update_or_create(provider=provider, defaults={"due_at": now})


def take(provider: Provider, now: datetime) -> Turn:
    """The turn of this provider; a run that died with it is closed.

    Raises: Busy.
    """
    FeedState.objects.get_or_create(provider=provider)
    turn = Turn(provider.pk, uuid.uuid4())
    mine = FeedState.objects.filter(_free(now), provider=provider)
    if not mine.update(claim=turn.claim, claimed_until=now + LEASE):
        raise Busy(FeedState.objects.values_list("claimed_until", flat=True).get(provider=provider))
    for run in FeedRun.objects.filter(provider=provider, outcome=FeedRun.Outcome.RUNNING):
        run.finished_at = max(now, run.started_at)
        run.outcome, run.code = FeedRun.Outcome.INTERRUPTED, "interrupted"
        run.detail = "The process that ran it ended. What it had applied stays; the next run does the rest."
        run.save(update_fields=["finished_at", "outcome", "code", "detail"])
    return turn


def give_back(turn: Turn, *, due_at: datetime, failures: int, offers: int | None = None) -> None:
    """End the turn. `offers` is the length of a list that was applied: it takes what was accepted before with it.

    Raises: TurnLost.
    """
    applied = {} if offers is None else {"offers": offers, "accepted_until": None}
    mine = FeedState.objects.filter(provider_id=turn.provider_id, claim=turn.claim)
    if not mine.update(claim=None, claimed_until=None, due_at=due_at, failures=failures, **applied):
        raise TurnLost


def next_due(now: datetime, interval: timedelta, failures: int, retry_after: int | None) -> datetime:
    """When to ask again: after the interval, doubled with each failure in a row, and never before the server says.

    A little early by chance, so that the lists of many providers do not fall due together for ever.
    """
    wait = min(interval * 2 ** min(failures, 10), max(LONGEST_BACK_OFF, interval))
    wait *= random.uniform(0.9, 1.0)
    if retry_after is not None:
        # Never earlier than the server asked, and not all at the same moment.
        wait = max(wait, timedelta(seconds=retry_after) * random.uniform(1.0, 1.1))
    return now + wait
