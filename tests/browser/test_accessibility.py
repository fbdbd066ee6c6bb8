"""axe finds nothing on the main pages, in light and in dark, and the policy for scripts and styles is never broken."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import Page, expect

from catalog.models import Machine
from rentals.models import Membership, WebhookAttempt
from tests.factories import (
    make_api_key,
    make_delivered,
    make_endpoint,
    make_invitation,
    make_member,
    make_order,
    make_own_model,
    make_search,
    make_ssh_key,
)

pytestmark = pytest.mark.browser

WORKLOAD = "task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"

CALCULATOR = "parameters=7&parameter_unit=billions&reserve_1_name=Cache&reserve_1_gib=6&reserve_1_reason=four+users"
STAGES = "stage_1_name=Encode&stage_1_weights_gib=1.5&stage_1_working_memory_gib=2&stage_1_load=step"

ANSWERS = [
    "/launch/result/?task=fine_tune&model=llama-3.1-8b&precision_bits=4&max_hourly_usd=0.20",
    "/launch/result/?task=image&model=sd3.5-large&reserve_gib=2&reserve_reason=a+web+server&countries=EU",
    "/launch/result/?task=notebook&gpu_memory_gb=24&tier=secure&countries=EU",
]
FORMS = [
    "/launch/result/?task=fine_tune&rank=0&method=full",
    "/launch/?task=notebook",
    "/launch/?task=run&model=whisper-tiny",
]


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_pages_of_other_tasks(open_page: Callable[..., Page], scheme: str) -> None:
    page = open_page(scheme=scheme)
    for width, addresses in [(1280, [*ANSWERS, *FORMS]), (375, ANSWERS)]:
        page.set_viewport_size({"width": width, "height": 900})
        for address in addresses:
            page.goto(address)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            assert violations(page) == [], address


def test_axe_finds_nothing_on_a_small_screen(open_page: Callable[..., Page]) -> None:
    page = open_page(width=375)
    for address in ["/", "/catalog/", "/launch/", f"/launch/result/?{WORKLOAD}", f"/calculator/?{CALCULATOR}"]:
        page.goto(address)
        assert violations(page) == [], address


def test_an_organizations_pages_are_one_row_on_a_small_screen(open_page: Callable[..., Page], acme: Any) -> None:
    page = open_page(width=375, user=acme.owner)
    for name in ["", "orders/", "members/", "models/", "policy/", "planner/"]:
        page.goto(f"/o/acme/{name}")
        row = page.locator(".org-nav")
        height = row.bounding_box()["height"]  # type: ignore[index]  # it is on the page
        assert height < 60, name
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, name
        assert violations(page) == [], name
    last = row.get_by_role("link", name="Planner")
    row.get_by_role("link", name="Overview").focus()
    for _ in range(row.get_by_role("link").count() - 1):
        page.keyboard.press("Tab")
    box = last.bounding_box()
    assert last.evaluate("link => link === document.activeElement")
    assert box is not None
    assert 0 <= box["x"] < box["x"] + box["width"] <= 375


def test_axe_finds_nothing_on_the_pages_of_webhooks_and_searches(open_page: Callable[..., Page], acme: Any) -> None:
    endpoint, now = make_endpoint(acme, "https://example.com/" + "a-long-path/" * 30), timezone.now()
    make_search(acme, now=now)
    make_order(acme)
    delivery = endpoint.deliveries.get()
    WebhookAttempt.objects.create(
        organization=acme, delivery=delivery, at=now, milliseconds=7, status=500, problem="No.", answer="x" * 500
    )
    one = f"/o/acme/webhooks/{endpoint.pk}/"
    for width in (375, 1280):
        page = open_page(width=width, user=acme.owner)
        log = f"{one}deliveries/{delivery.pk}/"
        for address in ("/o/acme/webhooks/", one, f"{one}remove/", log, "/o/acme/searches/"):
            page.goto(address)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            assert violations(page) == [], address


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 375)])
def test_axe_finds_nothing_on_an_organizations_pages(
    open_page: Callable[..., Page], acme: Any, scheme: str, width: int
) -> None:
    """With a row of everything, so that no page is looked at empty; each has one heading of the first level."""
    admin = make_member(acme, "admin")
    membership = Membership.objects.get(user=admin)
    key, endpoint = make_api_key(acme, name="nightly", actor=admin, via="page"), make_endpoint(acme)
    make_ssh_key(acme)
    make_search(acme, by=admin)
    model = make_own_model(acme)
    make_invitation(acme)
    order = make_order(acme, Machine.objects.available(now=timezone.now()).filter(tier="secure").first())
    make_delivered(order)
    month = f"{order.starts_at:%Y-%m}"
    addresses = [
        "", "launch/", f"launch/result/?{WORKLOAD}", "orders/", f"orders/{order.pk}/", "members/",
        f"members/{membership.pk}/remove/", f"members/{membership.pk}/transfer/", "keys/", f"keys/{key.pk}/revoke/",
        "ssh-keys/", "webhooks/", f"webhooks/{endpoint.pk}/", "searches/", "planner/", "statements/",
        f"statements/{month}/", "policy/", "activity/", "models/", f"models/{model.slug}/",
        f"models/{model.slug}/delete/",
    ]  # fmt: skip
    page = open_page(scheme=scheme, width=width, user=acme.owner)
    for address in addresses:
        page.goto(f"/o/acme/{address}")
        assert page.locator("h1").count() == 1, address
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
        assert violations(page) == [], address


def test_a_problem_takes_the_focus_and_its_link_leads_to_the_field(open_page: Callable[..., Page], acme: Any) -> None:
    admin = make_member(acme, "admin")
    make_api_key(acme, name="nightly", actor=admin, via="page")
    page = open_page(width=375, user=acme.owner)
    removal = f"members/{Membership.objects.get(user=admin).pk}/remove/"
    for address, button, fill in (
        ("keys/", "Make key", {}),
        ("policy/", "Save policy", {"Limit per order": "much"}),
        ("webhooks/", "Add endpoint", {}),
        ("ssh-keys/", "Add key", {}),
        ("members/", "Send invitation", {}),
        ("models/", "Read and keep the model", {}),
        (removal, "Remove", {}),
    ):
        page.goto(f"/o/acme/{address}")
        for label, text in fill.items():
            page.get_by_label(label).fill(text)
        page.get_by_role("button", name=button, exact=True).click()
        summary = page.get_by_role("alert")
        expect(summary).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.matches('input, select, textarea')"), address
        assert violations(page) == [], address
