"""A feed's secret is in the database for nobody who has the database alone."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client

from catalog.models import FeedRun, Provider
from catalog.refresh import refresh_provider
from catalog.sealing import FEEDS, WEBHOOKS, SecretUnreadable
from catalog.tasks import seal_feed_secrets_anew
from tests.factories import make_provider, make_user

SECRET = "hush-hush-of-the-feed"
OLD, NEW = "an-old-key-of-this-test", "a-new-key-of-this-test"


@pytest.fixture
def fed(db: None) -> Provider:
    return make_provider("north", feed_url="https://feed.invalid/", feed_format="berth", feed_secret=SECRET)


def column(provider: Provider) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM catalog_provider WHERE id = %s", [provider.pk])
        return str(cursor.fetchone())


def again(provider: Provider) -> Provider:
    return Provider.objects.get(pk=provider.pk)


def test_the_database_does_not_have_the_secret_and_the_program_has(fed: Provider) -> None:
    assert SECRET not in column(fed)
    assert again(fed).feed_secret == SECRET
    provider = again(fed)
    provider.feed_secret = ""
    provider.save()
    assert (again(fed).sealed_secret, again(fed).feed_secret) == ("", "")
    assert not any(SECRET in str(version.__dict__) for version in fed.history.all())


def test_no_secret_is_so_long_that_it_cannot_be_kept() -> None:
    longest = Provider._meta.get_field("sealed_secret").max_length
    assert len(FEEDS.seal("x" * 500)) <= longest


def test_what_one_purpose_sealed_no_other_reads() -> None:
    assert FEEDS.seal(SECRET) != FEEDS.seal(SECRET)
    with pytest.raises(SecretUnreadable):
        WEBHOOKS.unseal(FEEDS.seal(SECRET))


def test_a_new_key_ends_no_secret_and_takes_over_within_the_hour(db: None, settings: Any) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OLD, []
    fed = make_provider(feed_secret=SECRET)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert again(fed).feed_secret == SECRET
    seal_feed_secrets_anew()
    settings.SECRET_KEY_FALLBACKS = []
    assert again(fed).feed_secret == SECRET
    before = again(fed).sealed_secret
    seal_feed_secrets_anew()
    assert again(fed).sealed_secret == before


def test_a_secret_of_a_lost_key_is_not_sent_and_is_written_again(client: Client, db: None, settings: Any) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OLD, []
    fed = make_provider(name="North", feed_url="https://feed.invalid/", feed_format="berth", feed_secret=SECRET)
    settings.SECRET_KEY = NEW
    seal_feed_secrets_anew()
    run = refresh_provider(fed.pk)
    assert (run.outcome, run.code) == (FeedRun.Outcome.FAILED, "secret_unreadable")
    assert "Write it again" in run.detail
    client.force_login(make_user(is_staff=True, is_superuser=True))
    page = client.get(f"/admin/catalog/provider/{fed.pk}/change/").content.decode()
    assert "Write it again" in page
    assert again(fed).sealed_secret
    assert again(fed).sealed_secret not in page


def test_secrets_that_were_kept_as_they_are_come_to_be_sealed(fed: Provider) -> None:
    step = import_module("catalog.migrations.0011_sealed_feed_secrets")
    Provider.objects.update(sealed_secret=SECRET)
    make_provider("without")
    step.seal(apps, connection.schema_editor())
    assert SECRET not in column(fed)
    assert again(fed).feed_secret == SECRET
    assert Provider.objects.get(slug="without").sealed_secret == ""
    step.unseal(apps, connection.schema_editor())
    assert again(fed).sealed_secret == SECRET
