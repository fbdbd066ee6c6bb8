"""Staff see what a machine will be sold for before they save it, with no script at all."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from catalog.models import Machine
from tests.catalog.test_admin import MACHINES, form_of, new_machine, send
from tests.factories import make_machine, make_provider, make_user


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    return client


def preview(staff: Client, url: str, data: dict[str, Any], button: str = "_preview") -> Any:
    response = staff.post(url, {**data, button: "on"})
    assert response.status_code == 200
    return response


def test_a_preview_shows_every_package_and_saves_nothing(staff: Client) -> None:
    response = preview(staff, f"{MACHINES}add/", new_machine(price_3_days_usd="50"))
    page = response.content.decode()
    for figure in ("$50.00", "$110.00", "$471.43", "$0.6944 / h", "$0.6548 / h", "nothing is saved yet"):
        assert figure in page, figure
    assert not Machine.objects.exists()
    assert not response.context["adminform"].form.errors


@pytest.mark.parametrize(
    ("weekly", "three", "thirty", "hourly"),
    [("110.00", "47.14", "471.43", "0.654762"), ("130.00", "55.71", "557.14", "0.773810")],
)
def test_three_and_thirty_days_follow_a_weekly_price(
    staff: Client, weekly: str, three: str, thirty: str, hourly: str
) -> None:
    asked = new_machine(price_7_days_usd=weekly, price_30_days_usd="999", hourly_usd="")
    response = preview(staff, f"{MACHINES}add/", asked, "_pro_rata")
    form = response.context["adminform"].form
    shown = [form[name].value() for name in ("price_3_days_usd", "price_30_days_usd", "hourly_usd")]
    assert shown == [three, thirty, hourly]
    assert f"${three}" in response.content.decode()
    assert not Machine.objects.exists()
    assert send(staff, f"{MACHINES}add/", form_as_sent(form)) == {}
    machine = Machine.objects.get()
    assert (machine.price_3_days_usd, machine.price_30_days_usd) == (Decimal(three), Decimal(thirty))


def form_as_sent(form: Any) -> dict[str, Any]:
    return {field.html_name: field.value() for field in form if field.value()}


@pytest.mark.parametrize("weekly", ["", "0", "-1", "NaN", "abc", "1.005", "9" * 30])
def test_a_weekly_price_that_is_none_is_asked_for(staff: Client, weekly: str) -> None:
    page = preview(staff, f"{MACHINES}add/", new_machine(price_7_days_usd=weekly), "_pro_rata").content.decode()
    assert "Write the price for 7 days first" in page
    assert not Machine.objects.exists()


def test_a_preview_of_a_machine_leaves_it_as_it_is_and_tells_its_mistakes(staff: Client) -> None:
    machine = make_machine()
    url = f"{MACHINES}{machine.pk}/change/"
    changed = {**form_of(staff, url), "price_7_days_usd": "99.00"}
    assert "$99.00" in preview(staff, url, changed).content.decode()
    response = preview(staff, url, {**changed, "gpu_count": "99"})
    assert set(response.context["adminform"].form.errors) == {"gpu_count"}
    machine.refresh_from_db()
    assert machine.price_7_days_usd == Decimal("110.00")
    assert machine.history.count() == 1


def test_the_reason_of_a_change_is_kept_in_the_history(staff: Client) -> None:
    machine = make_machine()
    url = f"{MACHINES}{machine.pk}/change/"
    assert send(staff, url, {**form_of(staff, url), "country": "FR", "change_reason": "Moved"}) == {}
    newest = machine.history.first()
    assert (newest.history_change_reason, newest.history_user.is_staff) == ("Moved", True)


def test_who_may_only_look_gets_no_button_and_no_preview(client: Client, db: None) -> None:
    looker = make_user(is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_machine"))
    client.force_login(looker)
    machine = make_machine(provider=make_provider())
    url = f"{MACHINES}{machine.pk}/change/"
    page = client.get(url).content.decode()
    assert 'name="_preview"' not in page
    assert client.post(url, {"price_7_days_usd": "1", "_preview": "on"}).status_code == 403
    assert client.post(url, {"price_7_days_usd": "1"}).status_code == 403
    assert client.post(f"{MACHINES}add/", {**new_machine(), "_preview": "on"}).status_code == 403
    machine.refresh_from_db()
    assert machine.price_7_days_usd == Decimal("110.00")


@pytest.mark.parametrize("button", ["_preview", "_save"])
@pytest.mark.parametrize(
    ("wrong", "named", "hidden"),
    [
        ({"hourly_usd": "abc"}, "Price per hour (USD)", "$110.00"),
        ({"price_7_days_usd": "-1"}, "Price for 7 days (USD)", "$110.00"),
        ({"price_3_days_usd": "x", "hourly_usd": ""}, "Price per hour (USD), Price for 3 days (USD)", "$110.00"),
        ({"memory_figure": "x"}, "Memory per GPU", "24.00 GiB"),
    ],
)
def test_a_wrong_form_shows_no_figure_that_was_saved_before(
    staff: Client, button: str, wrong: dict[str, str], named: str, hidden: str
) -> None:
    url = f"{MACHINES}{make_machine().pk}/change/"
    assert hidden in staff.get(url).content.decode()
    response = preview(staff, url, {**form_of(staff, url), **wrong}, button)
    page = response.content.decode()
    assert set(wrong) <= set(response.context["adminform"].form.errors)
    assert f"Not shown until this is corrected: {named}." in page
    assert hidden not in page
    # What follows from sound fields is still shown.
    assert ("24.00 GiB" if hidden == "$110.00" else "$110.00") in page


def test_history_says_that_a_value_was_empty(staff: Client) -> None:
    machine = make_machine(country=None)
    machine.country, machine.interruptible, machine.max_term_days = "FR", True, None
    machine.save()
    machine.country = None
    machine.save()
    page = staff.get(f"{MACHINES}{machine.pk}/history/").content.decode()
    for words in ("Country: (empty) → FR", "Country: FR → (empty)", "no → yes"):
        assert words in page, words
    assert "None" not in page


def test_an_older_version_opens_from_an_empty_form(staff: Client) -> None:
    machine = make_machine()
    version = machine.history.get().history_id
    assert staff.post(f"/admin/catalog/machine/{machine.pk}/history/{version}/", {}).status_code < 500
