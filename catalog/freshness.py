"""How old what the catalog says is: each provider's last good list, and how its last refresh ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import OuterRef, Subquery

from catalog.models import FeedRun, Provider
from catalog.querysets import FRESH_FOR


@dataclass(frozen=True)
class Freshness:
    """One provider's list. `checked_at` is its last good refresh, None when there never was one or there is no feed.

    `outcome` is that of the last refresh that is over, good or not, which was `tried_at`; None when none is.
    """

    provider: Provider
    checked_at: datetime | None
    tried_at: datetime | None
    outcome: FeedRun.Outcome | None
    detail: str
    now: datetime

    @property
    def has_feed(self) -> bool:
        return self.provider.has_feed

    @property
    def age(self) -> timedelta | None:
        return None if self.checked_at is None else max(self.now - self.checked_at, timedelta(0))

    @property
    def fresh(self) -> bool:
        """Whether its machines may be offered; a provider without a feed is declared by the operator and never ages."""
        return not self.has_feed or (self.age is not None and self.age < FRESH_FOR)

    @property
    def text(self) -> str:
        """ "Checked 40 s ago", or why there is no such time."""
        if not self.has_feed:
            return "Set by the operator"
        return "Never checked" if self.age is None else f"Checked {ago(self.age)}"


def freshness(now: datetime) -> list[Freshness]:
    """Every provider by name, in one query."""
    over = FeedRun.objects.filter(provider=OuterRef("pk"), finished_at__isnull=False).order_by("-started_at", "-id")
    providers = Provider.objects.order_by("name").annotate(
        last_outcome=Subquery(over.values("outcome")[:1]),
        last_detail=Subquery(over.values("detail")[:1]),
        last_tried_at=Subquery(over.values("finished_at")[:1]),
    )
    return [
        Freshness(
            provider=provider,
            checked_at=provider.refreshed_at if provider.has_feed else None,
            tried_at=provider.last_tried_at if provider.has_feed else None,
            outcome=FeedRun.Outcome(provider.last_outcome) if provider.has_feed and provider.last_outcome else None,
            detail=(provider.last_detail or "") if provider.has_feed else "",
            now=now,
        )
        for provider in providers
    ]


def seen_ago(provider: Provider, now: datetime) -> str:
    """ "Seen 40 s ago" of a machine that is in its provider's list; empty where the operator declares it."""
    if not provider.has_feed or provider.refreshed_at is None:
        return ""
    return f"Seen {ago(now - provider.refreshed_at)}"


def checked_lists(providers: Iterable[Provider], now: datetime) -> list[str]:
    """When the lists of these providers were last read with success, each named once: "Aspen checked 40 s ago"."""
    fed = {provider.name: provider.refreshed_at for provider in providers if provider.has_feed}
    return [
        f"{name} checked {ago(now - checked_at)}" if checked_at else f"{name} never checked"
        for name, checked_at in sorted(fed.items())
    ]


def ago(age: timedelta) -> str:
    """An age as people say it, cut down to a whole unit: "40 s ago", "12 min ago", "2 days ago"."""
    seconds = max(int(age.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds} s ago"
    if seconds < 2 * 3600:
        return f"{seconds // 60} min ago"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h ago"
    return f"{seconds // 86400} days ago"
