"""Account pages in Chromium: nothing refused by the content policy, nothing axe objects to, no sideways scrolling."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

VISITOR = ["account_login", "account_signup", "account_reset_password"]
ACCOUNT = ["account_email", "account_change_password", "mfa_activate_totp", "mfa_index", "usersessions_list"]


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (1280, "dark")])
def test_account_pages_hold_at_every_size(browser: Browser, live_server: LiveServer, width: int, scheme: Any) -> None:
    user = factories.make_user()
    with browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, base_url=live_server.url
    ) as context:
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        for name in VISITOR:
            assert_page_holds(page, name, width)
        page.goto(f"{reverse('account_login')}?next={reverse('account_reauthenticate')}")
        page.fill("[name=login]", user.email)
        for _ in ("to sign in", "to confirm"):
            page.fill("[name=password]", factories.PASSWORD)
            page.locator("main [type=submit]").first.click()
            page.wait_for_load_state()
        for name in ACCOUNT:
            assert_page_holds(page, name, width)
        assert complaints == []


def test_the_keyboard_reaches_the_content_first(browser: Browser, live_server: LiveServer) -> None:
    with browser.new_context(base_url=live_server.url) as context:
        page = context.new_page()
        page.goto(reverse("account_login"))
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip-link"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('main') !== null")


def assert_page_holds(page: Page, name: str, width: int) -> None:
    page.goto(reverse(name))
    assert page.url.endswith(reverse(name))
    found = Axe().run(page).response["violations"]
    assert [f"{name}: {one['id']} {one['nodes'][0]['target']}" for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
