"""Chromium against a live server with the seeded catalog. What a page complains of fails its test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Page, Response

VIOLATIONS = """
window.addEventListener("securitypolicyviolation",
    (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


@pytest.fixture
def shop(transactional_db: None, live_server: Any) -> str:
    """The address of a console with the seeds of the demo."""
    call_command("load_catalog", verbosity=0)
    call_command("load_models", verbosity=0)
    return live_server.url


@pytest.fixture
def open_page(browser: Browser, shop: str) -> Iterator[Callable[..., Page]]:
    """Opens browsers with their own cookies; afterwards none may have complained, of its own scripts or of the CSP."""
    complaints: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        # A refused form is no fault of the page: the browser tells its status as an error.
        if message.type in ("error", "warning") and "a status of 400 " not in message.text:
            complaints.append(f"{message.type}: {message.text}")

    def answered(response: Response) -> None:
        if response.status >= 500:
            complaints.append(f"{response.status} {response.url}")

    def open_one(*, width: int = 1280, script: bool = True, scheme: Any = "light", user: Any = None) -> Page:
        context = browser.new_context(
            base_url=shop,
            viewport={"width": width, "height": 900},
            java_script_enabled=script,
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        context.set_default_timeout(15_000)
        if script:
            context.add_init_script(VIOLATIONS)
        if user is not None:
            client = Client()
            client.force_login(user)
            session = client.cookies[settings.SESSION_COOKIE_NAME].value
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": shop}])
        page = context.new_page()
        page.on("console", heard)
        page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
        page.on("response", answered)
        return page

    yield open_one
    for context in list(browser.contexts):
        context.close()
    assert complaints == []
