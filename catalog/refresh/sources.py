"""Where a provider's list comes from: the network, or a demo feed that ships with Berth."""

import json
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qsl, quote, urlsplit

from catalog import outgoing
from catalog.feeds import Adapter, berth_format
from catalog.models import DEMO_FEED, Provider
from catalog.refresh import demo
from catalog.refresh.secrets import secret_of

# A shorter one hides nothing, and may be a word of every list.
LEAST_OF_A_SECRET = 6
# Of an address, what is shorter is rather a filter than a key.
LEAST_OF_A_KEY = 16


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
    secret = secret_of(provider)
    request = adapter.request(secret)
    fetched = outgoing.fetch(
        provider.feed_url, method=request.method, headers=request.headers, content=request.content
    ).expect_success()
    return Body(_without_secrets(fetched.content, secret, provider.feed_url), fetched.wire_bytes)


def _without_secrets(content: bytes, secret: str, address: str) -> bytes:
    """What came back, with nothing of ours that a server repeats: runs and pages show what it said."""
    hidden = {value for _, value in parse_qsl(urlsplit(address).query) if len(value) >= LEAST_OF_A_KEY}
    if len(secret) >= LEAST_OF_A_SECRET:
        hidden.add(secret)
    for one in hidden:
        escaped = json.dumps(one)[1:-1]
        for spelled in {one, quote(one), quote(one, safe=""), escaped, escaped.replace("/", "\\/")}:
            # Without a copy where it is not in it.
            content = content.replace(spelled.encode(), b"(secret)")
    return content


class Mismatch(outgoing.Refused):
    """A feed of which two settings do not go together. Attributes: `field`, the one to change."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__("demo_feed", detail)
        self.field = field


def check_demo(address: str, feed_format: str, *, invented: bool) -> None:
    """Whether an address of a demo feed can be read. Raises: Mismatch."""
    if address.removeprefix(DEMO_FEED) not in demo.FEEDS:
        known = ", ".join(f"{DEMO_FEED}{known}" for known in demo.FEEDS)
        raise Mismatch("feed_url", f"There is no such demo feed. Those that ship are: {known}.")
    if not invented:
        raise Mismatch("invented", "A demo feed is for invented providers: mark this provider as invented.")
    if feed_format != berth_format.ADAPTER.slug:
        raise Mismatch("feed_format", f"A demo feed is in the format {berth_format.ADAPTER.label}: choose that.")


def _demo(provider: Provider, now: datetime) -> Body:
    check_demo(provider.feed_url, provider.feed_format, invented=provider.invented)
    content = demo.body(provider.feed_url.removeprefix(DEMO_FEED), now)
    return Body(content, len(content))
