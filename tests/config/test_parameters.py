"""No page answers an address as if a part of it were not there."""

import pytest
from django.test import Client

PAGES = (
    "/", "/catalog/", "/catalog/machines/{pk}/", "/launch/", "/launch/result/", "/calculator/", "/calculator/stages/",
    "/glossary/", "/help/secure-and-community/", "/help/memory/", "/status/",
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_parameter_that_a_public_page_does_not_know_is_named(client: Client, machine: object, page: str) -> None:
    address = page.format(pk=machine.pk)
    response = client.get(f"{address}?maximum_hourly=1")
    assert response.status_code == 400
    assert "maximum_hourly" in response.content.decode()
    assert client.get(f"{address}?utm_source=mail", follow=True).status_code == 200


def test_what_is_shown_of_it_is_text(client: Client, db: None) -> None:
    page = client.get("/status/?<script>alert(1)</script>\x00=1").content.decode()
    assert "<script>alert" not in page
    assert "This page has no parameters" in page
