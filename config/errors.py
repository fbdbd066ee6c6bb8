"""Error pages: what happened, what to do next, and the id under which the operator finds it in the log."""

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import loader
from structlog.contextvars import get_contextvars

from config.api_errors import is_api, problem_page


def _page(request: HttpRequest, status: int, template: str, exception: object = None) -> HttpResponse:
    # Only these two carry words of our own; the text of other exceptions is not meant for readers.
    told = str(exception) if type(exception) in (BadRequest, PermissionDenied) else ""
    context = {"detail": told, "request_id": get_contextvars().get("request_id", "")}
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


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _page(request, 403, "403_csrf.html")


def server_error(request: HttpRequest) -> HttpResponse:
    """Without context processors, session and database: whichever of them failed must not fail again here."""
    if is_api(request):
        return problem_page(request, 500)
    page = loader.get_template("500.html").render({"request_id": get_contextvars().get("request_id", "")})
    return HttpResponse(page, status=500)
