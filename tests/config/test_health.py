"""What a watcher of the process is told."""

import socket
import threading

import pytest
from django.test import Client

from config import health

JSON = {"accept": "application/json"}


@pytest.fixture
def deaf():
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


def redis_cache(url):
    return {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": url}}


def test_alive_asks_neither_database_nor_cache(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")


@pytest.mark.django_db(transaction=True)
def test_ready_names_what_was_asked(client: Client) -> None:
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain")
    assert response["Cache-Control"].startswith("max-age=0, no-cache")
    assert response.content.decode().splitlines() == ["ready", "database: ok", "cache: ok", "broker: ok"]
    assert client.get("/readyz", headers=JSON).json() == {
        "status": "ready",
        "checks": {"database": "ok", "cache": "ok", "broker": "ok"},
    }


@pytest.mark.django_db(transaction=True)
def test_without_cache_and_broker_orders_are_placed_so_requests_still_come_here(client: Client, settings) -> None:
    settings.CELERY_BROKER_URL = "redis://:s3cret@127.0.0.1:1/0"
    settings.CACHES = redis_cache(settings.CELERY_BROKER_URL)
    response = client.get("/readyz", headers=JSON)
    assert response.status_code == 200
    assert response.json() == {
        "status": "degraded",
        "checks": {"database": "ok", "cache": "away", "broker": "away"},
    }
    assert b"s3cret" not in response.content


def test_a_database_that_is_away_takes_the_process_out_of_service(client: Client) -> None:
    # The test runner refuses every query of a test that has not asked for a database.
    response = client.get("/readyz", headers=JSON)
    assert response.status_code == 503
    assert (response.json()["status"], response.json()["checks"]["database"]) == ("not ready", "away")


@pytest.mark.django_db(transaction=True)
def test_a_server_that_does_not_answer_is_waited_for_a_moment_and_asked_once(
    client: Client, settings, deaf, monkeypatch
) -> None:
    monkeypatch.setattr(health, "SECONDS", 0.2)
    settings.CACHES = redis_cache(deaf)
    before = threading.active_count()
    for _ in range(5):
        assert client.get("/readyz", headers=JSON).json()["checks"]["cache"] == "no answer in time"
    # However often it is asked, one thread waits.
    assert threading.active_count() <= before + 1


def test_health_is_answered_without_https(client: Client, settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/healthz").status_code == 200
    assert client.get("/theme/").status_code == 301


@pytest.mark.django_db
def test_signing_in_without_its_cache_is_refused_with_words_and_not_a_crash(client: Client, settings) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"login": "5/m/ip", "login_failed": "5/m/ip"}
    settings.CACHES = redis_cache("redis://127.0.0.1:1/0")
    client.raise_request_exception = False
    response = client.post("/accounts/login/", {"login": "person@acme.example", "password": "wrong"})
    assert response.status_code == 503
    assert response["Retry-After"] == "60"
    assert "This does not work at the moment" in response.content.decode()
    assert client.get("/catalog/").status_code == 200
