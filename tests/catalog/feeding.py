"""Short ways to refresh a provider from rows that a test names."""

import inspect
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from catalog.models import FeedRun, Machine, Provider
from catalog.refresh import refresh_provider
from tests.factories import make_provider

START = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)

Row = dict[str, Any]


class Clock:
    """A clock that moves when it is told to. `meanwhile` happens once its machines were compared, before a write."""

    def __init__(self, now: datetime = START, meanwhile: Callable[[], object] | None = None) -> None:
        self.now = now
        self.meanwhile = meanwhile

    def __call__(self) -> datetime:
        if self.meanwhile and _is_applying():
            act, self.meanwhile = self.meanwhile, None
            act()
        return self.now

    def forward(self, **duration: float) -> datetime:
        self.now += timedelta(**duration)
        return self.now


def _is_applying() -> bool:
    """Whether whoever asks for the time is about to write machines."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith("applying.py"):
            return True
        frame = frame.f_back
    return False


def fed_provider(slug: str = "aspen", **fields: Any) -> Provider:
    return make_provider(slug, **{"feed_format": "berth", "feed_url": "https://feed.example/", **fields})


def row(number: int | str = 1, **fields: Any) -> Row:
    """A row of Berth's format: one RTX 4090 in Germany for 0.40 USD an hour. None takes a field out."""
    base = {
        "id": f"offer-{number}",
        "name": f"Machine {number}",
        "gpu": "RTX 4090",
        "gpu_count": 1,
        "gpu_memory_mib": 24564,
        "tier": "community",
        "place": "Berlin, DE",
        "hourly_usd": "0.40",
    }
    return {name: value for name, value in (base | fields).items() if value is not None}


def body(rows: Sequence[Row]) -> bytes:
    return json.dumps({"offers": list(rows)}).encode()


def feed(provider: Provider, rows: Sequence[Row], clock: Callable[[], datetime] | None = None) -> FeedRun:
    """One refresh from these rows."""
    return refresh_provider(provider.pk, clock=clock or Clock(), body=body(rows))


def counts(run: FeedRun) -> dict[str, int]:
    """What the run counted, zeros left out."""
    names = ("new", "changed", "unchanged", "gone", "rejected", "skipped", "rented", "merged")
    return {name: number for name in names if (number := getattr(run, name))}


def machine_of(number: int | str, provider: Provider | None = None) -> Machine:
    machines = Machine.objects.filter(external_id=f"offer-{number}")
    return machines.get(provider=provider) if provider else machines.get()


def as_stored() -> list[tuple[Any, ...]]:
    """Every column of every machine."""
    return list(Machine.objects.order_by("pk").values_list())
