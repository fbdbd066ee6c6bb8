"""Lists that must not be applied: not fetched, not readable, empty, shrunken, with prices that jumped."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from catalog.models import FeedQuestion, FeedRejection, FeedRun, FeedState, Machine, Provider
from catalog.refresh import NothingHeld, accept_held, refresh_provider
from catalog.refresh.running import NoFeed
from catalog.refresh.turns import next_due
from tests.catalog.feeding import START, Clock, as_stored, body, counts, fed_provider, feed, machine_of, row
from tests.factories import make_provider, make_user

pytestmark = pytest.mark.django_db

Outcome = FeedRun.Outcome
MINUTE = timedelta(minutes=1)


@pytest.fixture
def aspen(gpu: Any) -> Provider:
    """A provider with ten machines, refreshed at START."""
    provider = fed_provider()
    feed(provider, [row(number) for number in range(10)])
    return provider


def refused(provider: Provider, content: bytes, clock: Clock | None = None) -> FeedRun:
    """A run that must change nothing, neither a machine nor when the list was last good."""
    before = as_stored()
    provider.refresh_from_db()
    checked_at = provider.refreshed_at
    run = refresh_provider(provider.pk, clock=clock or Clock(START + MINUTE), body=content)
    assert as_stored() == before
    provider.refresh_from_db()
    assert provider.refreshed_at == checked_at
    assert run.detail.endswith((".", "stay."))
    return run


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        (b"", Outcome.UNREADABLE),
        (b"null", Outcome.UNREADABLE),
        (b"<!doctype html><title>Sign in</title>", Outcome.UNREADABLE),
        (b'{"offers": [{"id": "offer-1", "na', Outcome.UNREADABLE),
        (b'{"offers": []}', Outcome.EMPTY),
        (body([row(number, hourly_usd="0") for number in range(10)]), Outcome.EMPTY),
        (body([row(number, gpu="Frobnicator") for number in range(10)]), Outcome.EMPTY),
    ],
)
def test_a_list_that_says_nothing_keeps_the_last_good_rows(
    aspen: Provider, content: bytes, outcome: FeedRun.Outcome
) -> None:
    assert refused(aspen, content).outcome == outcome
    assert Machine.objects.available(now=START + MINUTE).count() == 10
    assert not Machine.objects.available(now=START + 5 * MINUTE).exists()


def test_less_than_half_of_the_last_good_list_is_shrunken_and_half_is_not(aspen: Provider) -> None:
    run = refused(aspen, body([row(number) for number in range(4)]))
    assert (run.outcome, run.seen, run.offers) == (Outcome.SHRUNKEN, 10 - 6, 4)
    assert "4 offers" in run.detail
    run = feed(aspen, [row(number) for number in range(5)])
    assert (run.outcome, counts(run)) == (Outcome.OK, {"unchanged": 5, "gone": 5})
    # What counts is the last good list, not the longest there ever was.
    assert feed(aspen, [row(number) for number in range(3)]).outcome == Outcome.OK


def test_a_list_of_which_most_rows_are_wrong_is_shrunken(aspen: Provider) -> None:
    rows = [row(number, hourly_usd="0" if number < 6 else "0.40") for number in range(10)]
    run = refused(aspen, body(rows))
    assert (run.outcome, run.rejected) == (Outcome.SHRUNKEN, 6)
    assert run.rejections.count() == 6


def test_prices_that_jump_together_are_held_and_a_few_are_not(aspen: Provider) -> None:
    def dearer(machines: int, hourly_usd: str) -> list[dict[str, Any]]:
        return [row(number, hourly_usd=hourly_usd if number < machines else "0.40") for number in range(10)]

    run = refused(aspen, body(dearer(3, "4.01")))
    assert (run.outcome, run.code) == (Outcome.HELD, "prices_jumped")
    assert "3 of 10 prices" in run.detail
    assert refused(aspen, body(dearer(3, "0.039"))).outcome == Outcome.HELD
    assert feed(aspen, dearer(3, "4.00")).outcome == Outcome.OK
    assert feed(aspen, dearer(2, "0.04")).outcome == Outcome.OK


def test_a_provider_that_becomes_cheap_step_by_step_is_not_held(aspen: Provider) -> None:
    for price in ("0.05", "0.01"):
        assert feed(aspen, [row(number, hourly_usd=price) for number in range(10)]).outcome == Outcome.OK


def test_staff_accept_what_was_held_and_the_next_list_is_applied_once(aspen: Provider) -> None:
    staff = make_user()
    dear = [row(number, hourly_usd="9.00") for number in range(10)]
    clock = Clock(START + MINUTE)
    assert refused(aspen, body(dear), clock).outcome == Outcome.HELD
    accept_held(aspen, staff, "They switched to dollars.", clock.forward(seconds=5))
    state = FeedState.objects.get()
    assert state.due_at == clock.now
    assert (feed(aspen, dear, clock).outcome, machine_of(1).hourly_usd) == (Outcome.OK, 9)
    entry = Provider.history.first()
    assert (entry.history_user, entry.history_change_reason) == (staff, "List accepted: They switched to dollars.")
    # Once: the next accident is one again.
    assert refused(aspen, body([row(number, hourly_usd="0.09") for number in range(10)]), clock).outcome == Outcome.HELD


def test_staff_accept_a_list_that_shrank(aspen: Provider) -> None:
    few = [row(1)]
    assert refused(aspen, body(few)).outcome == Outcome.SHRUNKEN
    accept_held(aspen, make_user(), "They sold the rest.", START + MINUTE)
    assert counts(feed(aspen, few, Clock(START + MINUTE))) == {"unchanged": 1, "gone": 9}


def test_what_was_accepted_is_not_what_comes_an_hour_later(aspen: Provider) -> None:
    assert refused(aspen, body([row(1)])).outcome == Outcome.SHRUNKEN
    accept_held(aspen, make_user(), "They sold the rest.", START + MINUTE)
    assert refused(aspen, body([row(1)]), Clock(START + 62 * MINUTE)).outcome == Outcome.SHRUNKEN


def test_nothing_is_accepted_where_nothing_is_held_and_without_a_reason(aspen: Provider) -> None:
    staff = make_user()
    with pytest.raises(NothingHeld, match="not held"):
        accept_held(aspen, staff, "Because.", START)
    refused(aspen, body([row(1)]))
    for reason in ("", "   ", "\u3164", "\u200b", "x" * 81):
        with pytest.raises(ValidationError):
            accept_held(aspen, staff, reason, START)
    assert not FeedState.objects.filter(accepted_until__isnull=False).exists()


def test_a_format_that_nobody_reads_and_a_feed_that_does_not_ship_say_what_to_do(gpu: Any) -> None:
    run = refresh_provider(fed_provider("odd", feed_format="gopher").pk, clock=Clock(), body=b"{}")
    assert (run.outcome, run.code) == (Outcome.UNREADABLE, "unknown_format")
    assert "berth" in run.detail
    run = refresh_provider(fed_provider("real", feed_url="demo:willow").pk, clock=Clock())
    assert (run.outcome, run.code) == (Outcome.FAILED, "demo_feed")
    run = refresh_provider(fed_provider("demo", feed_url="demo:../machines", invented=True).pk, clock=Clock())
    assert (run.outcome, run.code) == (Outcome.FAILED, "demo_feed")
    assert "demo:willow" in run.detail
    with pytest.raises(NoFeed):
        refresh_provider(make_provider("declared").pk)


def test_failures_make_the_waits_longer_and_one_success_makes_them_short(aspen: Provider) -> None:
    clock, waits = Clock(START + MINUTE), []
    for _ in range(8):
        refresh_provider(aspen.pk, clock=clock, body=b"")
        waits.append(FeedState.objects.get().due_at - clock.now)
    for number, wait in enumerate(waits, start=1):
        longest = min(MINUTE * 2**number, 15 * MINUTE)
        assert longest * 0.9 <= wait <= longest
    feed(aspen, [row(number) for number in range(10)], clock)
    state = FeedState.objects.get()
    assert state.failures == 0
    assert state.due_at - clock.now <= MINUTE


def test_a_list_that_is_held_is_asked_for_again_as_often_as_before(aspen: Provider) -> None:
    refused(aspen, body([]))
    refused(aspen, body([row(1)]))
    state = FeedState.objects.get()
    assert state.failures == 0
    assert state.due_at - (START + MINUTE) <= MINUTE


def test_the_server_says_when_to_come_back() -> None:
    for _ in range(50):
        assert next_due(START, MINUTE, 1, 3600) >= START + timedelta(hours=1)
        assert next_due(START, MINUTE, 1, 1) >= START + 1.8 * MINUTE
        assert START + 0.9 * MINUTE <= next_due(START, MINUTE, 0, None) <= START + MINUTE
    assert len({next_due(START, MINUTE, 0, None) for _ in range(50)}) > 1


def test_a_run_that_breaks_inside_is_recorded_and_gives_its_turn_back(aspen: Provider) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        feed(aspen, [row(1, hourly_usd="0.50"), *map(row, range(2, 10))], Clock(START + MINUTE, meanwhile=broken))
    run = FeedRun.objects.first()
    assert run is not None
    assert (run.outcome, run.code) == (Outcome.FAILED, "internal_error")
    state = FeedState.objects.get()
    assert (state.claim, state.failures) == (None, 1)
    assert feed(aspen, [row(number) for number in range(10)]).outcome == Outcome.OK


# --- Ids that do not last ---


def ids(prefix: str, number: int = 30) -> list[dict[str, Any]]:
    return [row(f"{prefix}-{each}") for each in range(number)]


def test_a_list_with_other_ids_throughout_is_held_until_staff_accept_it(gpu: Any) -> None:
    birch = fed_provider("birch")
    feed(birch, ids("a"))
    run = refused(birch, body(ids("b")))
    assert (run.outcome, run.code) == (Outcome.HELD, "ids_changed")
    assert "30 of 30 ids are new, and 30 of 30 machines on sale are not in the list any more" in run.detail
    accept_held(birch, make_user(), "They changed their ids.", START + MINUTE)
    run = feed(birch, ids("b"), Clock(START + 2 * MINUTE))
    assert counts(run) == {"new": 30, "gone": 30}
    # What was accepted is that one list: the next with other ids is held again.
    assert refused(birch, body(ids("c")), Clock(START + 3 * MINUTE)).code == "ids_changed"


@pytest.mark.parametrize(
    "after",
    [
        ids("a", 15) + ids("b", 15),
        # Many new ones beside those that stay, and many that go while few come.
        ids("a") + ids("b", 90),
        ids("a", 16),
        ids("a", 16) + ids("b", 20),
    ],
)
def test_a_list_that_grows_shrinks_or_renews_half_is_applied(gpu: Any, after: list[dict[str, Any]]) -> None:
    birch = fed_provider("birch")
    feed(birch, ids("a"))
    assert feed(birch, after).outcome == Outcome.OK


def test_a_few_machines_may_all_be_others_until_there_are_too_many_gone_ones(gpu: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("catalog.refresh.reviewing.MOST_GONE", 10)
    birch = fed_provider("birch")
    for turn in range(4):
        assert feed(birch, ids(f"turn-{turn}", 4)).outcome == Outcome.OK
    run = refused(birch, body(ids("turn-4", 4)))
    assert (run.outcome, run.code) == (Outcome.HELD, "too_many_machines")
    assert "20 machines for a list of 4 offers" in run.detail
    # Without new ids nothing is added, so nothing is held.
    assert feed(birch, ids("turn-3", 4)).outcome == Outcome.OK


# --- What stays known while nothing is read ---


def test_an_empty_list_leaves_the_open_questions_as_they_are(aspen: Provider) -> None:
    feed(aspen, [*(row(number) for number in range(10)), row("odd", gpu="Frobnicator")])
    refused(aspen, b'{"offers": []}')
    refused(aspen, b"<html>")
    assert FeedQuestion.objects.get().count == 1
    feed(aspen, [row(number) for number in range(10)], Clock(START + 2 * MINUTE))
    assert FeedQuestion.objects.get().count == 0


def test_rejected_rows_stay_known_while_the_list_cannot_be_fetched(aspen: Provider, admin_client: Any) -> None:
    feed(aspen, [*(row(number) for number in range(10)), row("odd", hourly_usd="0")])
    for minutes in (1, 61, 122):
        refused(aspen, b"<html>", Clock(START + minutes * MINUTE))
    assert FeedRejection.objects.get().external_id == "offer-odd"
    page = admin_client.get(f"/admin/catalog/provider/{aspen.pk}/change/").content.decode()
    assert "offer-odd" in page
    assert "It was read at 2026-12-01 12:00:00 UTC." in page


def test_a_list_of_three_that_becomes_one_has_shrunken_and_one_of_two_has_not(gpu: Any) -> None:
    birch = fed_provider("birch")
    feed(birch, ids("a", 3))
    assert refused(birch, body(ids("a", 1))).outcome == Outcome.SHRUNKEN
    assert feed(birch, ids("a", 2)).outcome == Outcome.OK
    assert feed(birch, ids("a", 1)).outcome == Outcome.OK
    assert refused(birch, b'{"offers": []}').outcome == Outcome.EMPTY
