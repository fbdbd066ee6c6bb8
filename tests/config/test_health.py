"""What a watcher of the process is told."""

import pytest
from django.test import Client


def test_alive_asks_neither_database_nor_cache(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")


@pytest.mark.django_db(transaction=True)
def test_ready_says_what_was_asked(client: Client) -> None:
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain")
    assert response.content.decode().splitlines() == ["Database(alias='default'): OK", "Cache(alias='default'): OK"]
    assert client.get("/readyz", headers={"accept": "application/json"}).json() == {
        "Database(alias='default')": "OK",
        "Cache(alias='default')": "OK",
    }


@pytest.mark.django_db(transaction=True)
def test_a_cache_that_is_away_makes_the_process_not_ready(client: Client, settings) -> None:
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    }
    response = client.get("/readyz")
    assert response.status_code == 503
    lines = response.content.decode().splitlines()
    assert lines[0].endswith("OK")
    assert not lines[1].endswith("OK")


def test_health_is_answered_without_https(client: Client, settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/healthz").status_code == 200
    assert client.get("/theme/").status_code == 301
