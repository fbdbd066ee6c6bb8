"""The theme as a person chooses it, with the keyboard and without script."""

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_the_chosen_theme_stays_from_page_to_page(browser: Browser, live_server: LiveServer, script: bool) -> None:
    with browser.new_context(java_script_enabled=script) as context:
        page: Page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"{live_server.url}/accounts/login/")
        page.locator("summary").filter(has_text="Theme").press("Enter")
        page.get_by_role("button", name="Dark").press("Enter")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        assert page.url == f"{live_server.url}/accounts/login/"
        page.goto(f"{live_server.url}/accounts/signup/")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        assert complaints == []
