"""One request with its redirects, and what came of it."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from io import BytesIO

import httpcore2
import httpx2

from catalog.outgoing.addresses import origin, parse, redirected
from catalog.outgoing.errors import Failed, Refused
from catalog.outgoing.guard import GuardedTransport, Trip

MOST_SECONDS = 30.0
MOST_BYTES = 64 * 1024 * 1024
MOST_REDIRECTS = 5
LONGEST_RETRY_AFTER = 24 * 60 * 60
# What a refusal says beside its status is read no further.
MOST_BYTES_OF_A_REFUSAL = 64 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_DECODED = ("gzip", "deflate", "br")
_OURS = {"User-Agent": "Berth", "Accept": "*/*", "Accept-Encoding": "gzip"}
# These are the client's own to say.
_NOT_A_CALLERS = ("host", "connection", "content-length", "transfer-encoding", "cookie", "proxy-authorization")


@dataclass(frozen=True)
class Fetched:
    """An answer, whatever its status.

    Units: `wire_bytes` came over the connections, with headers and before unpacking; `retry_after` is in seconds.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    wire_bytes: int
    retry_after: int | None = None

    def expect_success(self) -> Fetched:
        """The answer itself when its status is 2xx.

        Raises: Failed with the code `status_<number>` and the server's Retry-After.
        """
        if 200 <= self.status < 300:
            return self
        words = _STATUS_WORDS.get(self.status, "")
        detail = f"The server answers {self.status}{' ' if words else ''}{words}."
        raise Failed(f"status_{self.status}", detail, retry_after=self.retry_after)


_STATUS_WORDS = {status.value: status.phrase for status in HTTPStatus}


def fetch(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    seconds: float = MOST_SECONDS,
    most_bytes: int = MOST_BYTES,
    cut: bool = False,
) -> Fetched:
    """The answer of an address. GET and HEAD follow redirects; any other method gives back the 3xx as it is.

    A body longer than `most_bytes` after unpacking is an error, or is cut off there with `cut`; what comes with a
    status of 400 and above is always cut. The caller's `headers` go to the origin of `url` alone.

    Raises: Refused, Failed.
    """
    trip = Trip(time.monotonic() + seconds, most_bytes)
    target = parse(url)
    carried = {name: value for name, value in (headers or {}).items() if name.lower() not in _NOT_A_CALLERS}
    for _ in range(MOST_REDIRECTS + 1):
        fetched, location = _one_request(target, method, carried, content, trip, cut)
        if location is None or method not in ("GET", "HEAD"):
            return fetched
        before, target = target, redirected(target, location)
        if origin(before) != origin(target):
            carried = {}
    raise Failed("too_many_redirects", f"The server redirects more than {MOST_REDIRECTS} times.")


def retry_after_seconds(value: str | None, now: datetime) -> int | None:
    """How long a Retry-After header asks to wait, in seconds or as a date; None when it cannot be read.

    Source: RFC 9110, 10.2.3.
    """
    if value is None:
        return None
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,10}", value):
        seconds = int(value)
    else:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        seconds = int(((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())
    return min(max(seconds, 0), LONGEST_RETRY_AFTER)


def _one_request(
    url: httpx2.URL,
    method: str,
    headers: Mapping[str, str],
    content: bytes | None,
    trip: Trip,
    cut: bool,
) -> tuple[Fetched, str | None]:
    """One request and its answer, and where a redirect leads; the body of a redirect is not read."""
    # A client for each: no connection, cookie or header of one is there for the next.
    client = httpx2.Client(transport=GuardedTransport(trip), trust_env=False, follow_redirects=False, timeout=None)
    try:
        with client, client.stream(method, url, headers={**_OURS, **headers}, content=content) as response:
            location = response.headers.get("location") if response.status_code in _REDIRECTS else None
            if location is not None:
                body = b""
            elif response.status_code >= 400:
                body = _words_of_a_refusal(response, trip)
            else:
                body = _body(response, trip, cut)
            fetched = Fetched(
                response.status_code,
                response.headers,
                body,
                trip.wire_bytes,
                retry_after_seconds(response.headers.get("retry-after"), datetime.now(UTC)),
            )
            return fetched, location
    # Without the cause: the libraries' own words may repeat what must stay unsaid.
    except httpcore2.TimeoutException:
        raise trip.too_slow() from None
    except httpcore2.ConnectError as error:
        raise _not_connected(error) from None
    except httpx2.DecodingError:
        raise Failed("encoding", "The body cannot be unpacked.") from None
    except (httpcore2.LocalProtocolError, UnicodeError):
        raise Refused("request_invalid", "A header of the request cannot be sent as it is.") from None
    except httpcore2.RemoteProtocolError:
        raise Failed("protocol", "The server breaks off, or does not speak HTTP.") from None
    except httpcore2.NetworkError:
        raise Failed("connection_lost", "The connection was lost.") from None


def _body(response: httpx2.Response, trip: Trip, cut: bool) -> bytes:
    encodings = [name.strip().lower() for name in response.headers.get("content-encoding", "").split(",")]
    encodings = [name for name in encodings if name not in ("", "identity")]
    if len(encodings) > 1 or any(name not in _DECODED for name in encodings):
        raise Failed("encoding", "The body is packed in a way that was not asked for.")
    # BytesIO gives its buffer away without copying it: one body in memory, not two.
    read = BytesIO()
    # Unpacked piece by piece, a megabyte at most.
    for piece in response.iter_bytes():
        trip.seconds_left()
        if read.tell() + len(piece) > trip.most_bytes:
            if not cut:
                raise trip.too_large()
            read.write(piece[: trip.most_bytes - read.tell()])
            break
        read.write(piece)
    return read.getvalue()


def _words_of_a_refusal(response: httpx2.Response, trip: Trip) -> bytes:
    """The beginning of what a server says beside a status of 400 and above; its status counts, whatever this is."""
    read = b""
    try:
        for piece in response.iter_bytes():
            read += piece
            if len(read) >= min(trip.most_bytes, MOST_BYTES_OF_A_REFUSAL):
                break
    except (Failed, httpx2.DecodingError, httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError):
        pass
    return read[:MOST_BYTES_OF_A_REFUSAL]


def _not_connected(error: httpcore2.ConnectError) -> Failed:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Failed("tls", f"The certificate is not valid: {cause.verify_message}.")
        if isinstance(cause, ssl.SSLError):
            return Failed("tls", "The server does not speak TLS as it should.")
        cause = cause.__cause__ or cause.__context__
    return Failed("no_connection", "The server does not take connections.")
