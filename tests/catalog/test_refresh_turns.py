"""Never two refreshes of one provider at once, and never none for long: leases, dispatching, tasks."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerDown
from pytest_httpserver import HTTPServer

from catalog import tasks
from catalog.models import FeedRun, FeedState, Machine, Provider
from catalog.refresh import Busy, refresh_provider
from catalog.refresh.dispatching import send_due
from catalog.refresh.forgetting import forget_old_runs
from catalog.refresh.turns import LEASE, TurnLost, due_providers, take
from tests.catalog.feeding import START, Clock, body, counts, fed_provider, feed, machine_of, row
from tests.factories import make_provider

pytestmark = pytest.mark.django_db

Outcome = FeedRun.Outcome
SECOND = timedelta(seconds=1)


def address(server: HTTPServer, path: str) -> str:
    """The server by its number: a name of this machine is no address of a feed."""
    return f"http://127.0.0.1:{server.port}{path}"


@pytest.fixture
def aspen(gpu: Any) -> Provider:
    return fed_provider()


def test_while_one_run_has_the_turn_another_is_told_until_when(aspen: Provider) -> None:
    turn = take(aspen, START)
    with pytest.raises(Busy, match="12:01:00 UTC"):
        feed(aspen, [row()], Clock(START + LEASE - SECOND))
    turn.renew(START + LEASE - SECOND)
    with pytest.raises(Busy, match="12:01:59 UTC"):
        feed(aspen, [row()], Clock(START + LEASE))
    assert not FeedRun.objects.exists()
    assert not Machine.objects.exists()


def test_a_turn_is_given_back_however_the_run_ends(aspen: Provider) -> None:
    for content in (body([row()]), b"", body([])):
        refresh_provider(aspen.pk, clock=Clock(), body=content)
        assert FeedState.objects.get().claim is None


def test_a_worker_that_died_is_replaced_within_two_intervals_and_its_run_is_closed(aspen: Provider) -> None:
    feed(aspen, [row()])
    take(aspen, START)
    dead = FeedRun.objects.create(provider=aspen, started_at=START)
    assert 2 * timedelta(seconds=30) >= LEASE
    run = feed(aspen, [row()], Clock(START + LEASE))
    assert run.outcome == Outcome.OK
    dead.refresh_from_db()
    assert (dead.outcome, dead.code, dead.finished_at) == (Outcome.INTERRUPTED, "interrupted", START + LEASE)


def test_a_worker_that_was_too_slow_writes_nothing_more(aspen: Provider) -> None:
    feed(aspen, [row(number) for number in range(4)])
    clock = Clock(START + timedelta(minutes=1))

    def sleep_and_be_overtaken() -> None:
        later = Clock(clock.forward(seconds=LEASE.seconds))
        feed(aspen, [row(number, hourly_usd="0.60") for number in range(4)], later)

    clock.meanwhile = sleep_and_be_overtaken
    with pytest.raises(TurnLost):
        feed(aspen, [row(number, hourly_usd="0.50") for number in range(4)], clock)
    assert {str(machine.hourly_usd) for machine in Machine.objects.all()} == {"0.600000"}
    assert [run.outcome for run in FeedRun.objects.order_by("pk")] == ["ok", "interrupted", "ok"]
    assert FeedState.objects.get().claim is None


def test_a_run_that_takes_too_long_stops_and_the_next_does_the_rest(aspen: Provider) -> None:
    clock = Clock(START)

    class Slow(Clock):
        def __call__(self) -> Any:
            # Each look at the clock costs half of a lease, so that a long list needs longer than a run may take.
            return self.forward(seconds=LEASE.seconds / 2)

    rows = [row(number) for number in range(2600)]
    slow = Slow(START)
    run = feed(aspen, rows, slow)
    assert (run.outcome, run.code) == (Outcome.UNFINISHED, "time_limit")
    assert 0 < run.new < len(rows)
    aspen.refresh_from_db()
    assert aspen.refreshed_at is None
    clock.now = slow.now
    run = feed(aspen, rows, clock)
    assert run.outcome == Outcome.OK
    assert run.new + run.unchanged == len(rows) == Machine.objects.count()


def test_who_is_due(gpu: Any) -> None:
    never, waits, runs, crashed = (fed_provider(name) for name in ("never", "waits", "runs", "crashed"))
    make_provider("declared")
    feed(waits, [row()])
    take(runs, START)
    take(crashed, START - LEASE)
    assert due_providers(START) == [never, crashed]
    assert due_providers(START + timedelta(seconds=61)) == [never, runs, crashed, waits]


def test_each_due_provider_is_sent_once_per_interval_by_however_many_schedulers(gpu: Any) -> None:
    providers = [fed_provider("a"), fed_provider("b", feed_interval_seconds=120)]
    sent: list[tuple[int, int]] = []
    for seconds in (0, 0, 5, 10, 55):
        send_due(lambda *task: sent.append(task), START + seconds * SECOND)
    assert sent == [(providers[0].pk, 60), (providers[1].pk, 120)]
    send_due(lambda *task: sent.append(task), START + 60 * SECOND)
    assert sent[2:] == [(providers[0].pk, 60)]


def test_what_could_not_be_sent_is_sent_when_the_broker_is_back(gpu: Any) -> None:
    fed_provider("a")
    fed_provider("b")

    def down(*task: int) -> None:
        raise BrokerDown("Connection refused")

    assert send_due(down, START) == 0
    sent: list[int] = []
    assert send_due(lambda provider_id, seconds: sent.append(provider_id), START + SECOND) == 2
    assert len(set(sent)) == 2


def test_the_periodic_task_refreshes_what_is_due_and_one_broken_list_stops_no_other(
    gpu: Any, httpserver: HTTPServer, settings: Any
) -> None:
    settings.OUTGOING_ALLOWED = [f"127.0.0.1:{httpserver.port}"]
    httpserver.expect_request("/good").respond_with_data(body([row(1), row(2)]))
    httpserver.expect_request("/bad").respond_with_data("no", status=503, headers={"Retry-After": "1800"})
    bad = fed_provider("a-bad", feed_url=address(httpserver, "/bad"))
    fed_provider("b-lost", feed_url="http://127.0.0.1:9/")
    good = fed_provider("c-good", feed_url=address(httpserver, "/good"), feed_secret="sesame-open")
    tasks.refresh_due_providers.apply(throw=True)
    outcomes = {run.provider.slug: (run.outcome, run.code) for run in FeedRun.objects.select_related("provider")}
    assert outcomes["a-bad"] == ("failed", "status_503")
    assert outcomes["b-lost"][0] == "failed"
    assert outcomes["c-good"] == ("ok", "")
    assert Machine.objects.filter(provider=good, online=True).count() == 2
    assert bad.feed_state.due_at >= timezone.now() + timedelta(minutes=29)
    # The secret went to the feed alone.
    requests = {request.path: request.headers.get("Authorization") for request, _ in httpserver.log}
    assert requests == {"/good": "Bearer sesame-open", "/bad": None}
    assert "sesame" not in str(list(FeedRun.objects.values())) + str(list(Provider.history.values()))


def test_the_network_brings_what_changed_and_counts_the_bytes(gpu: Any, httpserver: HTTPServer, settings: Any) -> None:
    settings.OUTGOING_ALLOWED = [f"127.0.0.1:{httpserver.port}"]
    provider = fed_provider(feed_url=address(httpserver, "/"))
    httpserver.expect_oneshot_request("/").respond_with_data(body([row(1), row(2)]))
    httpserver.expect_oneshot_request("/").respond_with_data(body([row(1, hourly_usd="0.50")]))
    run = refresh_provider(provider.pk)
    assert (counts(run), run.read_bytes) == ({"new": 2}, len(body([row(1), row(2)])))
    assert run.wire_bytes > run.read_bytes
    assert counts(refresh_provider(provider.pk)) == {"changed": 1, "gone": 1}
    assert str(machine_of(1).hourly_usd) == "0.500000"


def test_an_address_inside_is_refused_and_changes_nothing(gpu: Any, httpserver: HTTPServer) -> None:
    provider = fed_provider(feed_url=address(httpserver, "/"))
    feed(provider, [row(1)])
    run = refresh_provider(provider.pk)
    assert run.outcome == Outcome.FAILED
    assert machine_of(1).online
    assert not httpserver.log


def test_a_busy_provider_is_no_failure_of_the_task(aspen: Provider) -> None:
    take(aspen, timezone.now())
    assert tasks.refresh_provider.apply((aspen.pk,), throw=True).result == "busy"


def test_records_of_runs_are_forgotten_after_two_weeks_but_the_last_one_of_each_provider(gpu: Any) -> None:
    aspen, birch = fed_provider("aspen"), fed_provider("birch")
    clock = Clock()
    for provider in (aspen, birch, aspen):
        feed(provider, [row()], clock)
        clock.forward(hours=1)
    assert forget_old_runs(START + timedelta(days=14)) == 0
    assert forget_old_runs(START + timedelta(days=15)) == 1
    assert sorted(run.provider.slug for run in FeedRun.objects.all()) == ["aspen", "birch"]
    assert forget_old_runs(START + timedelta(days=15)) == 0
