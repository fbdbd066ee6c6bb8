"""What of old lists is forgotten, and when: their runs, questions that no list asks any more, machines that went."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery

from catalog.models import FeedAbsence, FeedQuestion, FeedRun, Machine
from catalog.querysets import MachineQuerySet

RUNS_KEPT = timedelta(days=14)
# A provider that was away for a month and comes back has its machines and its questions anew.
QUESTIONS_KEPT = MACHINES_KEPT = timedelta(days=30)
# In the history of a machine, where no person made the change.
LIST_SAYS_SO = "The provider's list says so."


def forget_old_runs(now: datetime) -> int:
    """Delete records of runs that are two weeks old, except each provider's last; how many went."""
    last = FeedRun.objects.filter(provider=OuterRef("provider")).order_by("-started_at", "-id")
    old = FeedRun.objects.filter(started_at__lt=now - RUNS_KEPT).exclude(pk=Subquery(last.values("pk")[:1]))
    # The count of runs alone: what went with them does not matter.
    return old.delete()[1].get("catalog.FeedRun", 0)


def forget_unasked_questions(now: datetime) -> int:
    """Delete open questions that no list has asked for a month; how many went. Answers stay, with their reasons."""
    old = FeedQuestion.objects.filter(resolved_at=None, count=0, last_seen_at__lt=now - QUESTIONS_KEPT)
    return old.delete()[0]


def gone_for_good(now: datetime) -> MachineQuerySet:
    """Machines of a feed whose list has been without them for a month, and of which no lot is under rent.

    Whether they were ever ordered is not known here. One that staff took off the pages stays, or its list would have it
    back on them by leaving it out for a month.
    """
    return Machine.objects.filter(
        gone_since__lt=now - MACHINES_KEPT, online=False, listed=True, free_lots=F("lots"), external_id__isnull=False
    ).exclude(provider__feed_url="")


def delete_machines(ids: Collection[int]) -> None:
    """Delete machines that nothing else refers to.

    A deletion by the row would leave a row of history of each: nobody decided anything about them. What people decided
    about them before stays.
    """
    FeedAbsence.objects.filter(machine__in=ids).delete()
    _said_by_lists(ids).delete()
    gone = Machine.objects.filter(pk__in=ids)
    gone._raw_delete(gone.db)


def forget_earlier_today(ids: Collection[int], now: datetime) -> None:
    """Leave out of the machines' history what lists said earlier in the day: of each day it has the last.

    A list may make another machine of each of its rows every minute.
    """
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    _said_by_lists(ids).filter(history_date__gte=today).delete()


def _said_by_lists(ids: Collection[int]) -> QuerySet[Any]:
    return Machine.history.filter(id__in=ids, history_user=None, history_change_reason=LIST_SAYS_SO)
