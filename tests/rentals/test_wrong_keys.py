"""Guessing keys: an address that sends many wrong ones waits, and good keys from the same address do not."""

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from rentals.throttling import AddressThrottle, WrongKeyThrottle
from tests.factories import make_api_key
from tests.rentals.calls import assert_problem, get
from tests.tenancy import statements

WRONG = f"berth_{'x' * 12}_{'y' * 43}"


@pytest.fixture(autouse=True)
def _three_a_minute(monkeypatch):
    monkeypatch.setattr(WrongKeyThrottle, "rate", "3/min", raising=False)


def spend():
    return [get("key", WRONG).status_code for _ in range(3)]


def test_many_wrong_keys_are_refused_before_they_are_looked_up(db):
    assert spend() == [401, 401, 401]
    with CaptureQueriesContext(
        connection,
    ) as asked:
        refused = get("key", WRONG)
    assert_problem(refused, 429, "throttled")
    assert int(refused.headers["Retry-After"]) >= 1
    assert statements(asked) == []


def test_texts_that_are_no_key_and_revoked_keys_count_too(acme):
    revoked = make_api_key(acme)
    type(revoked).objects.filter(pk=revoked.pk).update(revoked_at=revoked.created_at)
    answers = [get("gpus", text).status_code for text in ("nonsense", revoked.text, "berth_short", "nonsense")]
    assert answers == [401, 401, 401, 429]


def test_good_keys_from_the_same_address_are_let_through(acme):
    new, used = make_api_key(acme), make_api_key(acme)
    assert get("key", used).status_code == 200
    spend()
    assert get("key", WRONG).status_code == 429
    # One that opened before, one that was only made, and who asks without a key.
    assert [get("key", used).status_code, get("key", new).status_code, get("gpus").status_code] == [200, 200, 200]


def test_a_key_that_opened_before_the_cache_was_emptied_is_remembered_with_its_next_noted_use(acme, now):
    key = make_api_key(acme)
    cache.clear()
    assert get("key", key).status_code == 200
    spend()
    assert get("key", key).status_code == 200


def test_another_address_is_not_held_up(db):
    spend()
    elsewhere = Client().get("/api/v1/key", headers={"Authorization": f"Bearer {WRONG}"}, REMOTE_ADDR="192.0.2.7")
    assert elsewhere.status_code == 401


def test_a_known_key_that_was_revoked_is_refused_as_ever(acme, now):
    key = make_api_key(acme)
    assert get("key", key).status_code == 200
    type(key).objects.filter(pk=key.pk).update(revoked_at=now)
    assert get("key", key).status_code == 401


def test_a_forged_address_does_not_reset_the_count(db, monkeypatch):
    """B161: without trusted proxies, the header is anybody's to write."""
    monkeypatch.setattr(AddressThrottle, "rate", "3/min", raising=False)
    answers = [get("gpus", **{"X-Forwarded-For": f"198.51.100.{number}"}).status_code for number in range(23)]
    assert answers == [200] * 3 + [429] * 20
    # Nor does another wrong key from what is said to be another address.
    spend()
    assert get("key", WRONG, **{"X-Forwarded-For": "198.51.100.77"}).status_code == 429
