"""The administration is entered by the console's own login page."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import PASSWORD, make_user


@pytest.mark.django_db
def test_a_visitor_is_sent_to_the_login_page_and_back(client: Client) -> None:
    response = client.get("/admin/", follow=True)
    assert response.redirect_chain[-1][0].startswith("/accounts/login/?next=")
    staff = make_user("staff@example.com", is_staff=True)
    response = client.post(
        "/accounts/login/?next=/admin/", {"login": staff.email, "password": PASSWORD, "next": "/admin/"}
    )
    assert response["Location"] == "/admin/"


def test_a_member_is_refused_by_name(client: Client, acme: Any) -> None:
    client.force_login(acme.owner)
    response = client.get("/admin/", follow=True)
    assert response.status_code == 403
    assert "staff" in response.content.decode()


@pytest.mark.django_db
def test_staff_enter(client: Client) -> None:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    assert client.get("/admin/").status_code == 200
