"""What every answer carries, whichever part of the house gave it: its id, and under /api/ what is left of the rate."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.cache import set_response_etag
from django.utils.http import parse_etags

from config.api_errors import is_api, request_id


class AnswerFrame:
    """Middleware, outermost but one: it also frames what another middleware refuses."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Kept with the request for lines of the log that are written when its context is gone.
        request.request_id = request_id()  # type: ignore[attr-defined]
        response = self.get_response(request)
        response.headers["X-Request-ID"] = request_id()
        if not is_api(request):
            return response
        if (left := getattr(request, "rate_limit", None)) is not None:
            response.headers["RateLimit-Limit"] = str(left.limit)
            response.headers["RateLimit-Remaining"] = str(left.remaining)
            response.headers["RateLimit-Reset"] = str(left.reset)
        if not response.has_header("Cache-Control"):
            response.headers["Cache-Control"] = "no-store, private"
        return _conditional(request, response)


def _conditional(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The answer, or 304 when the client has it already. The tag is that of the very bytes: it is never wrong about
    a figure that changes with time alone, such as whether a provider's list is fresh."""
    if request.method not in ("GET", "HEAD") or response.status_code != 200 or response.streaming:
        return response
    if "no-store" in response.headers["Cache-Control"]:
        return response
    if not response.has_header("ETag"):
        set_response_etag(response)
    known = parse_etags(request.headers.get("If-None-Match", ""))
    if "*" not in known and response.headers["ETag"] not in [tag.removeprefix("W/") for tag in known]:
        return response
    same = HttpResponseNotModified()
    for name, value in response.headers.items():
        if not name.lower().startswith("content-"):
            same.headers[name] = value
    return same
