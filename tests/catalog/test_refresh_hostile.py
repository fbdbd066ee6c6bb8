"""Every answer of a broken or hostile server, through a refresh: recorded, in time, and the last good rows stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from catalog.models import FeedQuestion, FeedRun, FeedState, Machine, Provider
from catalog.refresh import refresh_provider
from tests.catalog.feeding import START, Clock, as_stored, body, fed_provider, feed, row
from tests.hostile_answers import Hostile, hostile_answers, large_answers, slow_answers
from tests.stub_server import Internet, StubServer, internet, respond

pytestmark = pytest.mark.django_db

PUBLIC = "93.184.215.14"
SECRET = "s3cret-of-the-feed"
LATER = START + timedelta(minutes=1)


@pytest.fixture
def sink() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture
def stub() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, stub: StubServer) -> Iterator[Internet]:
    with internet(monkeypatch) as net:
        net.names = {"feed.example": [[PUBLIC]], "inside.example": [["127.0.0.1"]]}
        net.reach(PUBLIC, stub.port)
        yield net


@pytest.fixture
def farm(gpu: Any) -> Provider:
    """A provider with three machines of a good list."""
    provider = fed_provider(feed_url=f"http://feed.example/feed?key={SECRET}", feed_secret=SECRET)
    feed(provider, [row(number) for number in range(3)])
    return provider


def ends(provider: Provider, stub: StubServer, case: Hostile) -> FeedRun:
    """One refresh from that answer, which must leave everything as it was; its record."""
    stub.answers["/feed"] = stub.answers["/loop"] = case.answer
    before = as_stored()
    run = refresh_provider(provider.pk, clock=Clock(LATER))
    assert as_stored() == before
    provider.refresh_from_db()
    assert provider.refreshed_at == START
    # Still offered: the last good list is a minute old.
    assert Machine.objects.available(now=LATER).count() == 3
    if case.code is None:
        assert run.outcome in (FeedRun.Outcome.UNREADABLE, FeedRun.Outcome.EMPTY)
    else:
        assert (run.outcome, run.code) == (FeedRun.Outcome.FAILED, case.code)
    assert run.finished_at
    assert run.detail
    assert SECRET not in run.detail
    state = FeedState.objects.get(provider=provider)
    assert state.claim is None
    assert state.due_at is not None
    # A refusal of the stub says when to come back; who says nothing is left in peace for half an interval at least.
    waits = run.code.startswith("status_") and run.code != "status_301"
    assert state.due_at >= LATER + timedelta(seconds=120 if waits else 30)
    return run


@pytest.mark.parametrize("name", hostile_answers())
def test_a_hostile_answer_is_recorded_and_changes_nothing(
    name: str, farm: Provider, stub: StubServer, sink: StubServer, world: Internet, caplog: pytest.LogCaptureFixture
) -> None:
    ends(farm, stub, hostile_answers(sink.port)[name])
    assert sink.connections == 0
    assert SECRET not in caplog.text
    # And the next good list is applied as if nothing had been.
    stub.answers["/feed"] = respond(200, body([row(number) for number in range(4)]))
    run = refresh_provider(farm.pk, clock=Clock(LATER + timedelta(minutes=10)))
    assert (run.outcome, run.new, run.unchanged) == (FeedRun.Outcome.OK, 1, 3)
    assert stub.asked[-1].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.system
@pytest.mark.parametrize("name", [*large_answers(), "a byte a second"])
def test_a_body_without_end_is_recorded_and_changes_nothing(
    name: str, farm: Provider, stub: StubServer, world: Internet
) -> None:
    ends(farm, stub, (large_answers() | slow_answers())[name])


def test_a_name_that_turns_inside_between_two_refreshes_is_not_followed(
    farm: Provider, stub: StubServer, sink: StubServer, world: Internet
) -> None:
    world.names["feed.example"] = [[PUBLIC], ["127.0.0.1"]]
    Provider.objects.filter(pk=farm.pk).update(feed_url=f"http://feed.example:{sink.port}/feed")
    stub.answers["/feed"] = respond(200, body([row(number) for number in range(3)]))
    assert refresh_provider(farm.pk, clock=Clock(LATER)).outcome == FeedRun.Outcome.OK
    run = refresh_provider(farm.pk, clock=Clock(LATER + timedelta(minutes=2)))
    assert (run.outcome, run.code) == (FeedRun.Outcome.FAILED, "address_not_public")
    assert sink.connections == 0


def test_what_a_server_repeats_of_our_secrets_is_shown_nowhere(gpu: Any, stub: StubServer, world: Internet) -> None:
    secret, key = 'of/the"feed=1', "key-in-the-address-1"
    provider = fed_provider(feed_url=f"http://feed.example/feed?page=1&key={key}", feed_secret=secret)
    said = [json.dumps({"error": f"{words} is not known"}) for words in (secret, f"{'x' * 50}{secret}", f"?key={key}")]
    said += [said[0].replace("/", "\\/"), json.dumps({"error": f"/feed?secret={quote(secret, safe='')}"})]
    said.append(body([row(1, tier=secret, place=key, gpu=f"GPU {secret}"), row(2, gpu=secret), row(secret)]).decode())
    for number, text in enumerate(said, start=2):
        stub.answers["/feed"] = respond(200, text.encode())
        run = refresh_provider(provider.pk, clock=Clock(START + timedelta(minutes=number)))
        kept = [run.detail, run.rejections.values(), Machine.objects.values(), FeedQuestion.objects.values()]
        shown = " ".join(str(list(one) if not isinstance(one, str) else one) for one in kept)
        for part in (secret, secret[:6], quote(secret), key):
            assert part not in shown
        assert "(secret" in shown
