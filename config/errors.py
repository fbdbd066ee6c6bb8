"""Error pages: what happened, what to do next, and the id under which the operator finds it in the log."""

import logging
import sys
from collections.abc import Callable, Iterable

from django.conf import settings
from django.core.exceptions import (
    BadRequest,
    DisallowedHost,
    PermissionDenied,
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template import loader
from redis.exceptions import RedisError

from config.api_errors import is_api, problem_page, request_id
from config.outages import DATABASE_AWAY, database_away

logger = logging.getLogger(__name__)


def _page(request: HttpRequest, status: int, template: str, exception: object = None) -> HttpResponse:
    context = {"detail": _told(exception), "request_id": request_id()}
    return render(request, template, context, status=status)


def _told(exception: object) -> str:
    """Words for readers; the text of exceptions that are not ours is not meant for them."""
    if isinstance(exception, DisallowedHost):
        return "This site is not served under the host name that was asked. Use the address you were given."
    if isinstance(exception, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
        return (
            f"The texts of a form, a pasted config.json among them, have {most:,} bytes ({most // 2**20} MiB) at most."
        )
    if isinstance(exception, TooManyFilesSent):
        return (
            f"A form may have {settings.DATA_UPLOAD_MAX_NUMBER_FILES or 0:,} files at most. Of a checkpoint in more, "
            "give model.safetensors.index.json."
        )
    if isinstance(exception, TooManyFieldsSent):
        return f"A form may have {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS or 0:,} fields and a query as many names."
    return str(exception) if type(exception) in (BadRequest, PermissionDenied) else ""


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return problem_page(request, 413 if isinstance(exception, RequestDataTooBig) else 400, _told(exception))
    if isinstance(exception, RequestDataTooBig):
        return _page(request, 413, "413.html", exception)
    return _page(request, 400, "400.html", exception)


def length_required(request: HttpRequest) -> HttpResponse:
    told = "Send the body with its Content-Length: this server does not read a body in chunks."
    return problem_page(request, 411, told) if is_api(request) else _page(request, 411, "400.html", BadRequest(told))


def method_not_allowed(request: HttpRequest, allowed: Iterable[str]) -> HttpResponse:
    response = problem_page(request, 405) if is_api(request) else _page(request, 405, "405.html")
    response.headers["Allow"] = ", ".join(allowed)
    return response


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return problem_page(request, 403)
    return _page(request, 403, "403.html", exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return problem_page(request, 404)
    return _page(request, 404, "404.html")


def too_many_requests(request: HttpRequest) -> HttpResponse:
    """What a form of the account answers past its rate; the rates of these pages are per minute."""
    response = render(request, "429.html", {"seconds": 60, "request_id": request_id()}, status=429)
    response.headers["Retry-After"] = "60"
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _page(request, 403, "403_csrf.html")


class MethodNotAllowedPage:
    """Middleware: a page that does not take a method says so on the page all errors have, never with an empty one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if response.status_code != 405 or is_api(request) or getattr(response, "content", None):
            return response
        page = _page(request, 405, "405.html")
        page.headers["Allow"] = response.headers.get("Allow", "GET")
        return page


class CacheAwayPage:
    """Middleware: signing in counts wrong passwords in the cache. While that is away nobody signs in, and is told so.

    It fails closed: a server without counts would be one that takes any number of guesses.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, RedisError):
            return None
        logger.error("The cache is away.", exc_info=exception)
        if is_api(request):
            return problem_page(request, 503)
        page = _page(request, 503, "503.html")
        page.headers["Retry-After"] = "60"
        return page


def server_error(request: HttpRequest) -> HttpResponse:
    """Without context processors, session and database: whichever of them failed must not fail again here."""
    # What a middleware met is the exception that is being handled at this moment.
    if isinstance(sys.exc_info()[1], DATABASE_AWAY):
        return database_away(request)
    if is_api(request):
        return problem_page(request, 500)
    page = loader.get_template("500.html").render({"request_id": request_id()})
    return HttpResponse(page, status=500)
