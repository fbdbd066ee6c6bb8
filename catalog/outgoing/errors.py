"""Why a request to somebody else's address gave no answer."""

from __future__ import annotations


class OutgoingError(Exception):
    """A request that gave no answer; `code` is stable, `detail` a sentence without secrets."""

    def __init__(self, code: str, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.retry_after = retry_after


class Refused(OutgoingError):
    """Our rules forbid the request: whoever gave the address has to change it."""


class Failed(OutgoingError):
    """The network or the other server failed: it may be better the next time."""
