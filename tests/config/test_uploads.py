"""What is sent is bounded: refused by its length before it is read, and read no further than a header reaches."""

import io
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.test import Client

from config.uploads import stated_length
from tests.sizing.checkpoints.made import safetensors
from tests.sizing.own_files import config

MIB = 2**20
OWN = "/launch/own/"
BOUNDARY = "a-boundary-of-the-tests"


class Stream(io.RawIOBase):
    """A body that is made as it is read and counts how much of it was."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.chunks, self.rest, self.taken = chunks, b"", 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self.rest:
            self.rest = next(self.chunks, b"")
        size = len(self.rest) if size < 0 else size
        piece, self.rest = self.rest[:size], self.rest[size:]
        self.taken += len(piece)
        return piece


def part(name: str, filename: str = "") -> bytes:
    file = f'; filename="{filename}"\r\nContent-Type: application/octet-stream' if filename else ""
    return f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode()


def send(path: str, head: bytes, size: int, *, stated: int | None = None) -> tuple[int, Stream, int, str]:
    """A form with a file of `size` zeros after `head`: its status, its stream, the peak of memory, the page."""
    tail = f"\r\n--{BOUNDARY}--\r\n".encode()

    def body() -> Iterator[bytes]:
        yield head
        for _ in range(size // MIB):
            yield bytes(MIB)
        yield tail

    stream, statuses = Stream(body()), []
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "https" if settings.SECURE_SSL_REDIRECT else "http",
        "wsgi.input": stream,
        "wsgi.errors": io.StringIO(),
        "CONTENT_TYPE": f"multipart/form-data; boundary={BOUNDARY}",
        "CONTENT_LENGTH": str(len(head) + size // MIB * MIB + len(tail) if stated is None else stated),
        "HTTP_HOST": "localhost",
    }
    tracemalloc.start()
    response = WSGIHandler()(environ, lambda status, headers: statuses.append(int(status.split()[0])))
    page = b"".join(response).decode()
    response.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return statuses[0], stream, peak, page


@pytest.fixture(autouse=True)
def _database(db: None) -> None:
    pass


@pytest.mark.parametrize("path", [OWN, "/accounts/login/", "/nowhere/"])
def test_200_mb_are_refused_and_cost_no_memory(path: str) -> None:
    status, stream, peak, _ = send(path, part("weights", "model.safetensors"), 200 * MIB)
    assert status == 413
    # What is thrown away unread keeps the connection whole; it is bounded, and none of it is parsed.
    assert stream.taken <= 33 * MIB
    assert peak < 24 * MIB


def test_the_refusal_says_how_much_is_taken_and_what_to_do() -> None:
    page = send(OWN, part("weights", "model.safetensors"), 200 * MIB)[3]
    assert "32 MiB at most" in page
    assert "head -c" in page


def test_what_is_allowed_goes_to_disk_and_not_into_memory() -> None:
    fields = part("config_text") + config() + b"\r\n" + part("weights", "model.safetensors")
    status, _, peak, _ = send(OWN, fields, 30 * MIB)
    # Without the token of a form it is refused, after all of it was parsed.
    assert status == 403
    assert peak < 24 * MIB


def test_a_file_is_read_no_further_than_a_header_reaches() -> None:
    """30 MiB of zeros after a header that says it is short: its form comes back, within memory."""
    client = Client()
    header = b"\x00" * 8
    data = {"config_text": config().decode(), "weights": io.BytesIO(header + bytes(30 * MIB))}
    data["weights"].name = "model.safetensors"
    tracemalloc.start()
    response = client.post(OWN, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert response.status_code == 400
    assert "weights" in response.context["form"].errors
    # The test's own client holds the body as well, several times over.
    assert peak < 320 * MIB


@pytest.mark.parametrize(
    ("header", "length"),
    [
        ("", 0), ("x", 0), ("-5", 0), ("12", 12), ("0" * 40 + "99", 99), ("9" * 5000, 10**20), ("²", 0),
    ],
)  # fmt: skip
def test_a_stated_length_is_read_whatever_it_is(header: str, length: int) -> None:
    class Request:
        META = {"CONTENT_LENGTH": header}

    assert stated_length(Request()) == length  # type: ignore[arg-type]  # all that is read of a request


def test_a_pasted_text_beyond_the_limit_of_a_form_is_refused_as_too_large() -> None:
    response = Client(raise_request_exception=False).post(OWN, {"config_text": "x" * 2 * MIB})
    assert response.status_code == 413
    assert "a pasted config.json among them, have 1,048,576 bytes (1 MiB) at most" in response.text


def shards(number: int) -> list[io.BytesIO]:
    files = [io.BytesIO(safetensors({f"model.layers.{layer}.w": ("BF16", (1,))})) for layer in range(number)]
    for place, file in enumerate(files):
        file.name = f"model-{place}.safetensors"
    return files


def test_the_headers_of_more_than_a_hundred_shards_are_read_together() -> None:
    """They are refused for what they hold, one layer each, and not for their number."""
    response = Client().post(OWN, {"config_text": config().decode(), "weights": shards(180)})
    assert "180 layers" in str(response.context["form"].errors["weights"])


def test_more_files_than_are_read_name_the_limit_and_the_index_and_keep_the_answers() -> None:
    response = Client().post(OWN, {"config_text": config().decode(), "own_name": "Mine", "weights": shards(301)})
    assert response.status_code == 400
    said = str(response.context["form"].errors["weights"])
    assert "301 files are more than the 300" in said
    assert "model.safetensors.index.json" in said
    assert 'value="Mine"' in response.text


def test_files_beyond_what_a_form_may_have_are_refused_by_their_number() -> None:
    data = {"config_text": config().decode(), "weights": shards(1001)}
    response = Client(raise_request_exception=False).post(OWN, data)
    assert response.status_code == 400
    assert "1,000 files at most" in response.text
    assert "model.safetensors.index.json" in response.text
