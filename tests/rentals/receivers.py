"""A server of a test's own that webhooks are sent to: it keeps what came, and answers as it is told."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`answer` gives status, headers and body for what came."""

    address: str = ""
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received], tuple[int, dict[str, str], bytes]] = lambda came: (200, {}, b"thanks")
    wait: float = 0

    @property
    def url(self) -> str:
        return f"http://{self.address}/hook"

    def ids(self) -> list[str]:
        return [came.headers["webhook-id"] for came in self.received]


@contextmanager
def receiving(settings: Any) -> Iterator[Receiver]:
    """A receiver on a port of its own, which the allow-list names."""
    receiver, over = Receiver(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            receiver.received.append(came)
            if receiver.wait:
                over.wait(receiver.wait)
            status, headers, answer = receiver.answer(came)
            try:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(answer)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)
            except OSError:
                # Whoever asked has given up.
                pass

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.address = f"127.0.0.1:{server.server_address[1]}"
    settings.OUTGOING_ALLOWED = [*settings.OUTGOING_ALLOWED, receiver.address]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def until(true: Callable[[], Any], seconds: float = 30) -> Any:
    """What becomes true in the end; a test gives up after `seconds`."""
    ends = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < ends, "it never came true"
        time.sleep(0.02)
    return found
