"""Choosing light, dark or auto."""

import pytest
from django.test import Client


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_the_choice_is_kept_and_the_person_comes_back(client: Client, theme: str) -> None:
    response = client.post("/theme/", {"theme": theme, "next": "/catalog/?tier=secure"})
    assert response.status_code == 302
    assert response["Location"] == "/catalog/?tier=secure"
    assert response.cookies["theme"].value == theme
    assert response.cookies["theme"]["samesite"] == "Lax"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "",
        "\0",
    ],
)
def test_nobody_is_sent_elsewhere(client: Client, elsewhere: str) -> None:
    response = client.post("/theme/", {"theme": "dark", "next": elsewhere})
    assert response.status_code == 302
    assert response["Location"] == "/"


@pytest.mark.parametrize("theme", ["", "blue", "dark\0", "d" * 5000])
def test_a_word_that_is_no_theme_is_not_kept(client: Client, theme: str) -> None:
    assert "theme" not in client.post("/theme/", {"theme": theme, "next": "/"}).cookies


def test_a_link_cannot_change_the_theme(client: Client) -> None:
    assert client.get("/theme/?theme=dark").status_code == 405


def test_another_site_cannot_change_the_theme() -> None:
    assert Client(enforce_csrf_checks=True).post("/theme/", {"theme": "dark"}).status_code == 403
