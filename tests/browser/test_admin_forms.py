"""Staff's forms in a browser: figures follow while one types, and everything works with no script as well."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from catalog.models import Machine
from sizing.models import AiModel
from tests.factories import make_user

pytestmark = pytest.mark.browser


def test_the_worked_example_and_the_packages_follow_while_one_types(open_page: Callable[..., Page]) -> None:
    page = open_page(user=make_user(is_staff=True, is_superuser=True))
    model = AiModel.objects.get(slug="llama-3.1-8b")
    page.goto(f"/admin/sizing/aimodel/{model.pk}/change/")
    example = page.locator(".field-worked_example")
    expect(example).to_contain_text("19.55 GiB")
    page.fill("[name=parameters]", "7000000000")
    expect(example).to_contain_text("13.04 GiB")
    page.goto("/admin/catalog/machine/add/")
    page.fill("[name=price_7_days_usd]", "110.00")
    page.fill("[name=hourly_usd]", "0.7")
    expect(page.locator(".field-packages")).to_contain_text("$504.00")
    model.refresh_from_db()
    assert model.parameters == 8_030_261_248


def test_a_weekly_price_fills_the_others_without_a_script(open_page: Callable[..., Page]) -> None:
    page = open_page(user=make_user(is_staff=True, is_superuser=True), script=False, width=375)
    before = Machine.objects.count()
    page.goto("/admin/catalog/machine/add/")
    page.fill("[name=price_7_days_usd]", "110.00")
    page.get_by_role("button", name=re.compile("pro rata")).click()
    expect(page.locator("[name=price_30_days_usd]")).to_have_value("471.43")
    expect(page.locator(".field-packages")).to_contain_text("$47.14")
    assert Machine.objects.count() == before


def test_a_gpu_is_completed_and_a_file_goes_in(open_page: Callable[..., Page]) -> None:
    page = open_page(user=make_user(is_staff=True, is_superuser=True))
    page.goto("/admin/catalog/machine/add/")
    page.locator(".field-gpu .select2-selection").click()
    page.keyboard.type("rtx-4090")
    expect(page.locator(".select2-results__option", has_text="RTX 4090").first).to_be_visible()
    machine = Machine.objects.filter(provider__feed_url="", country="DE")[0]
    content = f'provider,name,country\n{machine.provider.slug},"{machine.name}",FR\n'
    page.goto("/admin/catalog/machine/import/")
    page.set_input_files("[name=file]", {"name": "m.csv", "mimeType": "text/csv", "buffer": content.encode()})
    page.fill("[name=reason]", "Moved")
    page.get_by_role("button", name="Look at what would change").click()
    expect(page.locator("del")).to_have_text("DE")
    page.get_by_role("button", name="Import 1 row").click()
    expect(page.get_by_text("Imported m.csv: 0 new, 1 changed, 0 unchanged.")).to_be_visible()
    machine.refresh_from_db()
    assert machine.country == "FR"
