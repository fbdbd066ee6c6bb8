"""The frame of every page: landmarks, no inline code, and words where something went wrong."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.exceptions import BadRequest, PermissionDenied
from django.test import Client, RequestFactory
from django.urls import reverse

from config import errors
from tests import factories

VISITOR_PAGES = [
    "account_login",
    "account_signup",
    "account_reset_password",
    "account_reset_password_done",
    "account_email_verification_sent",
    "account_inactive",
]
ACCOUNT_PAGES = [
    "account_email",
    "account_change_password",
    "account_logout",
    "account_reauthenticate",
    "account_request_reauthentication_code",
    "mfa_index",
    "mfa_activate_totp",
    "usersessions_list",
]
# What the content policy of the browser would refuse.
INLINE = re.compile(r"<style|\sstyle\s*=|<script(?![^>]*\ssrc=)|\son[a-z]+\s*=|javascript:", re.IGNORECASE)


def assert_is_a_page(html: str) -> None:
    assert html.lstrip().startswith("<!doctype html>")
    assert '<html lang="en"' in html
    assert len(re.findall(r"<h1[ >]", html)) == 1
    assert html.count("<main ") == 1
    assert 'class="skip-link" href="#main"' in html
    assert 'id="main"' in html
    assert re.search(r"<title>\s*\S[^<]* – Berth</title>", html)
    assert INLINE.search(html) is None, INLINE.search(html)
    assert "None" not in html
    ids = re.findall(r'\sid="([^"]*)"', html)
    assert len(ids) == len(set(ids)), "an id is there twice"
    assert set(re.findall(r'<label[^>]* for="([^"]*)"', html)) <= set(ids)


@pytest.mark.parametrize("name", VISITOR_PAGES)
def test_pages_of_a_visitor_stand_in_the_frame(client: Client, db: None, name: str) -> None:
    response = client.get(reverse(name))
    assert response.status_code == 200
    assert_is_a_page(response.text)


@pytest.mark.parametrize("name", ACCOUNT_PAGES)
def test_pages_of_an_account_stand_in_the_frame(client: Client, db: None, name: str) -> None:
    sign_in(client)
    response = client.get(reverse(name), follow=True)
    assert response.status_code == 200
    assert_is_a_page(response.text)


def test_two_factor_authentication_is_switched_on_and_asked_for(client: Client, db: None) -> None:
    from allauth.mfa.adapter import get_adapter
    from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time

    user = sign_in(client)
    page = client.get(reverse("mfa_activate_totp"))
    assert_is_a_page(page.text)
    secret = page.context["form"].secret
    assert secret in page.text
    code = format_hotp_value(hotp_value(secret, next(iter(yield_hotp_counters_from_time()))))
    done = client.post(reverse("mfa_activate_totp"), {"code": code}, follow=True)
    assert_is_a_page(done.text)
    for name in ("mfa_index", "mfa_view_recovery_codes", "mfa_generate_recovery_codes", "mfa_deactivate_totp"):
        assert_is_a_page(client.get(reverse(name), follow=True).text)
    assert get_adapter().is_mfa_enabled(user)

    client.logout()
    asked = client.post(reverse("account_login"), {"login": user.email, "password": factories.PASSWORD}, follow=True)
    assert_is_a_page(asked.text)
    assert "Enter your code" in asked.text


def test_a_code_by_mail_is_another_way_to_confirm(client: Client, db: None) -> None:
    user = sign_in(client)
    asked = client.post(reverse("account_request_reauthentication_code"), {"recipient": user.email}, follow=True)
    assert asked.request["PATH_INFO"] == reverse("account_confirm_reauthentication_code")
    assert_is_a_page(asked.text)


def test_a_link_of_a_mail_that_is_no_longer_good_says_so(client: Client, db: None) -> None:
    for url in (reverse("account_confirm_email", args=["gone"]), "/accounts/password/reset/key/1-gone/"):
        html = client.get(url).text
        assert_is_a_page(html)
        assert "This link no longer works" in html


def test_a_form_with_mistakes_names_each_at_the_top_and_at_its_field(client: Client, db: None) -> None:
    html = client.post(reverse("account_signup"), {"email": "nobody", "password1": "x"}).text
    assert_is_a_page(html)
    assert 'class="error-summary" role="alert" tabindex="-1"' in html
    for field in ("id_email", "id_password1", "id_organization_name"):
        assert f'href="#{field}"' in html
        assert f'id="{field}_error"' in html
        assert re.search(rf'aria-describedby="[^"]*{field}_error"', html)
    assert html.count('aria-invalid="true"') == 3


def test_sign_up_asks_for_the_organization_and_the_menu_then_leads_to_it(client: Client, db: None) -> None:
    assert "organization" in client.get(reverse("account_signup")).text.lower()
    answers = {"email": "new@example.com", "password1": factories.PASSWORD, "organization_name": "Harbour Works"}
    client.post(reverse("account_signup"), answers)
    html = client.get(reverse("account_email")).text
    assert "Harbour Works" in html
    assert "new@example.com" in html


@pytest.mark.parametrize(
    ("cookie", "media"), [("", " and (prefers-color-scheme: dark)"), ("dark", ""), ("light", None)]
)
def test_the_theme_is_in_the_page_before_any_script(client: Client, db: None, cookie: str, media: str | None) -> None:
    client.cookies["theme"] = cookie
    html = client.get(reverse("account_login")).text
    assert ("dark.css" in html) is (media is not None)
    if media is not None:
        assert f'media="screen{media}"' in html


def test_a_page_that_does_not_exist_says_where_to_go(client: Client, db: None) -> None:
    response = client.get("/no/such/page/")
    assert response.status_code == 404
    assert_is_a_page(response.text)
    assert reverse("catalog") in response.text
    assert "Reference for support" in response.text


def test_errors_show_only_words_meant_for_readers(rf: RequestFactory, db: None) -> None:
    request = rf.get("/")
    refused = errors.forbidden(request, PermissionDenied("Viewers cannot order."))
    assert (refused.status_code, "Viewers cannot order." in refused.text) == (403, True)
    unread = errors.bad_request(request, BadRequest("Unknown parameter colour."))
    assert (unread.status_code, "Unknown parameter colour." in unread.text) == (400, True)
    assert "secret" not in errors.bad_request(request, ValueError("secret")).text
    for response in (refused, unread):
        assert_is_a_page(response.text)


def test_a_stale_form_is_explained(db: None) -> None:
    response = Client(enforce_csrf_checks=True).post(reverse("account_login"), {"login": "a@example.com"})
    assert response.status_code == 403
    assert_is_a_page(response.text)
    assert "The form is out of date" in response.text


def test_the_page_of_a_fault_of_ours_needs_no_database(rf: RequestFactory) -> None:
    # Without the `db` fixture any query would fail this test.
    response = errors.server_error(rf.get("/"))
    assert response.status_code == 500
    assert_is_a_page(response.text)


def test_no_template_holds_inline_code() -> None:
    found = {
        str(path.relative_to(settings.BASE_DIR)): match.group()
        for path in (settings.BASE_DIR / "templates").rglob("*.html")
        if (match := INLINE.search(without_comments(path)))
    }
    assert found == {}


def test_dark_gives_every_colour_of_the_palette_a_value_of_its_own() -> None:
    def names(file: str) -> set[str]:
        return set(re.findall(r"^\s*(--(?!bs-)[\w-]+):|[;{]\s+(--(?!bs-)[\w-]+):", text(file), re.MULTILINE))

    def text(file: str) -> str:
        return (settings.BASE_DIR / "static" / file).read_text()

    def flat(file: str) -> set[str]:
        return {name for pair in names(file) for name in pair if name}

    same_in_both = {"--mono", "--hull-ink", "--hull-muted", "--buoy"}
    assert flat("palette.css") - flat("dark.css") == same_in_both


def test_the_stylesheets_of_our_own_stay_small() -> None:
    for name in ("palette.css", "dark.css", "frame.css", "app.css"):
        assert (settings.BASE_DIR / "static" / name).stat().st_size <= 20_000, name


def sign_in(client: Client) -> Any:
    """By the forms, as a person does: pages that change how one signs in ask for the password once more."""
    user = factories.make_user()
    client.post(reverse("account_login"), {"login": user.email, "password": factories.PASSWORD})
    client.post(reverse("account_reauthenticate"), {"password": factories.PASSWORD})
    assert Session.objects.count() == 1
    return user


def without_comments(path: Path) -> str:
    text = re.sub(r"{% comment %}.*?{% endcomment %}", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"{#.*?#}", "", text)
