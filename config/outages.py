"""A database that is away or too busy is told as that: 503 and when to come again, in time, never a fault of ours."""

import logging
from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template import loader

from config.api_errors import is_api, problem_page, request_id
from rentals.errors import Unreachable

logger = logging.getLogger(__name__)

DATABASE_AWAY = (OperationalError, InterfaceError)


class DatabaseAwayPage:
    """Middleware: what a view or its page met when it asked the database."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, DATABASE_AWAY):
            return None
        logger.error("The database is away.", exc_info=exception)
        return database_away(request)


def database_away(request: HttpRequest) -> HttpResponse:
    """Without context processors, session and database, which must not be asked again."""
    # Nor by whoever still wants to write down who asked: each question waits for a connection.
    request.user = AnonymousUser()
    away = Unreachable()
    response: HttpResponse
    if is_api(request):
        response = problem_page(request, 503, away.message)
    else:
        page = loader.get_template("503_database.html").render({"request_id": request_id()})
        response = HttpResponse(page, status=503)
    response.headers["Retry-After"] = str(away.retry_after)
    return response
