"""Connections to what was checked, within one deadline and one number of bytes."""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpcore2
import httpx2

from catalog.outgoing.addresses import is_allowed
from catalog.outgoing.errors import Failed, Refused
from catalog.outgoing.public import is_public

MOST_ADDRESSES = 4
# Headers come on top of a body, of several answers when they redirect.
MOST_BYTES_OF_HEADERS = 1024 * 1024
# A server that takes a few bytes at a time must not stretch one write beyond the deadline.
_WRITTEN_AT_ONCE = 8 * 1024


class Trip:
    """What all requests of one fetch share: the deadline, and how much may come over the wire."""

    def __init__(self, deadline: float, most_bytes: int) -> None:
        self.deadline = deadline
        self.most_bytes = most_bytes
        self.wire_bytes = 0

    def seconds_left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self.too_slow()
        return left

    def count(self, wire_bytes: int) -> None:
        """Packed bytes have the limit of unpacked ones: some packings of nothing have no end. Headers come on top."""
        self.wire_bytes += wire_bytes
        if self.wire_bytes > self.most_bytes + MOST_BYTES_OF_HEADERS:
            raise self.too_large()

    def too_slow(self) -> Failed:
        return Failed("too_slow", "The server did not answer in full within the time limit.")

    def too_large(self) -> Failed:
        return Failed("too_large", f"The body is larger than {self.most_bytes:,} bytes.")


class GuardedTransport(httpx2.BaseTransport):
    """The connections of one request, made by the guard below."""

    def __init__(self, trip: Trip) -> None:
        # The system's certificates, or those that SSL_CERT_FILE names.
        self._pool = httpcore2.ConnectionPool(ssl_context=ssl.create_default_context(), network_backend=_Guard(trip))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        # By the library below, whose connections may be replaced openly.
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        answer = self._pool.handle_request(
            httpcore2.Request(request.method, url, headers=request.headers.raw, content=request.read())
        )
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _Guard(httpcore2.NetworkBackend):
    """Resolves a name once, checks what it means, and connects to exactly that."""

    def __init__(self, trip: Trip) -> None:
        self._trip = trip

    def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> httpcore2.NetworkStream:
        addresses = _resolve(host, port, self._trip)
        if not is_allowed(host, port):
            # All of them: a name that means a private address among others is a trap, or becomes one.
            for address in addresses:
                if not is_public(address):
                    raise Refused("address_not_public", f"{host} leads to an address that is not public.")
        addresses = addresses[:MOST_ADDRESSES]
        for number, address in enumerate(addresses):
            try:
                # One that does not answer leaves time for the next.
                seconds = self._trip.seconds_left() / (len(addresses) - number)
                return _Stream(httpcore2.SyncBackend().connect_tcp(address, port, seconds), self._trip)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        raise Failed("no_connection", "The server does not take connections.")


def _resolve(host: str, port: int, trip: Trip) -> list[str]:
    """The addresses of a host, in a thread of its own: the system's resolver knows no deadline."""
    answers: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put(list(dict.fromkeys(str(address[0]) for *_, address in found)))
        except (OSError, UnicodeError):
            answers.put(None)

    threading.Thread(target=ask, name="resolver", daemon=True).start()
    try:
        addresses = answers.get(timeout=trip.seconds_left())
    except queue.Empty:
        raise trip.too_slow() from None
    if not addresses:
        raise Failed("no_such_host", f"The name {host} cannot be resolved.")
    return addresses


class _Stream(httpcore2.NetworkStream):
    """A connection whose every read and write has what is left of the deadline, and whose bytes are counted."""

    def __init__(self, inner: httpcore2.NetworkStream, trip: Trip) -> None:
        self._inner = inner
        self._trip = trip

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        received = self._inner.read(max_bytes, self._trip.seconds_left())
        self._trip.count(len(received))
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITTEN_AT_ONCE):
            self._inner.write(buffer[start : start + _WRITTEN_AT_ONCE], self._trip.seconds_left())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, self._trip.seconds_left())
        return _Stream(inner, self._trip)

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
