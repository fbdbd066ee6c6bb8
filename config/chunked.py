"""Bodies that come in chunks, without a length: read whole, up to the bound, so that whoever reads them finds a length.

Django reads as many bytes as Content-Length says, none without one: such a body would silently be empty.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

# A client that sends more than this in vain is cut off.
MOST_DRAINED = 32 * 1024 * 1024
_STEP = 64 * 1024


class WholeBodies:
    """The WSGI application, behind a server that says where a body ends (`wsgi.input_terminated`) as gunicorn does.

    What is malformed or breaks off is the server's to answer: it alone can end the connection.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self.application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if in_chunks(environ) and environ.get("wsgi.input_terminated"):
            body = _whole(environ["wsgi.input"])
            if body is not None:
                environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
        return self.application(environ, start_response)


def in_chunks(environ: dict[str, Any]) -> bool:
    """Whether the request has a body of which nobody said how long it is."""
    return bool(environ.get("HTTP_TRANSFER_ENCODING")) and not environ.get("CONTENT_LENGTH")


def _whole(source: Any) -> bytes | None:
    """The body; None when it is too large."""
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
    found, read = io.BytesIO(), 0
    # The rest of what is too large is read too: a connection that is closed with bytes unread loses the answer.
    while read < MOST_DRAINED and (piece := source.read(_STEP)):
        read += len(piece)
        if read <= most:
            found.write(piece)
    return found.getvalue() if read <= most else None
