"""What a broken or hostile server answers, and what a guarded request makes of it: `hostile_answers(sink)`.

`code` is the code of the error that the request ends with; None where there is an answer, which its reader then judges.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import brotli

from tests.stub_server import Answer, Asked, endless, redirect, respond

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MEGABYTE = b"[" + b" " * (1024 * 1024 - 1)
# A third of a gigabyte in a third of a megabyte.
BOMB_BYTES = 300 * 1024 * 1024


@dataclass(frozen=True)
class Hostile:
    """One answer: how it is sent, and the code it ends with."""

    answer: bytes | Callable[[Asked], Answer]
    code: str | None


def hostile_answers(sink: int = 0) -> dict[str, Hostile]:
    """All of them by name; `sink` is the port of a server on the loopback that must never be asked.

    The name inside.example has to mean the loopback.
    """
    quick = {
        "a login page": Hostile(respond(200, b"<html><form>Sign in</form></html>", Content_Type="text/html"), None),
        "an empty body": Hostile(respond(200), None),
        "null": Hostile(respond(200, b"null"), None),
        "half of a JSON": Hostile(respond(200, b'{"offers": [{"id": 1, "na'), None),
        "NaN": Hostile(respond(200, b'{"offers": [{"id": 1, "price": NaN}]}'), None),
        "less than its length": Hostile(respond(200, b'{"offers": []', Content_Length="5000"), "protocol"),
        "no HTTP": Hostile(b"220 mail.example ESMTP\r\n", "protocol"),
        "nothing": Hostile(b"", "protocol"),
        "endless headers": Hostile(endless(b"X-Padding: " + b"x" * 8000 + b"\r\n", b"HTTP/1.1 200 OK\r\n"), "protocol"),
        "two lengths": Hostile(respond(200, b"ab", Content_Length="2\r\nContent-Length: 3"), "protocol"),
        "gzip that is none": Hostile(respond(200, b"not packed", Content_Encoding="gzip"), "encoding"),
        "a packing nobody asked for": Hostile(respond(200, b"(\xb5/\xfd", Content_Encoding="zstd"), "encoding"),
        "packed twice": Hostile(
            respond(200, gzip.compress(gzip.compress(b"[]")), Content_Encoding="gzip, gzip"), "encoding"
        ),
        "a redirect without a place": Hostile(respond(301), "status_301"),
        "a redirect loop": Hostile(redirect("/loop"), "too_many_redirects"),
        "a redirect that cannot be read": Hostile(redirect("http://[::1"), "url_invalid"),
    }
    targets = {
        "http://127.0.0.1:SINK/": "address_not_public",
        "http://[::1]:SINK/": "address_not_public",
        "http://[::ffff:127.0.0.1]:SINK/": "address_not_public",
        "http://[64:ff9b::7f00:1]:SINK/": "address_not_public",
        "//127.0.0.1:SINK/": "address_not_public",
        "http://localhost:SINK/": "url_host",
        "http://2130706433:SINK/": "url_host",
        "http://0x7f.1:SINK/": "url_host",
        "http://0177.0.0.1:SINK/": "url_invalid",
        "http://feed.example@127.0.0.1:SINK/": "url_userinfo",
        "http://169.254.169.254/latest/meta-data/": "address_not_public",
        "http://10.0.0.1/": "address_not_public",
        "http://inside.example:SINK/": "address_not_public",
        "file:///etc/passwd": "url_scheme",
        "gopher://127.0.0.1:SINK/": "url_scheme",
    }
    moved = {
        f"a redirect to {target}": Hostile(redirect(target.replace("SINK", str(sink))), code)
        for target, code in targets.items()
    }
    refusals = {
        f"status {status}": Hostile(respond(status, b"No.", Retry_After="120"), f"status_{status}")
        for status in (401, 403, 404, 429, 500, 503)
    }
    return quick | moved | refusals


def slow_answers() -> dict[str, Hostile]:
    """One byte a second, in the body, in the headers and nowhere at all."""
    return {
        "a byte a second": Hostile(endless(b"[", respond(200, Content_Length="100000"), every_seconds=1), "too_slow"),
        "a byte of a header a second": Hostile(endless(b"X", b"HTTP/1.1 200 OK\r\n", every_seconds=1), "too_slow"),
        "a hundred continues a second": Hostile(
            endless(b"HTTP/1.1 100 Continue\r\n\r\n", b"", every_seconds=0.01), "too_slow"
        ),
    }


def large_answers() -> dict[str, Hostile]:
    """Bodies beyond every limit, plain and packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    # Blocks that hold nothing: packed bytes without end that unpack to none.
    nothing = packer.flush(zlib.Z_SYNC_FLUSH) + packer.flush(zlib.Z_SYNC_FLUSH)
    head = nothing[:10]
    empty_block = b"\x00\x00\x00\xff\xff"
    zeros = bytes(BOMB_BYTES)
    chunk = b"%x\r\n%s\r\n" % (len(MEGABYTE), MEGABYTE)
    plain = respond(200, Content_Length=str(1 << 31))
    bombs = {
        "gzip": gzip.compress(zeros, 6),
        "deflate": zlib.compress(zeros, 6),
        "br": brotli.compress(zeros, quality=1),
    }
    return {
        "two gigabytes": Hostile(endless(MEGABYTE, plain), "too_large"),
        "two gigabytes in chunks": Hostile(endless(chunk, CHUNKED), "too_large"),
        "packings of nothing": Hostile(
            endless(empty_block * 50_000, respond(200, Content_Encoding="gzip", Content_Length=str(1 << 31)) + head),
            "too_large",
        ),
        **{
            f"a bomb of {name}": Hostile(respond(200, bomb, Content_Encoding=name), "too_large")
            for name, bomb in bombs.items()
        },
    }
