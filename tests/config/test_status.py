"""The public page of how old everything is."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from catalog.models import FeedRun
from config.celery import app
from config.periodic import WORDS, periodic_work
from tests import factories

pytestmark = pytest.mark.django_db
app.autodiscover_tasks(force=True)


@pytest.fixture
def provider():
    """A provider with a feed, whose address and secret nobody may see."""
    provider = factories.make_provider("farm")
    provider.feed_format, provider.feed_url = "berth", "https://feeds.example/list?key=s3cret"
    provider.feed_secret = "s3cret"
    provider.save()
    return provider


def page(client: Client) -> str:
    response = client.get("/status/")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def run(provider, outcome, detail=""):
    now = timezone.now()
    FeedRun.objects.create(provider=provider, started_at=now, finished_at=now, outcome=outcome, detail=detail)


def test_a_fresh_list_and_one_of_the_operator_are_told_apart(client, provider) -> None:
    factories.make_provider("by-hand")
    provider.refreshed_at = timezone.now() - timedelta(seconds=40)
    provider.save()
    run(provider, FeedRun.Outcome.OK)
    text = page(client)
    assert "Checked 4" in text
    assert "Up to date</span>" in text
    assert "The machines of 1 other provider are set by the operator and do not age." in text
    assert "By Hand" not in text
    assert "out of date" not in text.lower()


@pytest.mark.parametrize("minutes", [None, 6, 6000])
def test_an_old_list_says_that_its_machines_are_not_offered(client, provider, minutes) -> None:
    if minutes is not None:
        provider.refreshed_at = timezone.now() - timedelta(minutes=minutes)
        provider.save()
    run(provider, FeedRun.Outcome.SHRUNKEN, detail="10.0.0.7 answers s3cret")
    text = page(client)
    assert "1 of 1 list is out of date: machines on it are not offered until the next good list." in text
    assert "Less than half of the list before" in text
    for secret in ("s3cret", "feeds.example", "10.0.0.7"):
        assert secret not in text


def test_the_page_asks_the_database_the_same_whatever_the_number_of_providers(
    client, provider, django_assert_num_queries
) -> None:
    for number in range(20):
        factories.make_provider(f"provider-{number}")
    with django_assert_num_queries(1):
        page(client)


def test_each_task_that_people_wait_for_says_when_it_last_ended_well(client, settings) -> None:
    schedule = settings.CELERY_BEAT_SCHEDULE
    assert f"{len(WORDS)} of {len(WORDS)} background tasks have not been seen to end yet" in page(client)
    for entry in schedule.values():
        app.tasks[entry["task"]].apply(throw=True)
    work = periodic_work(timezone.now())
    assert work is not None
    assert [each.name for each in work] == list(schedule)
    assert all(each.on_time for each in work)
    text = page(client)
    assert "Every list is up to date, and every background task on time." in text
    for words in WORDS.values():
        assert escape(words) in text


def test_what_comes_more_often_than_every_five_minutes_has_words_for_people(settings) -> None:
    often = {name for name, entry in settings.CELERY_BEAT_SCHEDULE.items() if entry["schedule"] < timedelta(minutes=5)}
    assert often == set(WORDS)


def test_a_task_that_fails_or_comes_late_is_said_to_be_late(client, settings) -> None:
    app.tasks["rentals.tasks.send_notices"].apply(throw=True)
    entry = settings.CELERY_BEAT_SCHEDULE["send-notices"]
    late = timezone.now() - 2 * entry["schedule"] - timedelta(minutes=1, seconds=5)
    cache.set("periodic:rentals.tasks.send_notices", late.isoformat())
    text = page(client)
    assert f"1 of {len(WORDS)} background tasks is late." in text


def test_without_the_cache_the_page_says_what_does_not_work(client, settings) -> None:
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    }
    text = page(client)
    assert "Signing in does not work at the moment" in text
    # A task whose run cannot be written down has run all the same.
    assert app.tasks["rentals.tasks.send_notices"].apply(throw=True).successful()


def test_every_page_links_to_it(client) -> None:
    assert '<a href="/status/">Status</a>' in client.get("/glossary/").content.decode()
