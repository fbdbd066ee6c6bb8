"""Where a provider's list comes from: the network, or a demo feed that ships with Berth."""

from dataclasses import dataclass
from datetime import datetime

from catalog import outgoing
from catalog.feeds import Adapter
from catalog.models import DEMO_FEED, Provider
from catalog.refresh import demo


@dataclass(frozen=True)
class Body:
    """What came back. Units: `wire_bytes` as they were sent, before unpacking."""

    content: bytes
    wire_bytes: int


def fetch(provider: Provider, adapter: Adapter, now: datetime) -> Body:
    """The provider's list as it is now.

    Raises: OutgoingError.
    """
    if provider.feed_url.startswith(DEMO_FEED):
        return _demo(provider, now)
    request = adapter.request(provider.feed_secret)
    fetched = outgoing.fetch(
        provider.feed_url, method=request.method, headers=request.headers, content=request.content
    ).expect_success()
    return Body(fetched.content, fetched.wire_bytes)


def _demo(provider: Provider, now: datetime) -> Body:
    """Raises: Refused for a name that does not ship, and for a provider whose pages would not say it is invented."""
    if not provider.invented:
        raise outgoing.Refused("demo_feed", "A demo feed is for invented providers: mark this provider as invented.")
    name = provider.feed_url.removeprefix(DEMO_FEED)
    if name not in demo.FEEDS:
        known = ", ".join(f"{DEMO_FEED}{known}" for known in demo.FEEDS)
        raise outgoing.Refused("demo_feed", f"There is no such demo feed. Those that ship are: {known}.")
    content = demo.body(name, now)
    return Body(content, len(content))
