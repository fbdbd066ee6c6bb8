"""Accounts: no form tells strangers who has one, and wrong passwords lock out the one who types them alone."""

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.test import Client

import config.settings
from rentals.templatetags.sessions import browser
from tests import factories


@pytest.fixture
def as_in_production(settings: Any) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ACCOUNT_RATE_LIMITS = config.settings.ACCOUNT_RATE_LIMITS


NEW = {"password1": "correct horse battery", "organization_name": "Umbrella"}


def answer(client: Client, url: str, email: str, **fields: str) -> tuple[int, str]:
    """What a stranger reads, without what differs between any two pages."""
    response = client.post(url, {"email": email, **fields}, follow=True)
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"|<code>[\w-]{36}</code>', "", response.text)
    return response.status_code, text.replace(email, "the address")


@pytest.mark.parametrize(
    ("url", "fields"),
    [
        ("/accounts/signup/", NEW),
        ("/accounts/password/reset/", {}),
    ],
)
def test_a_stranger_reads_the_same_whether_an_address_has_an_account_or_not(
    db: None, as_in_production: None, url: str, fields: dict[str, str]
) -> None:
    user = factories.make_user()
    EmailAddress.objects.update_or_create(user=user, email=user.email, defaults={"verified": True, "primary": True})
    taken, free = (answer(Client(), url, email, **fields) for email in (user.email, "nobody@example.com"))
    assert taken == free
    assert taken[0] == 200


def test_adding_a_taken_address_reads_as_adding_a_free_one(db: None, as_in_production: None) -> None:
    taken, user = factories.make_user(), factories.make_user()
    client = Client()
    client.force_login(user)
    EmailAddress.objects.get_or_create(user=user, email=user.email, defaults={"verified": True, "primary": True})
    client.post("/accounts/login/", {"login": user.email, "password": factories.PASSWORD})
    client.post("/accounts/reauthenticate/", {"password": factories.PASSWORD})
    pages = []
    for email in (taken.email, "nobody@example.com"):
        pages.append(answer(client, "/accounts/email/", email, action_add="1"))
        EmailAddress.objects.get(user=user, email=email).delete()
    assert pages[0] == pages[1]


@pytest.mark.parametrize("verification", ["mandatory", "none"])
def test_an_address_that_another_account_never_confirmed_does_not_keep_its_owner_out(
    client: Client, db: None, settings: Any, verification: str
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = verification
    EmailAddress.objects.create(user=factories.make_user(), email="owner@example.com", verified=False, primary=False)
    answer(
        client, "/accounts/signup/", "owner@example.com", password1="correct horse battery", organization_name="Mine"
    )
    assert User.objects.filter(email="owner@example.com").count() == 1


@pytest.mark.parametrize("flags", [{"verified": True, "primary": False}, {"verified": False, "primary": True}])
def test_an_address_that_an_account_signs_in_with_is_taken(client: Client, db: None, flags: dict[str, bool]) -> None:
    user = factories.make_user()
    EmailAddress.objects.filter(user=user).delete()
    EmailAddress.objects.create(user=user, email="owner@example.com", **flags)
    answer(
        client, "/accounts/signup/", "Owner@example.com", password1="correct horse battery", organization_name="Mine"
    )
    assert not User.objects.filter(email__iexact="owner@example.com").exists()


def sign_in(email: str, password: str, address: str) -> bool:
    client = Client(REMOTE_ADDR=address)
    return client.post("/accounts/login/", {"login": email, "password": password}).status_code == 302


def test_wrong_passwords_lock_out_neither_the_office_nor_the_owner_elsewhere(db: None, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = config.settings.ACCOUNT_RATE_LIMITS
    victim, colleague = factories.make_user(), factories.make_user()
    office, home = "198.51.100.7", "203.0.113.9"
    for _ in range(20):
        assert not sign_in(victim.email, "wrong", office)
    assert not sign_in(victim.email, factories.PASSWORD, office), "the sixth try waits, whatever the password"
    assert sign_in(victim.email, factories.PASSWORD, home)
    assert sign_in(colleague.email, factories.PASSWORD, office)


def test_guesses_from_many_addresses_are_bounded_too(db: None, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = {**config.settings.ACCOUNT_RATE_LIMITS, "login_failed_anywhere": "6/600s/key"}
    victim = factories.make_user()
    for last in range(8):
        sign_in(victim.email, "wrong", f"198.51.100.{last}")
    assert not sign_in(victim.email, factories.PASSWORD, "203.0.113.9")


def test_a_form_sent_too_often_is_the_console_s_own_page(client: Client, db: None, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"signup": "1/m/ip"}
    client.post("/accounts/signup/", {})
    response = client.post("/accounts/signup/", {})
    assert (response.status_code, response.headers["Retry-After"]) == (429, "60")
    assert "Wait 60 seconds" in response.text
    assert '<main id="main"' in response.text


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126 Safari/537 "
            "Edg/126.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1 Version/17.5 Mobile Safari/604.1",
            "Safari on iPhone",
        ),
        ("curl/8.5.0", "curl"),
        ("\x00", "Unknown browser"),
        ("something of its own", "something of its own"),
    ],
)
def test_a_session_is_named_by_its_browser_and_system(user_agent: str, name: str) -> None:
    assert browser(user_agent) == name


@pytest.mark.parametrize(("verification", "spoken_of"), [("mandatory", True), ("none", False)])
def test_pages_speak_of_verified_addresses_only_where_they_are_verified(
    client: Client, db: None, settings: Any, verification: str, spoken_of: bool
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = verification
    client.force_login(factories.make_user())
    html = client.get("/accounts/email/").text
    assert ("erif" in html.partition("<main")[2]) is spoken_of
