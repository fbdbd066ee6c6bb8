"""A listing with lots under rent: its row stays as it is, and no more of it is sold than its list still offers."""

import html
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin import site
from django.test import Client
from django.utils import timezone

from catalog.models import Availability, FeedAbsence, Gpu, Machine, PlaceAlias, Provider
from catalog.version import catalog_version
from rentals.endings import end_due_orders
from rentals.errors import OffLine, SoldOut
from rentals.invariants import violations
from tests.catalog.feeding import START, Clock, counts, fed_provider, feed, machine_of, row
from tests.factories import make_ai_model, make_basket, make_order, place

pytestmark = pytest.mark.django_db


@pytest.fixture
def aspen(gpu: Any) -> Provider:
    return fed_provider()


def secure(lots: int, **fields: Any) -> dict[str, Any]:
    return row(1, tier="secure", lots=lots, **fields)


@pytest.fixture
def rented(aspen: Provider, acme: Any) -> Machine:
    """Four lots, one of them under rent."""
    feed(aspen, [secure(4, free_lots=4), row(2)])
    make_order(acme, machine_of(1), placement={"now": START})
    return machine_of(1)


def to_sell() -> int:
    """The same by the row and by the table."""
    number = machine_of(1).lots_to_sell
    found = [lots for lots in range(1, 9) if Machine.objects.available(lots=lots, now=START).filter(tier="secure")]
    if machine_of(1).availability(START) != Availability.UNCONFIRMED:
        assert max(found, default=0) == number
    else:
        assert not found
    return max(found, default=0)


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ({"lots": 4, "free_lots": 3}, 3),
        ({"lots": 4, "free_lots": 2}, 2),
        ({"lots": 4, "free_lots": 1}, 1),
        ({"lots": 4, "free_lots": 0}, 0),
        ({"lots": 9, "free_lots": 9}, 3),
        # How many there are: one of them is ours.
        ({"lots": 4}, 3),
        ({"lots": 3}, 2),
        ({"lots": 2}, 1),
        ({"lots": 1}, 0),
        ({"lots": 9}, 3),
        ({"lots": 4, "free_lots": 3, "rentable": False}, 0),
    ],
)
def test_no_more_is_sold_than_the_list_has_free(
    aspen: Provider, rented: Machine, told: dict[str, Any], left: int
) -> None:
    stored = list(Machine.objects.filter(pk=rented.pk).values())
    run = feed(aspen, [secure(**told), row(2)])
    assert counts(run) == {"unchanged": 1, "rented": 1}
    assert to_sell() == left
    # The row itself is never written to while a lot of it is under rent.
    assert list(Machine.objects.filter(pk=rented.pk).values()) == stored
    assert not violations()


def test_what_an_order_takes_is_taken_from_what_can_be_sold(aspen: Provider, rented: Machine, acme: Any) -> None:
    feed(aspen, [secure(4, free_lots=2), row(2)])
    make_order(acme, machine_of(1), placement={"now": START})
    assert (machine_of(1).free_lots, to_sell()) == (2, 1)
    make_order(acme, machine_of(1), placement={"now": START})
    assert (machine_of(1).free_lots, to_sell()) == (1, 0)
    assert machine_of(1).availability(START) == Availability.OUT_OF_STOCK
    with pytest.raises(SoldOut) as refused:
        make_order(acme, machine_of(1), placement={"now": START})
    assert refused.value.available == 0
    assert not violations()


def test_an_order_for_more_than_the_list_offers_is_sold_out_and_says_how_many_there_are(
    aspen: Provider, rented: Machine, acme: Any
) -> None:
    feed(aspen, [secure(4, free_lots=1), row(2)])
    with pytest.raises(SoldOut, match="2 lots asked, 1 free") as refused:
        make_order(acme, machine_of(1), lots=2, placement={"now": START})
    assert refused.value.available == 1
    assert machine_of(1).free_lots == 3
    make_order(acme, machine_of(1), placement={"now": START})


def test_a_list_that_is_applied_while_an_order_waits_for_the_row_counts(
    aspen: Provider, rented: Machine, acme: Any
) -> None:
    def the_list_has_one_left(machine: Machine) -> dict[str, Any]:
        # What an order does last is to take its lots; this is asked before.
        feed(aspen, [secure(4, free_lots=1), row(2)])
        return {"fits": True}

    with pytest.raises(SoldOut) as refused:
        place(acme, make_basket(rented, lots=2), now=START, size=the_list_has_one_left)
    assert refused.value.available == 1
    assert machine_of(1).free_lots == 3
    placed = place(acme, make_basket(rented), now=START, size=the_list_has_one_left)
    assert placed.order.lots == 1
    assert not violations()


def test_a_lot_that_comes_back_can_be_sold_beside_those_that_the_list_offers(aspen: Provider, rented: Machine) -> None:
    clock = Clock(START + timedelta(days=7) - timedelta(seconds=20))
    feed(aspen, [secure(4, free_lots=2), row(2)], clock)
    assert machine_of(1).lots_to_sell == 2
    clock.forward(seconds=20)
    assert end_due_orders(clock.now) == 1
    assert (machine_of(1).free_lots, machine_of(1).lots_to_sell) == (4, 3)
    # The provider's next list counts it as free, and the row follows the list again.
    feed(aspen, [secure(4, free_lots=3), row(2)], clock)
    assert (machine_of(1).lots, machine_of(1).free_lots, machine_of(1).lots_to_sell) == (3, 3, 3)
    assert not FeedAbsence.objects.exists()
    assert not violations()


def test_an_order_that_came_after_the_list_was_asked_for_is_not_in_its_count(
    aspen: Provider, rented: Machine, acme: Any
) -> None:
    def order() -> None:
        make_order(acme, machine_of(1), placement={"now": START})

    # It says two of the three; one of the two was sold while the list was compared, or just before.
    feed(aspen, [secure(4, free_lots=2), row(2, hourly_usd="0.41")], Clock(meanwhile=order))
    assert (machine_of(1).free_lots, to_sell()) == (2, 1)


def test_a_machine_that_was_free_when_it_was_compared_is_bounded_too(aspen: Provider, acme: Any) -> None:
    feed(aspen, [secure(4, free_lots=4), row(2)])

    def order() -> None:
        make_order(acme, machine_of(1), placement={"now": START})

    run = feed(aspen, [secure(4, free_lots=2), row(2)], Clock(meanwhile=order))
    assert counts(run) == {"unchanged": 1, "rented": 1}
    assert (machine_of(1).lots, machine_of(1).free_lots, to_sell()) == (4, 3, 1)


# --- Terms ---


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"hourly_usd": "0.41"}, "0.41 USD an hour instead of 0.4"),
        ({"price_7_days_usd": "67.21"}, "67.21 USD for 7 days instead of 67.20"),
        ({"price_30_days_usd": "288.01"}, "288.01 USD for 30 days instead of 288.00"),
        ({"price_3_days_usd": "28.81"}, "28.81 USD for 3 days instead of 28.80"),
        ({"price_3_days_usd": None}, "no term of 3 days"),
        ({"available_until": "2026-12-11T12:00:00Z"}, "no term of 30 days"),
        ({"interruptible": True}, "interruptible"),
        ({"gpu_count": 2}, "another number of GPUs"),
        ({"gpu_memory_mib": 20000}, "another memory"),
        ({"place": "Paris, FR"}, "another country"),
    ],
)
def test_at_stricter_terms_no_free_lot_is_sold_at_the_old_ones(
    aspen: Provider, acme: Any, terms: dict[str, Any], said: str
) -> None:
    old = {"price_3_days_usd": "28.80"}
    feed(aspen, [secure(4, **old), row(2)])
    order = make_order(acme, machine_of(1), placement={"now": START})
    stored = list(Machine.objects.filter(external_id="offer-1").values())
    feed(aspen, [secure(4, **(old | terms)), row(2)])
    assert to_sell() == 0
    assert said in FeedAbsence.objects.get().detail
    with pytest.raises(OffLine):
        make_order(acme, machine_of(1), placement={"now": START})
    assert list(Machine.objects.filter(external_id="offer-1").values()) == stored
    # The old terms again: sold again. And at the end of the rent the new ones are taken.
    feed(aspen, [secure(4, **old), row(2)])
    assert to_sell() == 3
    clock = Clock(order.ends_at)
    end_due_orders(clock.now)
    assert counts(feed(aspen, [secure(4, **(old | terms)), row(2)], clock)) == {"changed": 1, "unchanged": 1}
    assert not FeedAbsence.objects.exists()


@pytest.mark.parametrize(
    "terms",
    [
        {"hourly_usd": "0.30"},
        {"price_7_days_usd": "60.00"},
        {"price_3_days_usd": "28.80"},
        {"interruptible": False},
        {"available_until": None},
        {"name": "Renamed"},
        # One day nearer to its end, with every term still in it.
        {"available_until": "2026-12-19T12:00:00Z"},
    ],
)
def test_at_better_terms_free_lots_are_sold_at_the_old_ones(aspen: Provider, acme: Any, terms: dict[str, Any]) -> None:
    old = {"available_until": "2026-12-20T12:00:00Z", "interruptible": True}
    feed(aspen, [secure(4, **old), row(2)])
    make_order(acme, machine_of(1), placement={"now": START})
    feed(aspen, [secure(4, **(old | terms)), row(2)])
    assert to_sell() == 3
    assert not FeedAbsence.objects.exists()


def test_free_lots_stay_on_sale_when_staff_explain_the_place_or_the_memory_of_their_machine(
    aspen: Provider, acme: Any
) -> None:
    Gpu.objects.update(memory_gb_nominal=None, memory_mib_reported=None)
    told = [secure(4, place="Atlantis"), row(2)]
    feed(aspen, told)
    make_order(acme, machine_of(1), placement={"now": START})
    PlaceAlias.objects.create(name="Atlantis", country="GR")
    Gpu.objects.update(memory_gb_nominal=24)
    feed(aspen, told)
    assert to_sell() == 3
    # The row is as it was sold, and takes over what is known when the lot is back.
    assert (machine_of(1).country, machine_of(1).gpu_memory_bytes) == (None, None)
    PlaceAlias.objects.update(country="IT")
    feed(aspen, told)
    assert to_sell() == 3
    clock = Clock(START + timedelta(days=7))
    end_due_orders(clock.now)
    feed(aspen, told, clock)
    assert (machine_of(1).country, machine_of(1).gpu_memory_bytes) == ("IT", 24 * 10**9)


# --- What is shown ---


def test_pages_and_the_api_show_what_can_be_sold(aspen: Provider, rented: Machine, client: Client) -> None:
    make_ai_model()
    feed(aspen, [secure(4, free_lots=1), row(2)], Clock(timezone.now()))
    page = html.unescape(client.get(f"/catalog/machines/{rented.pk}/").content.decode())
    assert "1 of 4 lots free" in page
    assert 'max="1"' in page
    assert "1 of 4 lots free" in client.get("/catalog/").content.decode()
    assert client.get(f"/api/v1/machines/{rented.pk}").json()["free_lots"] == 1
    asked = {"workload": {"task": "run", "model": "llama-3.1-8b"}, "preferences": {"tier": "secure"}}

    def answer(lots: int) -> Any:
        body = asked | {"preferences": asked["preferences"] | {"lots": lots}}
        return client.post("/api/v1/recommendations", body, content_type="application/json").json()

    (one,) = answer(1)["recommended"]
    assert one["machine"]["free_lots"] == 1
    assert "1 lot free now." in {limit["text"] for limit in one["limits"]}
    two = answer(2)
    assert two["recommended"] == []
    assert {reason["code"] for reason in two["not_considered"]} == {"out_of_stock"}
    assert [change["value"] for change in two["changes"] if change["field"] == "lots"] == [1]


def test_the_version_of_the_catalog_follows_what_can_be_sold(aspen: Provider, rented: Machine) -> None:
    versions = []
    for free in (3, 2, 1, 2, 3):
        feed(aspen, [secure(4, free_lots=free), row(2)])
        versions.append(catalog_version(START))
    assert versions[0] == versions[4]
    assert versions[1] == versions[3]
    assert len(set(versions)) == 3


def test_a_provider_without_a_feed_any_more_is_bounded_by_no_list(aspen: Provider, rented: Machine, acme: Any) -> None:
    feed(aspen, [secure(4, free_lots=1), row(2)])
    Provider.objects.filter(pk=aspen.pk).update(feed_url="", feed_format="")
    assert to_sell() == 3
    make_order(acme, machine_of(1), lots=3, placement={"now": START})


# --- The administration ---


def test_staff_are_told_of_free_lots_that_are_not_sold(aspen: Provider, rented: Machine, admin_client: Client) -> None:
    feed(aspen, [secure(4, free_lots=1), row(2)], Clock(timezone.now()))
    listed = html.unescape(admin_client.get("/admin/catalog/machine/?problems=withheld").content.decode())
    assert "2 of 3 free lots not sold: its list has fewer while others are under rent" in listed
    assert "1 machine" in listed
    form = html.unescape(admin_client.get(f"/admin/catalog/machine/{rented.pk}/change/").content.decode())
    assert "2 of 3 free lots not sold" in form


def test_staff_take_over_stricter_terms_and_the_free_lots_are_sold_at_them(
    aspen: Provider, rented: Machine, acme: Any, admin_client: Client
) -> None:
    dearer = secure(4, free_lots=3, hourly_usd="0.50")
    feed(aspen, [dearer, row(2)])
    assert to_sell() == 0
    url = f"/admin/catalog/machine/{rented.pk}/change/"
    shown = html.unescape(admin_client.get(url).content.decode())
    assert "0.5 USD an hour instead of 0.4; 84.00 USD for 7 days instead of 67.20" in shown
    terms = {"hourly_usd": "0.50", "price_7_days_usd": "84.00", "price_30_days_usd": "360.00", "listed": "on"}
    assert admin_client.post(url, terms | {"change_reason": "As in its list."}).status_code == 302
    feed(aspen, [dearer, row(2)])
    assert to_sell() == 3
    order = make_order(acme, machine_of(1), placement={"now": START})
    assert str(order.total_usd) == "84.00"
    # What a list keeps is staff's for as long as it is stricter, and no longer.
    assert b'name="hourly_usd"' not in admin_client.get(url).content
    assert not violations()


def test_a_form_that_was_opened_while_the_terms_were_stricter_says_that_they_are_the_lists_again(
    aspen: Provider, rented: Machine, admin_client: Client
) -> None:
    feed(aspen, [secure(4, hourly_usd="0.50"), row(2)])
    url = f"/admin/catalog/machine/{rented.pk}/change/"
    assert b'name="hourly_usd"' in admin_client.get(url).content
    feed(aspen, [secure(4), row(2)])
    terms = {"hourly_usd": "0.50", "price_7_days_usd": "84.00", "price_30_days_usd": "360.00", "listed": "on"}
    page = html.unescape(admin_client.post(url, terms, follow=True).content.decode())
    assert "The terms were left as they are: the list of Aspen keeps them again" in page
    assert str(machine_of(1).hourly_usd) == "0.400000"
    assert "left as they are" not in html.unescape(
        admin_client.post(url, {"listed": "on"}, follow=True).content.decode()
    )


def test_saving_the_form_of_a_machine_writes_nothing_over_what_its_list_wrote_meanwhile(
    aspen: Provider, rf: Any, admin_user: Any
) -> None:
    feed(aspen, [secure(4), row(2)])
    admin, machine = site.get_model_admin(Machine), machine_of(1)
    request = rf.post("/", {"change_reason": "Off the pages."})
    request.user = admin_user
    form = admin.get_form(request, machine, change=True)(request.POST, instance=machine)
    assert form.is_valid()
    feed(aspen, [secure(7, hourly_usd="0.50"), row(2)])
    admin.save_model(request, machine, form, change=True)
    saved = machine_of(1)
    assert (saved.listed, saved.lots, saved.free_lots, str(saved.hourly_usd)) == (False, 7, 7, "0.500000")
    assert Machine.history.filter(history_change_reason="Off the pages.").get().lots == 7
