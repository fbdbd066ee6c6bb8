"""Which addresses may be asked at all, as far as their spelling tells; what names mean is checked when connecting."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit, urlunsplit

import httpx2
from django.conf import settings

from catalog.outgoing.errors import Refused
from catalog.outgoing.public import is_public

LONGEST_URL = 2000
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*")
# Resolvers read 127.1, 2130706433 and 0x7f.1 as addresses.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def parse(url: str) -> httpx2.URL:
    """The address in its one spelling; says what is wrong with it before anything is asked.

    Raises: Refused.
    """
    if len(url) > LONGEST_URL:
        raise Refused("url_too_long", f"The address is longer than {LONGEST_URL:,} characters.")
    try:
        parsed = httpx2.URL(url.strip())
        host = parsed.raw_host.decode("ascii").removesuffix(".")
        parsed = parsed.copy_with(host=host, fragment=None)
    # The library's own words would repeat a part of the address.
    except (httpx2.InvalidURL, UnicodeError, ValueError, TypeError):
        raise Refused("url_invalid", "This is no address that can be read.") from None
    if parsed.scheme not in ("http", "https"):
        raise Refused("url_scheme", "The address must begin with https:// or http://.")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise Refused("url_port", "The port of the address must be 1 to 65535.")
    if parsed.userinfo:
        raise Refused("url_userinfo", "The address must not hold a user name or password.")
    if not host:
        raise Refused("url_host", "The address names no host.")
    if not is_allowed(host, port_of(parsed)):
        _check_host(host)
    return parsed


def shown_address(url: str) -> str:
    """The address as pages, trails and mails show it: a name before the host and what follows “?” may be secrets.

    >>> shown_address("https://me:hush@feed.example:8443/list?key=hush#top")
    'https://feed.example:8443/list?…'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", "")) + ("?…" if parts.query else "")


def redirected(before: httpx2.URL, location: str) -> httpx2.URL:
    try:
        joined = str(before.join(location))
    except (httpx2.InvalidURL, UnicodeError, ValueError, TypeError):
        raise Refused("url_invalid", "The server redirects to an address that cannot be read.") from None
    try:
        target = parse(joined)
    except Refused as error:
        raise Refused(error.code, f"The server redirects elsewhere: {error.detail}") from None
    if before.scheme == "https" and target.scheme == "http":
        raise Refused("redirect_downgrade", "The server redirects from https to http.")
    return target


def port_of(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def origin(url: httpx2.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host, port_of(url)


def is_allowed(host: str, port: int) -> bool:
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{port}" in settings.OUTGOING_ALLOWED


def _check_host(host: str) -> None:
    """A literal address must be public; a name must be spelled as a full name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if not _NAME.fullmatch(host):
            raise Refused("url_host", "The host of the address is no name.") from None
        if _NUMBER.fullmatch(host.rpartition(".")[2]):
            raise Refused("url_host", f"{host} is an unusual spelling of an address.") from None
        if "." not in host:
            raise Refused("url_host", f"{host} is not a full name.") from None
    else:
        if not is_public(host):
            raise Refused("address_not_public", f"{host} is not a public address.")
