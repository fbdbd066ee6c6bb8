"""axe finds nothing on the main pages, in light and in dark, and the policy for scripts and styles is never broken."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import Page

from catalog.models import Machine

pytestmark = pytest.mark.browser

WORKLOAD = "task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"

CALCULATOR = "parameters=7&parameter_unit=billions&reserve_1_name=Cache&reserve_1_gib=6&reserve_1_reason=four+users"
STAGES = "stage_1_name=Encode&stage_1_weights_gib=1.5&stage_1_working_memory_gib=2&stage_1_load=step"


def violations(page: Page) -> list[str]:
    """What axe has to say, everything folded open first."""
    page.evaluate("document.querySelectorAll('main details').forEach((details) => { details.open = true; })")
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['target']} {node['html'][:200]}" for one in found for node in one["nodes"][:3]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_main_pages(open_page: Callable[..., Page], acme: Any, scheme: str) -> None:
    machine = Machine.objects.available(now=timezone.now()).filter(tier="community").first()
    page = open_page(scheme=scheme, user=acme.owner)
    addresses = [
        "/",
        "/catalog/",
        "/launch/",
        "/launch/result/",
        f"/launch/result/?{WORKLOAD}&budget_usd=60",
        f"/launch/result/?{WORKLOAD.replace('4096', '131072').replace('requests=1', 'requests=99')}",
        "/calculator/?parameters=x&reserve_1_gib=x",
        f"/calculator/?{CALCULATOR}",
        f"/calculator/stages/?{STAGES}",
        f"/orders/review/?machine={machine.pk}&{WORKLOAD}",
    ]
    for address in addresses:
        page.goto(address)
        assert violations(page) == [], address
    page.get_by_role("checkbox", name="I understand").check()
    page.get_by_role("button", name="Confirm order").click()
    page.wait_for_url("**/o/acme/orders/*-*/")
    assert violations(page) == []


def test_axe_finds_nothing_on_a_small_screen(open_page: Callable[..., Page]) -> None:
    page = open_page(width=375)
    for address in ["/", "/catalog/", "/launch/", f"/launch/result/?{WORKLOAD}", f"/calculator/?{CALCULATOR}"]:
        page.goto(address)
        assert violations(page) == [], address
