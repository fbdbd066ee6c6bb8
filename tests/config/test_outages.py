"""A database that is away, as clients are told of it; tests/system/test_outages.py takes real ones away."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from config import errors
from config.outages import DatabaseAwayPage
from rentals.errors import Unreachable


def middleware() -> DatabaseAwayPage:
    return DatabaseAwayPage(lambda request: HttpResponse())


def caught_by_django(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What a middleware met is handled while it is being raised."""
    try:
        raise exception
    except type(exception):
        return errors.server_error(request)


@pytest.mark.parametrize("exception", [OperationalError("gone"), InterfaceError("closed")])
def test_a_page_that_cannot_ask_the_database_says_so_and_when_to_come_again(
    rf: RequestFactory, exception: Exception
) -> None:
    # Without the `db` fixture any query would fail this test.
    for response in (
        middleware().process_exception(rf.get("/"), exception),
        caught_by_django(rf.get("/"), exception),
    ):
        assert response is not None
        assert (response.status_code, response["Retry-After"]) == (503, "2")
        assert "stored either completely or not at all" in response.text
        assert type(exception).__name__ not in response.text


def test_an_address_of_the_api_says_it_in_json(rf: RequestFactory) -> None:
    response = caught_by_django(rf.get("/api/v1/orders"), OperationalError("gone"))
    assert (response.status_code, response["Content-Type"]) == (503, "application/problem+json")
    assert Unreachable().message in response.text


def test_nobody_asks_the_database_again_for_who_is_signed_in(rf: RequestFactory) -> None:
    request = rf.get("/")
    middleware().process_exception(request, OperationalError("gone"))
    assert isinstance(request.user, AnonymousUser)


def test_other_faults_stay_faults(rf: RequestFactory) -> None:
    assert middleware().process_exception(rf.get("/"), ValueError("x")) is None
    assert caught_by_django(rf.get("/"), ValueError("x")).status_code == 500
