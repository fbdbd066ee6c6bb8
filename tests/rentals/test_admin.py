"""Staff: orders are looked at and placed on behalf, by the one function; never edited."""

import re
from decimal import Decimal

import pytest

from catalog.models import Machine
from rentals.models import AuditEvent, Membership, Order
from tests.factories import make_machine, make_member, make_option, make_order, make_user

PLACE = "/admin/rentals/order/add/"


@pytest.fixture
def staff(db):
    return make_user("staff@example.com", is_staff=True, is_superuser=True)


@pytest.fixture
def client(staff, client):
    client.force_login(staff)
    return client


@pytest.fixture
def machine(db):
    return make_machine(lots=2, price_7_days_usd=Decimal("110.00"))


def filled(client, acme, machine, **fields):
    html = client.get(PLACE).content.decode()
    key = re.search(r'name="idempotency_key" value="([^"]+)"', html)[1]
    return {
        "organization": acme.pk, "machine": machine.pk, "term_days": 7, "lots": 1, "environment": "vllm", "notes": "",
        "idempotency_key": key, "expected_total_usd": "", **fields,
    }  # fmt: skip


def test_staff_see_the_total_then_place_the_order(client, acme, machine, staff):
    make_option("storage-500")
    form = filled(client, acme, machine, lots=2, **{"option-storage-500": 1})
    shown = client.post(PLACE, {**form, "total": "1"}).content.decode()
    assert "Place order – $241.00" in shown
    assert not Order.objects.exists()
    response = client.post(PLACE, {**form, "expected_total_usd": "241.00", "place": "1"})
    order = Order.objects.get()
    assert response.url == f"/admin/rentals/order/{order.pk}/change/"
    assert (order.organization, order.placed_by, order.placed_via) == (acme, staff, "staff")
    assert order.total_usd == Decimal("241.00")
    assert AuditEvent.objects.get(action="order.placed").actor == staff
    again = client.post(PLACE, {**form, "expected_total_usd": "241.00", "place": "1"})
    assert again.url == response.url
    assert Order.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "fields", "words"),
    [
        ({"free_lots": 0}, {}, "1 lot asked, 0 free."),
        ({"price_7_days_usd": Decimal("120.00")}, {}, "Place order – $120.00"),
        ({"online": False}, {}, "not offered at the moment"),
        ({}, {"term_days": 3}, "not sold for 3 days"),
        ({}, {"lots": 0}, "greater than or equal to 1"),
        ({}, {"lots": "9" * 400}, "less than or equal to"),
        ({}, {"idempotency_key": ""}, "idempotency key must be"),
        ({}, {"machine": 10**30}, "Select a valid choice"),
        ({}, {"notes": "a\x00"}, "plain text"),
        ({}, {"expected_total_usd": "NaN"}, "Enter a number"),
    ],
)
def test_refusals_are_shown_in_the_form(client, acme, machine, change, fields, words):
    form = filled(client, acme, machine, expected_total_usd="110.00", place="1")
    if change:
        Machine.objects.update(**change)
    response = client.post(PLACE, {**form, **fields})
    assert response.status_code == 200
    assert words in response.content.decode()
    assert not Order.objects.exists()


def test_orders_are_listed_searched_and_read_but_never_edited(client, acme):
    order = make_order(acme, make_machine(name="Findable"))
    for url in ("", "?q=Findable", "?q=acme", f"?q={order.pk}", "?status__exact=active", "?q=%00"):
        assert client.get(f"/admin/rentals/order/{url}").status_code == 200
    assert order.reference in client.get("/admin/rentals/order/?q=findable").content.decode()
    assert order.reference not in client.get("/admin/rentals/order/?q=nothing").content.decode()
    page = client.get(f"/admin/rentals/order/{order.pk}/change/").content.decode()
    assert 'name="_save"' not in page
    assert client.post(f"/admin/rentals/order/{order.pk}/change/", {"total_usd": "1"}).status_code == 403
    assert client.post(f"/admin/rentals/order/{order.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("model", ["organization", "membership", "auditevent"])
def test_the_other_lists_open_and_search(client, acme, model):
    make_order(acme)
    assert client.get(f"/admin/rentals/{model}/?q=acme").status_code == 200


def test_an_organization_keeps_an_owner_in_the_admin_too(client, acme):
    member = Membership.objects.get()
    form = {
        "name": "Acme", "memberships-TOTAL_FORMS": 1, "memberships-INITIAL_FORMS": 1,
        "memberships-0-id": member.pk, "memberships-0-organization": acme.pk, "memberships-0-user": member.user_id,
        "memberships-0-role": "viewer",
    }  # fmt: skip
    response = client.post(f"/admin/rentals/organization/{acme.pk}/change/", form)
    assert "at least one owner" in response.content.decode()
    assert Membership.objects.get().role == "owner"


def test_staff_put_nobody_into_an_organization_and_their_changes_are_in_its_trail(client, acme, staff):
    """An account that did not say yes is no member."""
    owner, stranger = Membership.objects.get(), make_user("stranger@example.com")
    member = Membership.objects.get(user=make_member(acme, "viewer"))
    rows = [(owner, "owner"), (member, "admin")]
    form = {"name": "Acme", "memberships-TOTAL_FORMS": 3, "memberships-INITIAL_FORMS": 2}
    for number, (row, role) in enumerate(rows):
        form |= {
            f"memberships-{number}-id": row.pk,
            f"memberships-{number}-organization": acme.pk,
            f"memberships-{number}-user": stranger.pk,
            f"memberships-{number}-role": role,
        }
    form |= {
        "memberships-2-organization": acme.pk,
        "memberships-2-user": stranger.pk,
        "memberships-2-role": "owner",
    }
    client.post(f"/admin/rentals/organization/{acme.pk}/change/", form)
    assert not Membership.objects.filter(user=stranger).exists()
    member.refresh_from_db()
    assert member.role == "admin"
    event = AuditEvent.objects.get(action="member.role_changed")
    assert (event.actor, event.via, event.data["before"], event.data["role"]) == (staff, "staff", "viewer", "admin")


def test_customers_have_no_way_in(client, acme):
    client.force_login(make_member(acme, "owner"))
    assert client.get(PLACE).status_code in (302, 403)


def test_staff_without_the_right_cannot_place(client, acme):
    client.force_login(make_user(is_staff=True))
    assert client.get(PLACE).status_code == 403
