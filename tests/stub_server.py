"""A server whose answers are bytes that a test wrote down, and an internet whose names mean what a test says."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

Answer = Iterable[bytes]


@dataclass(frozen=True)
class Asked:
    """One request as it came in; names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class StubServer:
    """Listens on the loopback address; `answers` maps a path to bytes, or to a function that makes their pieces.

    A piece that cannot be sent ends the answer: the client has gone.
    """

    def __init__(self, wrap: Callable[[socket.socket], socket.socket] = lambda connection: connection) -> None:
        self.answers: dict[str, bytes | Callable[[Asked], Answer]] = {}
        self.asked: list[Asked] = []
        self.connections = 0
        self._wrap = wrap
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self.address = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # A shutdown wakes the thread that waits in accept(); closing alone would not.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(60)
            with self._wrap(connection) as stream:
                if asked := _read(stream):
                    self.asked.append(asked)
                    answer = self.answers.get(asked.target.partition("?")[0], respond(404))
                    for piece in [answer] if isinstance(answer, bytes) else answer(asked):
                        stream.sendall(piece)


def _read(stream: socket.socket) -> Asked | None:
    received = b""
    while b"\r\n\r\n" not in received:
        if not (piece := stream.recv(65536)):
            return None
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += stream.recv(65536)
    return Asked(method, target, headers, body)


def respond(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    """An answer with a length; an underscore in a header's name is a hyphen."""
    headers = {"Content_Length": str(len(body)), **headers}
    lines = [f"HTTP/1.1 {status} Words", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def redirect(location: str, status: int = 301, **headers: str) -> bytes:
    return respond(status, Location=location, **headers)


def endless(piece: bytes, head: bytes, *, every_seconds: float = 0, most: int = 1 << 31) -> Callable[[Asked], Answer]:
    """The head, then the piece again and again: two gigabytes of it unless the client goes."""

    def pieces(asked: Asked) -> Answer:
        yield head
        for _ in range(most // len(piece)):
            yield piece
            time.sleep(every_seconds)

    return pieces


class Internet:
    """What names mean and where public addresses lead, in place of the system's resolver and network.

    `names` has for each name the answers it gives one after the other, the last one for ever; `reach` puts
    a port of the loopback behind a public address. Whatever is neither that nor on the loopback takes no connections.
    """

    def __init__(self) -> None:
        self.names: dict[str, list[list[str]]] = {}
        self._ports: dict[str, int] = {}
        self.resolved: dict[str, int] = defaultdict(int)
        self.connected: list[str] = []
        self._getaddrinfo = socket.getaddrinfo
        self._create_connection = socket.create_connection

    def reach(self, address: str, port: int) -> None:
        self._ports[address] = port

    def getaddrinfo(self, host: str, port: int, *args: Any, **kwargs: Any) -> list[Any]:
        if host not in self.names:
            return self._getaddrinfo(host, port, *args, **kwargs)
        answers = self.names[host]
        found = answers[min(self.resolved[host], len(answers) - 1)]
        self.resolved[host] += 1
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in found
        ]

    def create_connection(self, address: tuple[str, int], *args: Any, **kwargs: Any) -> socket.socket:
        self.connected.append(address[0])
        if address[0] in self._ports:
            address = ("127.0.0.1", self._ports[address[0]])
        elif not address[0].startswith("127."):
            raise ConnectionRefusedError(address[0])
        return self._create_connection(address, *args, **kwargs)


@contextlib.contextmanager
def internet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Internet]:
    """The two ways out of a process, the resolver and new connections, led through an `Internet`."""
    world = Internet()
    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", world.getaddrinfo)
        patch.setattr(socket, "create_connection", world.create_connection)
        yield world
