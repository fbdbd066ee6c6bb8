"""When each list was checked: for the status page, in one query, and in words."""

from datetime import timedelta
from typing import Any

import pytest

from catalog.freshness import ago, freshness
from catalog.models import FeedRun, Provider
from catalog.refresh import refresh_provider
from tests.catalog.feeding import START, Clock, fed_provider, feed, row
from tests.factories import make_provider

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (timedelta(0), "0 s ago"),
        (timedelta(seconds=-3), "0 s ago"),
        (timedelta(seconds=40.9), "40 s ago"),
        (timedelta(seconds=119), "119 s ago"),
        (timedelta(minutes=2), "2 min ago"),
        (timedelta(minutes=12, seconds=59), "12 min ago"),
        (timedelta(hours=2), "2 h ago"),
        (timedelta(hours=50), "2 days ago"),
    ],
)
def test_an_age_is_said_in_one_unit_and_never_rounded_up(age: timedelta, said: str) -> None:
    assert ago(age) == said


@pytest.mark.django_db
def test_every_provider_says_when_its_list_was_good_and_how_the_last_refresh_ended(
    gpu: Any, django_assert_num_queries: Any
) -> None:
    clock = Clock()
    good, failing, never = fed_provider("a-good"), fed_provider("b-failing"), fed_provider("c-never")
    declared = make_provider("d-declared")
    for provider in (good, failing):
        feed(provider, [row()], clock)
    clock.forward(minutes=4)
    refresh_provider(failing.pk, clock=clock, body=b"<html>")
    # One that has begun is not over: what is told is the last that is.
    FeedRun.objects.create(provider=failing, started_at=clock.forward(seconds=30))
    with django_assert_num_queries(1):
        found = {each.provider.slug: each for each in freshness(clock.now)}
    assert list(found) == ["a-good", "b-failing", "c-never", "d-declared"]
    assert found[good.slug].text == "Checked 4 min ago"
    assert (found[good.slug].outcome, found[good.slug].fresh) == (FeedRun.Outcome.OK, True)
    assert (found[failing.slug].outcome, found[failing.slug].fresh) == (FeedRun.Outcome.UNREADABLE, True)
    assert (found[failing.slug].checked_at, found[failing.slug].tried_at) == (START, START + 4 * MINUTE)
    assert found[failing.slug].detail
    assert (found[never.slug].text, found[never.slug].fresh, found[never.slug].outcome) == (
        "Never checked",
        False,
        None,
    )
    assert (found[declared.slug].text, found[declared.slug].fresh) == ("Set by the operator", True)
    assert not next(each for each in freshness(START + 5 * MINUTE) if each.provider == good).fresh


@pytest.mark.django_db
def test_a_provider_whose_feed_was_taken_away_is_declared_again(gpu: Any) -> None:
    provider = fed_provider()
    feed(provider, [row()])
    Provider.objects.update(feed_url="", feed_format="")
    (each,) = freshness(START + timedelta(days=1))
    assert (each.text, each.fresh, each.checked_at, each.outcome) == ("Set by the operator", True, None, None)
