"""Bodies in chunks, with a wrong length or on demand, as raw bytes on the socket of gunicorn and of the test server."""

import json
import re
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from tests.sizing.own_files import config

# A question that needs no data.
READ = "/api/v1/models/read"
QUESTION = json.dumps({"config": json.loads(config()), "name": "My Llama"}).encode()
CHUNKS = "Transfer-Encoding: chunked"
JSON = "Content-Type: application/json"


class Wire:
    """One connection, on which bytes are sent as they are."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.stream = self.socket.makefile("rb")

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.close()
        self.socket.close()

    def ask(self, address: str, *headers: str, body: bytes = b"", method: str = "POST") -> tuple[int, Any]:
        lines = [f"{method} {address} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]
        self.socket.sendall("\r\n".join(lines).encode("latin-1") + body)
        return self.answer()

    def answer(self) -> tuple[int, Any]:
        """Status and body: problem details and JSON as what they mean, pages as text."""
        status = int(self.stream.readline().split()[1])
        self.headers = {}
        while line := self.stream.readline().strip().decode("latin-1"):
            name, _, value = line.partition(": ")
            self.headers[name.lower()] = value
        text = self._body(status).decode()
        return status, json.loads(text) if "json" in self.headers.get("content-type", "") else text

    def _body(self, status: int) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            pieces = []
            while size := int(self.stream.readline(), 16):
                pieces.append(self.stream.read(size + 2)[:-2])
            self.stream.readline()
            return b"".join(pieces)
        if "content-length" in self.headers:
            return self.stream.read(int(self.headers["content-length"]))
        return b"" if status == 100 else self.stream.read()


def chunked(body: bytes, size: int = 7) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])


def test_a_body_in_chunks_is_read_whole(gunicorn: int) -> None:
    with Wire(gunicorn) as wire:
        status, answer = wire.ask(READ, CHUNKS, JSON, body=chunked(QUESTION))
        assert (status, answer["name"]) == (200, "My Llama")
        again = wire.ask(READ, JSON, f"Content-Length: {len(QUESTION)}", body=QUESTION)
        assert again == (status, answer)


def test_a_form_in_chunks_is_read_whole(gunicorn: int) -> None:
    with Wire(gunicorn) as wire:
        status, page = wire.ask("/calculator/", method="GET")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert token, status
        form = f"csrfmiddlewaretoken={token[1]}&theme=dark&next=/glossary/".encode()
        cookie = f"Cookie: {wire.headers['set-cookie'].partition(';')[0]}"
        encoded = "Content-Type: application/x-www-form-urlencoded"
        assert wire.ask("/theme/", cookie, encoded, CHUNKS, body=chunked(form))[0] == 302
        assert wire.headers["location"] == "/glossary/"


def test_a_body_in_chunks_has_the_bound_of_every_body(gunicorn: int) -> None:
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    with Wire(gunicorn) as wire:
        padded = QUESTION + b" " * (most - len(QUESTION))
        assert wire.ask(READ, CHUNKS, JSON, body=chunked(padded, 100_000))[0] == 200
        status, problem = wire.ask(READ, CHUNKS, JSON, body=chunked(padded + b" ", 100_000))
        assert (status, problem["code"]) == (413, "payload_too_large")
        assert wire.headers["content-type"] == "application/problem+json"
        assert wire.ask("/theme/", CHUNKS, body=chunked(b"x" * most * 3, 100_000))[0] == 413
        # The connection is still good for the next question.
        assert wire.ask(READ, CHUNKS, JSON, body=chunked(QUESTION))[0] == 200


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([CHUNKS], b"zz\r\n{}\r\n0\r\n\r\n"),
        ([CHUNKS], b"-1\r\n{}\r\n0\r\n\r\n"),
        ([CHUNKS], b"2\r\n{}x0\r\n\r\n"),
        ([CHUNKS, "Content-Length: 2"], b"2\r\n{}\r\n0\r\n\r\n"),
        ([CHUNKS, CHUNKS], b"2\r\n{}\r\n0\r\n\r\n"),
        (["Transfer-Encoding: identity", "Content-Length: 2"], b"{}"),
        (["Content-Length: -2"], b"{}"),
        (["Content-Length: +2"], b"{}"),
        (["Content-Length: two"], b"{}"),
        (["Content-Length: 2", "Content-Length: 3"], b"{}"),
    ],
)
def test_a_body_whose_end_two_servers_could_see_differently_is_refused(
    gunicorn: int, headers: list[str], body: bytes
) -> None:
    """By the server itself, which then ends the connection: what follows is no request."""
    with Wire(gunicorn) as wire:
        assert wire.ask(READ, JSON, *headers, body=body)[0] == 400
        assert wire.headers["connection"] == "close"
        assert wire.stream.read() == b""


def test_a_body_that_breaks_off_is_not_taken_for_a_whole_one(gunicorn: int) -> None:
    for headers, body in (
        ([CHUNKS], chunked(QUESTION)[:-5]),
        ([f"Content-Length: {len(QUESTION) + 1}"], QUESTION[:-1]),
    ):
        with Wire(gunicorn) as wire:
            lines = [f"POST {READ} HTTP/1.1", "Host: 127.0.0.1", JSON, *headers, "", ""]
            wire.socket.sendall("\r\n".join(lines).encode() + body)
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.stream.readline()[9:12] in (b"", b"400")


def test_what_is_beyond_the_stated_length_is_no_part_of_the_body(gunicorn: int) -> None:
    with Wire(gunicorn) as wire:
        length = f"Content-Length: {len(QUESTION)}"
        assert (
            wire.ask(READ, JSON, length, body=QUESTION + b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")[0] == 200
        )
        assert wire.answer() == (200, "ok\n")


def test_who_waits_for_a_go_ahead_gets_it(gunicorn: int) -> None:
    with Wire(gunicorn) as wire:
        expecting = f"POST {READ} HTTP/1.1\r\nHost: 127.0.0.1\r\n{JSON}\r\nExpect: 100-continue\r\n"
        for framing, body in ((f"Content-Length: {len(QUESTION)}", QUESTION), (CHUNKS, chunked(QUESTION))):
            wire.socket.sendall(f"{expecting}{framing}\r\n\r\n".encode())
            assert wire.answer()[0] == 100
            wire.socket.sendall(body)
            assert wire.answer()[0] == 200


@pytest.mark.django_db(transaction=True)
def test_a_server_that_cannot_tell_where_a_body_ends_says_so(live_server: Any) -> None:
    """As Django's own for development."""
    port = urlsplit(live_server.url).port
    assert port
    with Wire(port) as wire:
        status, problem = wire.ask(READ, CHUNKS, JSON, body=chunked(QUESTION))
        assert (status, problem["code"]) == (411, "length_required")
    with Wire(port) as wire:
        status, page = wire.ask("/theme/", CHUNKS, body=chunked(b"theme=dark"))
        assert (status, "Content-Length" in page) == (411, True)


@pytest.mark.parametrize(
    ("request_line", "header", "status"),
    [
        ("GET /api/v1/gpus", "X: y", 400),
        ("GET  HTTP/1.1", "X: y", 400),
        ("get /api/v1/gpus HTTP/1.1", "X: y", 400),
        ("GET /api/v1/gpus HTTP/1.1", "X y", 400),
        ("GET /api/v1/gpus HTTP/1.1", "Idempotency-Key: a\0b", 400),
        (f"GET /api/v1/gpus?cursor={'x' * 8200} HTTP/1.1", "X: y", 414),
        ("GET /api/v1/gpus HTTP/1.1", f"X: {'y' * 8200}", 431),
        ("POST /api/v1/gpus HTTP/1.1", "Transfer-Encoding: brotli", 501),
    ],
)
def test_what_is_no_http_is_refused_as_the_manual_says(
    gunicorn: int, request_line: str, header: str, status: int
) -> None:
    with Wire(gunicorn) as wire:
        wire.socket.sendall(f"{request_line}\r\nHost: 127.0.0.1\r\n{header}\r\n\r\n".encode("latin-1"))
        found, page = wire.answer()
        assert (found, wire.headers["connection"], "<html>" in page) == (status, "close", True)
