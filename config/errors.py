"""Error pages: what happened, what to do next, and the id under which the operator finds it in the log."""

from collections.abc import Callable

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template import loader

from config.api_errors import is_api, problem_page, request_id


def _page(request: HttpRequest, status: int, template: str, exception: object = None) -> HttpResponse:
    # Only these two carry words of our own; the text of other exceptions is not meant for readers.
    told = str(exception) if type(exception) in (BadRequest, PermissionDenied) else ""
    context = {"detail": told, "request_id": request_id()}
    return render(request, template, context, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return problem_page(request, 400)
    return _page(request, 400, "400.html", exception)


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
        if response.status_code != 405 or is_api(request) or getattr(response, "content", b""):
            return response
        page = _page(request, 405, "405.html")
        page.headers["Allow"] = response.headers.get("Allow", "GET")
        return page


def server_error(request: HttpRequest) -> HttpResponse:
    """Without context processors, session and database: whichever of them failed must not fail again here."""
    if is_api(request):
        return problem_page(request, 500)
    page = loader.get_template("500.html").render({"request_id": request_id()})
    return HttpResponse(page, status=500)
