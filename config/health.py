"""Two questions of whoever runs Berth: is the process alive, and should it be sent requests?"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from redis import Redis

logger = logging.getLogger(__name__)

SECONDS = 2.0
OK, AWAY, SILENT = "ok", "away", "no answer in time"


@dataclass(frozen=True)
class Probe:
    """Something that Berth leans on; without what is not `needed`, orders are placed and pages served all the same."""

    name: str
    ask: Callable[[], object]
    needed: bool


def _ask_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        # Of the probe's own thread: nobody else would give it back.
        connection.close()


def _ask_cache() -> None:
    cache.set("readyz", 1, timeout=10)


def _ask_broker() -> None:
    if settings.CELERY_BROKER_URL.startswith("redis"):
        with Redis.from_url(settings.CELERY_BROKER_URL, socket_timeout=1, socket_connect_timeout=1) as broker:
            broker.ping()


# Without the cache nobody can sign in and the API counts no rates; without the broker periodic work waits. Both are no
# reason to take the process out of service: the others have the same Redis, and orders do without it.
PROBES = (
    Probe("database", _ask_database, needed=True),
    Probe("cache", _ask_cache, needed=False),
    Probe("broker", _ask_broker, needed=False),
)


def alive(request: HttpRequest) -> HttpResponse:
    """Touches nothing: a process that answers must not be restarted because its database is away."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
def ready(request: HttpRequest) -> HttpResponse:
    """200 while requests should come here, else 503; as text, or as JSON when asked for."""
    found = look()
    missing = [probe for probe in PROBES if found[probe.name] != OK]
    status = "not ready" if any(probe.needed for probe in missing) else "degraded" if missing else "ready"
    code = 503 if status == "not ready" else 200
    if request.accepts("text/plain"):
        lines = [status, *(f"{name}: {state}" for name, state in found.items())]
        return HttpResponse("\n".join(lines) + "\n", status=code, content_type="text/plain")
    return JsonResponse({"status": status, "checks": found}, status=code)


def look() -> dict[str, str]:
    """How each probe does, all asked at once and given the same few seconds."""
    until = time.monotonic() + SECONDS
    for asking in _ASKED:
        asking.begin()
    return {asking.probe.name: asking.answer(max(until - time.monotonic(), 0)) for asking in _ASKED}


class _Asked:
    """One probe, asked by one thread at a time: a server that hangs must not collect threads and connections."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self._state = AWAY
        self._over = threading.Event()
        self._over.set()
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            if self._over.is_set():
                self._over.clear()
                # Daemon: it must not keep the process from ending.
                threading.Thread(target=self._run, name=f"probe of the {self.probe.name}", daemon=True).start()

    def answer(self, seconds: float) -> str:
        return self._state if self._over.wait(seconds) else SILENT

    def _run(self) -> None:
        try:
            self.probe.ask()
            self._state = OK
        except Exception as error:
            # Its text may hold addresses and passwords.
            logger.warning("The %s is away: %s.", self.probe.name, type(error).__name__)
            self._state = AWAY
        finally:
            self._over.set()


_ASKED = tuple(_Asked(probe) for probe in PROBES)
