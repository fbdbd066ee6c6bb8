"""Guarded requests to addresses that somebody else chose: providers' feeds, and organizations' webhooks.

Whoever chose the address must not reach what only this machine can reach, hold a worker, fill its memory, or read what
was meant for another server. So a request goes to public addresses alone, and the address that was checked is the one
connected to; one deadline holds over names, connections, redirects and every byte; the body is counted as it unpacks.
No proxies and no cookies, and neither the log nor an error says more of an address than scheme, host and port.
"""

from catalog.outgoing.addresses import parse, shown_address
from catalog.outgoing.errors import Failed, OutgoingError, Refused
from catalog.outgoing.fetching import MOST_BYTES, MOST_SECONDS, Fetched, fetch, retry_after_seconds

__all__ = [
    "MOST_BYTES",
    "MOST_SECONDS",
    "Failed",
    "Fetched",
    "OutgoingError",
    "Refused",
    "fetch",
    "parse",
    "retry_after_seconds",
    "shown_address",
]
