"""How much anybody may send: refused by its stated length, before a byte of it is read or written."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from structlog.contextvars import get_contextvars

from config.api_errors import is_api


def upload_limit(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware. The API has a limit of its own, which its parser keeps."""

    def limited(request: HttpRequest) -> HttpResponse:
        if not is_api(request) and stated_length(request) > settings.UPLOAD_MAX_BYTES:
            context = {
                "most": settings.UPLOAD_MAX_BYTES // 2**20,
                "request_id": get_contextvars().get("request_id", ""),
            }
            return render(request, "413_files.html", context, status=413)
        return get_response(request)

    return limited


def stated_length(request: HttpRequest) -> int:
    """The length that a request states for its body; one that is no number has no body here."""
    digits = (request.META.get("CONTENT_LENGTH") or "").strip().lstrip("0")
    if not (digits.isascii() and digits.isdigit()):
        return 0
    return int(digits) if len(digits) < 20 else 10**20
