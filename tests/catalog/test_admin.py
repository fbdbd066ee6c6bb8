"""What staff can do with the catalog: every page loads and saves, and every mistake is an error on the form."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from catalog.models import Gpu, Machine, Option, Provider
from catalog.units import GB, GIB, MIB
from tests.factories import make_gpu, make_machine, make_provider, make_user

MACHINES = "/admin/catalog/machine/"


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    return client


def form_of(staff: Client, url: str) -> dict[str, Any]:
    """What the form at `url` would send if one pressed Save at once."""
    response = staff.get(url)
    assert response.status_code == 200
    forms = [response.context["adminform"].form]
    for formset in response.context["inline_admin_formsets"]:
        forms += [formset.formset.management_form, *formset.formset.forms]
    sent = {}
    for form in forms:
        for field in form:
            value = field.value()
            if value is None or value is False:
                continue
            sent[field.html_name] = "on" if value is True else value
    return sent


def send(staff: Client, url: str, data: dict[str, Any]) -> dict[str, Any]:
    """The errors of the form after sending `data`; none when it was saved."""
    response = staff.post(url, data)
    if response.status_code == 302:
        return {}
    assert response.status_code == 200
    errors: dict[str, Any] = response.context["adminform"].form.errors
    for formset in response.context["inline_admin_formsets"]:
        for row in formset.formset.forms:
            errors = {**errors, **row.errors}
        if formset.formset.non_form_errors():
            errors = {**errors, "inline": formset.formset.non_form_errors()}
    assert errors
    return errors


def new_machine(**changes: Any) -> dict[str, Any]:
    return {
        "name": "New",
        "provider": make_provider().id,
        "gpu": make_gpu().id,
        "gpu_count": 1,
        "tier": "secure",
        "country": "DE",
        "memory_figure": "24",
        "memory_unit": "GB",
        "memory_source": "datasheet",
        "listed": "on",
        "online": "on",
        "lots": 3,
        "hourly_usd": "0.654762",
        **changes,
    }


@pytest.mark.parametrize("kind", ["gpu", "provider", "machine", "option"])
def test_every_list_form_and_history_opens(staff: Client, kind: str) -> None:
    machine = make_machine(gpu=make_gpu(sources=["https://a.example/"]), country=None, gpu_memory_bytes=None)
    option = Option.objects.create(slug="storage", name="Storage", price_per_lot_day_usd=Decimal("0.50"))
    row = {"gpu": machine.gpu, "provider": machine.provider, "machine": machine, "option": option}[kind]
    base = f"/admin/catalog/{kind}/"
    for url in (base, f"{base}?q=a", f"{base}add/", f"{base}{row.pk}/change/", f"{base}{row.pk}/history/"):
        assert staff.get(url).status_code == 200, url


@pytest.mark.parametrize("kind", ["gpu", "provider", "machine", "option"])
def test_saving_a_form_as_it_opened_changes_nothing(staff: Client, kind: str) -> None:
    gpu = make_gpu(sources=["https://a.example/", "https://b.example/"], memory_bandwidth_gb_s=Decimal("1010.0"))
    machine = make_machine(gpu=gpu, lots=5, free_lots=2, price_3_days_usd=Decimal("47.14"))
    option = Option.objects.create(slug="storage", name="Storage", price_per_lot_day_usd=Decimal("0.50"))
    row: Any = {"gpu": gpu, "provider": machine.provider, "machine": machine, "option": option}[kind]
    before = type(row).objects.values().get(pk=row.pk)
    url = f"/admin/catalog/{kind}/{row.pk}/change/"
    assert send(staff, url, form_of(staff, url)) == {}
    after = type(row).objects.values().get(pk=row.pk)
    before.pop("updated_at", None), after.pop("updated_at", None)
    assert after == before


@pytest.mark.parametrize(
    "query", ["problems=any", "problems=memory", "tier=community", "country=DE", "q=%00", "o=1.-2"]
)
def test_the_list_filters(staff: Client, query: str) -> None:
    make_machine(country="DE")
    make_machine(tier="community", country=None, gpu_memory_bytes=None)
    assert staff.get(f"{MACHINES}?{query}", follow=True).status_code == 200


def test_the_problems_filter_finds_what_is_unknown(staff: Client) -> None:
    make_machine(name="Sound")
    make_machine(name="No memory", gpu_memory_bytes=None)
    make_machine(name="No place", country=None)
    for value, expected in (("memory", {"No memory"}), ("country", {"No place"}), ("any", {"No memory", "No place"})):
        response = staff.get(f"{MACHINES}?problems={value}")
        assert {machine.name for machine in response.context["cl"].result_list} == expected
    assert "memory missing: excluded from sizing" in staff.get(MACHINES).content.decode()


def test_a_hundred_machines_cost_as_many_queries_as_ten(staff: Client) -> None:
    gpu, provider = make_gpu(), make_provider()

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            staff.get(f"{MACHINES}?all=")
        return len(caught)

    for _ in range(10):
        make_machine(gpu=gpu, provider=provider)
    ten = queries()
    for _ in range(90):
        make_machine(gpu=gpu, provider=provider)
    assert queries() == ten


def test_a_new_machine_has_all_its_lots_free_and_its_packages_filled_in(staff: Client) -> None:
    assert send(staff, f"{MACHINES}add/", new_machine()) == {}
    machine = Machine.objects.get()
    assert (machine.lots, machine.free_lots) == (3, 3)
    assert (machine.price_7_days_usd, machine.price_30_days_usd) == (Decimal("110.00"), Decimal("471.43"))
    assert machine.gpu_memory_bytes == 24 * GB
    assert machine.history.count() == 1


@pytest.mark.parametrize(
    ("figure", "unit", "size"),
    [
        ("24", "GB", 24 * GB),
        ("24", "GiB", 24 * GIB),
        ("24564", "MiB", 24_564 * MIB),
        ("25757220864", "bytes", 24_564 * MIB),
        ("22.35", "GiB", 23_998_129_766),
    ],
)
def test_b085_memory_is_shown_again_as_it_was_entered(staff: Client, figure: str, unit: str, size: int) -> None:
    assert send(staff, f"{MACHINES}add/", new_machine(memory_figure=figure, memory_unit=unit)) == {}
    machine = Machine.objects.get()
    assert machine.gpu_memory_bytes == size
    url = f"{MACHINES}{machine.pk}/change/"
    for _ in range(2):
        form = form_of(staff, url)
        assert (form["memory_figure"], form["memory_unit"]) == (figure, unit)
        assert send(staff, url, form) == {}
    machine.refresh_from_db()
    assert machine.gpu_memory_bytes == size
    assert f"{size:,} bytes" in staff.get(url).content.decode()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "x" * 161}, "name"),
        ({"gpu": "999999"}, "gpu"),
        ({"gpu": "9" * 30}, "gpu"),
        ({"gpu": "abc"}, "gpu"),
        ({"provider": "-1"}, "provider"),
        ({"gpu_count": "0"}, "gpu_count"),
        ({"gpu_count": "99"}, "gpu_count"),
        ({"gpu_count": "9" * 30}, "gpu_count"),
        ({"tier": "gold"}, "tier"),
        ({"tier": "community", "lots": "1"}, "memory_source"),
        ({"tier": "community", "memory_source": "provider_report"}, "lots"),
        ({"country": "EU"}, "country"),
        ({"memory_figure": ""}, "memory_source"),
        ({"memory_source": ""}, "memory_source"),
        ({"memory_figure": "0"}, "memory_figure"),
        ({"memory_figure": "-24"}, "memory_figure"),
        ({"memory_figure": "NaN"}, "memory_figure"),
        ({"memory_figure": "24000000"}, "memory_figure"),
        ({"memory_figure": "1e999"}, "memory_figure"),
        ({"memory_unit": "G"}, "memory_unit"),
        ({"lots": "0"}, "lots"),
        ({"lots": "-1"}, "lots"),
        ({"lots": "9" * 30}, "lots"),
        ({"max_term_days": "0"}, "max_term_days"),
        ({"max_term_days": "99999999"}, "max_term_days"),
        ({"hourly_usd": ""}, "hourly_usd"),
        ({"hourly_usd": "0"}, "hourly_usd"),
        ({"hourly_usd": "-1"}, "hourly_usd"),
        ({"hourly_usd": "NaN"}, "hourly_usd"),
        ({"hourly_usd": "999999"}, "hourly_usd"),
        ({"price_7_days_usd": "0"}, "price_7_days_usd"),
        ({"price_30_days_usd": "1.005"}, "price_30_days_usd"),
        ({"price_3_days_usd": "-1"}, "price_3_days_usd"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_is_an_error_at_its_field_alone(staff: Client, changes: dict[str, Any], field: str) -> None:
    errors = send(staff, f"{MACHINES}add/", new_machine(**changes))
    assert set(errors) == {field}
    assert not Machine.objects.exists()


def test_a_name_taken_at_the_same_provider_is_an_error_at_the_name(staff: Client) -> None:
    machine = make_machine(name="New")
    assert set(send(staff, f"{MACHINES}add/", new_machine(provider=machine.provider_id))) == {"name"}
    assert send(staff, f"{MACHINES}add/", new_machine()) == {}


def test_lots_move_with_the_free_ones_and_not_below_what_is_rented(staff: Client) -> None:
    machine = make_machine(lots=5, free_lots=2)
    url = f"{MACHINES}{machine.pk}/change/"
    assert send(staff, url, {**form_of(staff, url), "lots": "4"}) == {}
    machine.refresh_from_db()
    assert (machine.lots, machine.free_lots) == (4, 1)
    assert set(send(staff, url, {**form_of(staff, url), "lots": "2"})) == {"lots"}
    machine.refresh_from_db()
    assert (machine.lots, machine.free_lots) == (4, 1)


def test_saving_never_brings_back_lots_that_were_sold_meanwhile(staff: Client) -> None:
    machine = make_machine(lots=5, free_lots=5)
    url = f"{MACHINES}{machine.pk}/change/"
    form = form_of(staff, url)
    Machine.objects.update(free_lots=1)
    assert send(staff, url, {**form, "country": "FR"}) == {}
    machine.refresh_from_db()
    assert (machine.country, machine.lots, machine.free_lots) == ("FR", 5, 1)


def test_free_lots_are_not_for_staff_to_write(staff: Client) -> None:
    machine = make_machine(lots=5, free_lots=2)
    url = f"{MACHINES}{machine.pk}/change/"
    assert send(staff, url, {**form_of(staff, url), "free_lots": "5", "gpu_memory_bytes": "1"}) == {}
    machine.refresh_from_db()
    assert (machine.free_lots, machine.gpu_memory_bytes) == (2, 24 * GIB)


def test_prices_that_staff_set_stay_and_empty_ones_follow_the_hourly_price(staff: Client) -> None:
    machine = make_machine(price_7_days_usd=Decimal("99.00"))
    url = f"{MACHINES}{machine.pk}/change/"
    assert send(staff, url, {**form_of(staff, url), "hourly_usd": "1.000000", "price_30_days_usd": ""}) == {}
    machine.refresh_from_db()
    assert (machine.price_7_days_usd, machine.price_30_days_usd) == (Decimal("99.00"), Decimal("720.00"))
    assert machine.price_3_days_usd is None


def test_what_a_feed_keeps_is_read_only_and_the_rest_is_not(staff: Client) -> None:
    provider = make_provider(feed_url="https://feed.example/", feed_format="native", refreshed_at=datetime.now(UTC))
    machine = make_machine(provider=provider)
    url = f"{MACHINES}{machine.pk}/change/"
    assert form_of(staff, url) == {"listed": "on"}
    assert send(staff, url, {"name": "Other", "lots": "9", "hourly_usd": "9", "price_7_days_usd": "9"}) == {}
    before = (machine.name, machine.lots, machine.hourly_usd, machine.price_7_days_usd, machine.gpu_memory_bytes)
    machine.refresh_from_db()
    assert before == (
        machine.name,
        machine.lots,
        machine.hourly_usd,
        machine.price_7_days_usd,
        machine.gpu_memory_bytes,
    )
    assert not machine.listed


def test_off_line_needs_a_reason_which_the_history_keeps(staff: Client) -> None:
    own = make_machine()
    fed = make_machine(provider=make_provider(feed_url="https://feed.example/", feed_format="native"))
    ask = {"action": "mark_off_line", "_selected_action": [own.pk, fed.pk]}
    staff.post(MACHINES, ask)
    assert Machine.objects.filter(online=True).count() == 2
    page = staff.post(MACHINES, {**ask, "reason": "Fan broken"}, follow=True).content.decode()
    assert "Machines now off-line: 1." in page
    own.refresh_from_db()
    fed.refresh_from_db()
    assert (own.online, fed.online) == (False, True)
    assert own.history.first().history_change_reason == "Fan broken"
    staff.post(MACHINES, {"action": "mark_on_line", "_selected_action": [own.pk], "reason": "Fan replaced"})
    own.refresh_from_db()
    assert own.online


def test_a_machine_under_rent_is_not_deleted_and_the_page_says_why(staff: Client) -> None:
    machine = make_machine(lots=2, free_lots=1)
    url = f"{MACHINES}{machine.pk}/delete/"
    assert "1 of its lots are not free. Unlist it instead." in staff.get(url).content.decode()
    assert staff.post(url, {"post": "yes"}).status_code in (200, 403)
    many = {"action": "delete_selected", "_selected_action": [machine.pk], "post": "yes"}
    assert staff.post(MACHINES, many).status_code in (200, 403)
    assert Machine.objects.exists()
    Machine.objects.update(free_lots=2)
    assert staff.post(url, {"post": "yes"}).status_code == 302
    assert not Machine.objects.exists()


def test_a_gpu_in_use_is_not_deleted(staff: Client) -> None:
    machine = make_machine()
    for url in (
        f"/admin/catalog/gpu/{machine.gpu_id}/delete/",
        f"/admin/catalog/provider/{machine.provider_id}/delete/",
    ):
        assert staff.post(url, {"post": "yes"}).status_code in (200, 403)
    assert Gpu.objects.exists()
    assert Provider.objects.exists()


def test_a_gpu_with_its_spellings(staff: Client) -> None:
    url = "/admin/catalog/gpu/add/"
    new = {
        **form_of(staff, url),
        "slug": "rtx-4090",
        "name": "RTX 4090",
        "vendor": "NVIDIA",
        "memory_gb_nominal": "24",
        "sources": "https://a.example/\nhttps://b.example/",
        "aliases-TOTAL_FORMS": "2",
        "aliases-0-name": "4090",
        "aliases-0-change_reason": "Sold as that",
        "aliases-1-name": "RTX4090",
        "aliases-1-change_reason": "Sold as that",
    }
    assert send(staff, url, new) == {}
    gpu = Gpu.objects.get()
    assert gpu.sources == ["https://a.example/", "https://b.example/"]
    assert set(gpu.aliases.values_list("name", flat=True)) == {"4090", "RTX4090"}
    other = {**new, "slug": "other", "name": "Other"}
    for change, field in (
        ({"slug": "rtx-4090"}, "slug"),
        ({"slug": "RTX 4090"}, "slug"),
        ({"name": "RTX 4090"}, "name"),
        ({"sources": "not an address"}, "sources"),
        ({"sources": "javascript:alert(1)"}, "sources"),
        ({"memory_gb_nominal": "0"}, "__all__"),
        ({"memory_gb_nominal": "9" * 20}, "memory_gb_nominal"),
        ({"aliases-1-name": "4090"}, "inline"),
    ):
        assert field in send(staff, url, {**other, **change}), change
    assert Gpu.objects.count() == 1


def test_a_feed_needs_both_halves_and_a_refresh_is_not_typed_in(staff: Client) -> None:
    url = "/admin/catalog/provider/add/"
    new = {"slug": "north", "name": "North", "feed_url": "https://feed.example/", "feed_interval_seconds": "60"}
    assert set(send(staff, url, new)) == {"feed_format"}
    assert send(staff, url, {**new, "feed_format": "berth", "refreshed_at_0": "2026-12-01"}) == {}
    assert Provider.objects.get().refreshed_at is None


@pytest.mark.parametrize("price", ["0", "-1", "NaN", "1e99", ""])
def test_an_option_without_a_price_is_an_error(staff: Client, price: str) -> None:
    new = {"slug": "storage", "name": "Storage", "price_per_lot_day_usd": price, "max_quantity": "1"}
    assert send(staff, "/admin/catalog/option/add/", new)
    assert not Option.objects.exists()


def test_an_earlier_version_can_be_brought_back_without_touching_the_stock(staff: Client) -> None:
    machine = make_machine(country="DE", lots=3, free_lots=3)
    url = f"{MACHINES}{machine.pk}/change/"
    assert send(staff, url, {**form_of(staff, url), "country": "FR"}) == {}
    Machine.objects.update(free_lots=1)
    history = staff.get(f"{MACHINES}{machine.pk}/history/").content.decode()
    assert "not given" in history
    assert "style=" not in history.split('id="change-history"')[1].split("</table>")[0]
    first = machine.history.last()
    version = f"{MACHINES}{machine.pk}/history/{first.history_id}/"
    assert staff.get(version).status_code == 200
    form = form_of(staff, url)
    assert staff.post(version, {**form, "country": "DE"}).status_code == 302
    machine.refresh_from_db()
    assert (machine.country, machine.lots, machine.free_lots) == ("DE", 3, 1)
