"""One refresh from the fetch to its record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from catalog.feeds import ADAPTERS, Adapter, Feed, Rejection, Unreadable
from catalog.models import FeedRejection, FeedRun, FeedState, Provider
from catalog.outgoing import OutgoingError
from catalog.questions import ask, close_understood
from catalog.refresh import sources, turns
from catalog.refresh.applying import Applied, Applying, Clock, TimeIsUp
from catalog.refresh.comparing import Differences, compare
from catalog.refresh.reviewing import is_accepted, judge_ids, judge_length, judge_prices
from catalog.refresh.rows import resolve
from catalog.refresh.withholding import free_lots_of

Outcome = FeedRun.Outcome

# From the first byte asked to the last row written; a first list of 100,000 offers takes a fraction of it.
LONGEST_RUN = timedelta(minutes=4)
# The rows of a list that is wrong throughout say the same thing: its first thousand tell what.
MOST_REJECTIONS = 1000
# A rejection that still stands is in the newest run again.
REJECTIONS_KEPT = timedelta(hours=1)
# Nothing came back or nothing could be read: the server gets more rest each time.
_FAILURES = frozenset({Outcome.FAILED, Outcome.UNREADABLE})


class NoFeed(Exception):
    """The provider has no list to refresh from."""

    code = "no_feed"

    def __init__(self, provider: Provider) -> None:
        super().__init__(f"{provider} has no feed: give it a format and an address first.")


class _Ended(Exception):
    """The run ends here, without applying its list."""

    def __init__(self, outcome: FeedRun.Outcome, code: str, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.outcome, self.code, self.detail, self.retry_after = outcome, code, detail, retry_after


@dataclass
class _Run:
    """A run in hand: what it has found out so far, so that its record tells it however the run ends."""

    provider: Provider
    turn: turns.Turn
    record: FeedRun
    clock: Clock
    deadline: datetime
    rejections: list[Rejection] = field(default_factory=list)
    applied: Applied = field(default_factory=Applied)
    fetched_at: datetime | None = None
    free_before: Mapping[int, int] = field(default_factory=dict)

    def step(self) -> datetime:
        """A new step begins: the turn is renewed."""
        now = self.clock()
        self.turn.renew(now)
        return now


def refresh_provider(
    provider_id: int, *, clock: Callable[[], datetime] = timezone.now, body: bytes | None = None
) -> FeedRun:
    """Refresh the provider's machines from its feed, or from a `body` that is already here; the record of the run.

    Raises: NoFeed, Busy; TurnLost when the run was so slow that another began, and then this one wrote no more.
    """
    provider = Provider.objects.get(pk=provider_id)
    if not provider.has_feed:
        raise NoFeed(provider)
    started_at = clock()
    turn = turns.take(provider, started_at)
    record = FeedRun.objects.create(provider=provider, started_at=started_at)
    run = _Run(provider, turn, record, clock, started_at + LONGEST_RUN)
    try:
        ended = _carry_out(run, body)
    except turns.TurnLost:
        _note_lost(record, clock())
        raise
    except Exception:
        # A defect of ours: the list is asked for again more and more seldom, and the log says what happened.
        detail = "Something went wrong inside Berth; the log of the worker says what. The last good rows stay."
        _finish(run, _Ended(Outcome.FAILED, "internal_error", detail))
        raise
    _finish(run, ended)
    return record


def _carry_out(run: _Run, body: bytes | None) -> _Ended:
    try:
        # Before the list is asked for: of orders that come from here on it may know nothing.
        run.free_before = free_lots_of(run.provider)
        feed = _read(run, _adapter(run.provider), body)
        differences = _differences(run, feed)
        applying = Applying(run.provider, run.turn, run.clock, run.deadline, run.applied)
        run.step()
        applying.apply(differences)
    except _Ended as ended:
        return ended
    except TimeIsUp:
        detail = (
            f"It took longer than {LONGEST_RUN.seconds // 60} minutes. What was applied stays; the next run goes on."
        )
        return _Ended(Outcome.UNFINISHED, "time_limit", detail)
    if feed.truncated:
        detail = "The answer is as long as was asked for, so there may be more; what it does not have is not offered."
        return _Ended(Outcome.OK, "truncated", detail)
    return _Ended(Outcome.OK, "", "")


def _adapter(provider: Provider) -> Adapter:
    adapter = ADAPTERS.get(provider.feed_format)
    if adapter is None:
        detail = f"“{provider.feed_format}” is no format that Berth reads. Choose one of {', '.join(ADAPTERS)}."
        raise _Ended(Outcome.UNREADABLE, "unknown_format", detail)
    return adapter


def _read(run: _Run, adapter: Adapter, content: bytes | None) -> Feed:
    if content is None:
        try:
            body = sources.fetch(run.provider, adapter, run.clock())
        except OutgoingError as error:
            raise _Ended(Outcome.FAILED, error.code, error.detail, retry_after=error.retry_after) from error
    else:
        body = sources.Body(content, len(content))
    run.fetched_at = run.step()
    run.record.wire_bytes, run.record.read_bytes = body.wire_bytes, len(body.content)
    try:
        feed = adapter.read(body.content, now=run.fetched_at)
    except Unreadable as error:
        raise _Ended(Outcome.UNREADABLE, error.code, error.detail) from error
    run.record.seen, run.record.merged = feed.seen, len(feed.merged)
    run.rejections.extend(feed.rejections)
    return feed


def _differences(run: _Run, feed: Feed) -> Differences:
    now = run.step()
    resolved = resolve(feed)
    run.rejections = resolved.rejections
    run.record.offers = len(resolved.rows)
    if feed.seen:
        ask(run.provider, resolved.questions, resolved.examples, now=now)
    close_understood(now)
    if not resolved.rows:
        raise _Ended(Outcome.EMPTY, *_why_empty(feed))
    accepted = is_accepted(run.provider, now)
    before = FeedState.objects.values_list("offers", flat=True).get(provider=run.provider)
    if not accepted and (verdict := judge_length(len(resolved.rows), before)):
        raise _Ended(*verdict)
    run.step()
    found = compare(run.provider, resolved.rows, run.rejections, run.free_before)
    run.record.unchanged, run.record.rented = found.unchanged, found.rented
    if not accepted and (verdict := judge_prices(found) or judge_ids(found, len(resolved.rows))):
        raise _Ended(*verdict)
    return found


def _why_empty(feed: Feed) -> tuple[str, str]:
    if feed.seen:
        return "all_rejected", f"None of its {feed.seen:,} rows can be listed, so the last good rows stay."
    return "empty", "The list has no rows. The last good rows stay until they are no longer fresh."


def _finish(run: _Run, ended: _Ended) -> None:
    record, applied = run.record, run.applied
    now = max(run.clock(), record.started_at)
    rejections = sorted([*run.rejections, *applied.rejections], key=lambda rejection: rejection.row)
    record.finished_at, record.outcome = now, ended.outcome
    record.code, record.detail = ended.code, ended.detail
    record.new, record.changed, record.gone = applied.new, applied.changed, applied.gone
    record.skipped, record.rejected = applied.skipped, len(rejections)
    record.rented += applied.rented
    state = FeedState.objects.get(provider=run.provider)
    failures = state.failures + 1 if ended.outcome in _FAILURES else 0
    good = ended.outcome == Outcome.OK
    interval = timedelta(seconds=run.provider.feed_interval_seconds)
    due_at = turns.next_due(now, interval, failures, ended.retry_after)
    try:
        with transaction.atomic():
            turns.give_back(run.turn, due_at=due_at, failures=failures, offers=record.offers if good else None)
            record.save()
            if good:
                Provider.objects.filter(pk=run.provider.pk).update(refreshed_at=run.fetched_at)
            _keep_rejections(record, rejections, now)
    except turns.TurnLost:
        _note_lost(record, now)
        raise


def _keep_rejections(record: FeedRun, rejections: list[Rejection], now: datetime) -> None:
    FeedRejection.objects.bulk_create(
        FeedRejection(
            run=record,
            row=rejection.row,
            external_id=rejection.external_id and rejection.external_id[:120],
            code=rejection.code[:60],
            detail=rejection.detail[:500],
        )
        for rejection in rejections[:MOST_REJECTIONS]
    )
    old = FeedRun.objects.filter(provider=record.provider_id, started_at__lt=now - REJECTIONS_KEPT)
    # While nothing comes back, what was wrong with the last list that did is still to be mended.
    last = FeedRun.objects.that_read_a_list().filter(provider=record.provider_id).first()
    kept = {record.pk, last.pk if last else record.pk}
    FeedRejection.objects.filter(run__in=old.exclude(pk__in=kept)).delete()


def _note_lost(record: FeedRun, now: datetime) -> None:
    """Whoever has the turn now may have closed this record already; if not, it says that it came to nothing."""
    detail = "It was so slow that another run began. What it had applied stays; the other run does the rest."
    FeedRun.objects.filter(pk=record.pk, outcome=Outcome.RUNNING).update(
        finished_at=max(now, record.started_at), outcome=Outcome.INTERRUPTED, code="turn_lost", detail=detail
    )
