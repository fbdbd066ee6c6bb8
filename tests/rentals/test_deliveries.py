"""Handing lots over: staff's queue, and what the organization's members see of it."""

import json
import re
from datetime import timedelta

import pytest
from django.core import mail
from django.urls import reverse

from rentals.allocations import stop
from rentals.cancellations import cancel_order
from rentals.deliveries import Details, deliver, to_deliver
from rentals.errors import InvalidConnection, NotPermitted, OrderOver
from rentals.models import AuditEvent, Connection, Notice, OrganizationPolicy, WebhookEvent
from rentals.notices import send_notices
from tests.factories import (
    make_api_key,
    make_delivered,
    make_endpoint,
    make_machine,
    make_member,
    make_order,
    make_ssh_key,
    make_user,
)
from tests.rentals.calls import call


@pytest.fixture
def staff(db):
    return make_user("staff@example.com", is_staff=True, is_superuser=True)


def order_page(client, order, user):
    client.force_login(user)
    return client.get(f"/o/acme/orders/{order.pk}/").content.decode()


def test_a_lot_is_being_prepared_until_it_is_handed_over(client, acme, now):
    order = make_order(acme, make_machine(lots=2), lots=2, placement={"now": now - timedelta(hours=1)})
    html = order_page(client, order, acme.owner)
    assert html.count(">Preparing</span>") == 2
    assert "0 of 2 lots handed over." in html
    make_delivered(order, 2, host="gpu7.example.net", login="ada", port=2222, notes="Data is in /data.")
    html = order_page(client, order, acme.owner)
    assert html.count(">Preparing</span>") == 1
    for words in ("1 of 2 lots handed over.", "ssh -p 2222 ada@gpu7.example.net", "Data is in /data."):
        assert words in html


def test_viewers_documents_and_the_trail_do_not_tell_how_a_lot_is_reached(client, acme, now):
    order = make_order(acme, placement={"now": now - timedelta(hours=1)})
    make_delivered(order, host="gpu7.example.net", login="ada", notes="Data is in /data.")
    assert "gpu7" in order_page(client, order, make_member(acme))
    viewer = make_member(acme, "viewer")
    assert "gpu7" not in order_page(client, order, viewer)
    assert b"gpu7" not in client.get(f"/o/acme/orders/{order.pk}/receipt.json").content
    assert not any("gpu7" in str(event.data) for event in AuditEvent.objects.all())


def test_the_policy_says_who_is_told_how_a_lot_is_reached_and_who_stops_it(client, acme, now):
    """Who may order: one rule for the order, its connection details and its lots."""
    order = make_order(acme, placement={"now": now - timedelta(hours=1)})
    make_delivered(order, host="gpu7.example.net")
    OrganizationPolicy.objects.create(organization=acme, order_role="admin", changed_at=now)
    member = make_member(acme)
    html = order_page(client, order, member)
    assert "gpu7" not in html
    assert "Stop lot" not in html
    assert "Order again" not in html
    assert client.post(f"/o/acme/orders/{order.pk}/allocations/1/stop/").status_code == 403
    assert order.allocations.get().state == "running"
    html = order_page(client, order, make_member(acme, "admin"))
    assert "gpu7" in html
    assert "Stop lot" in html


def test_where_owners_alone_order_a_key_is_not_told_how_a_lot_is_reached_and_stops_none(acme, now):
    order, key = make_order(acme, placement={"now": now - timedelta(hours=1)}), make_api_key(acme)
    make_delivered(order, host="gpu7.example.net")
    assert b"gpu7" in call("GET", f"orders/{order.pk}", key).content
    OrganizationPolicy.objects.create(organization=acme, order_role="owner", changed_at=now)
    (lot,) = call("GET", f"orders/{order.pk}", key).json()["allocations"]
    assert lot["connection"] is None
    for act in ("stop", "start"):
        refused = call("POST", f"orders/{order.pk}/allocations/1/{act}", key)
        assert (refused.status_code, refused.json()["rule"]) == (403, "order_role")
    assert order.allocations.get().state == "running"


def test_what_is_over_is_not_told_any_more(client, acme, now):
    order = make_order(acme, placement={"now": now - timedelta(days=7, seconds=1)})
    make_delivered(order, host="gpu7.example.net", now=now - timedelta(days=1))
    assert "gpu7" not in order_page(client, order, acme.owner)


def test_a_correction_does_not_move_the_moment_of_handing_over(acme, now):
    order = make_order(acme, placement={"now": now})
    first = make_delivered(order, now=now)
    again = make_delivered(order, host="gpu2.example.net", now=now + timedelta(hours=1))
    assert again.delivered_at == first.delivered_at == now
    assert Connection.objects.get().host == "gpu2.example.net"
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"allocation.delivered", "allocation.connection_changed"} <= actions


def test_page_and_api_say_the_state_of_a_lot_in_the_same_words(client, acme, now):
    """`state` is what was asked of the lot, and stays what partners know; the words are the page's."""
    key = make_api_key(acme)
    order = make_order(acme, make_machine(lots=3), lots=3, placement={"now": now - timedelta(hours=1)})
    make_delivered(order, 2)
    make_delivered(order, 3)
    stop(order, 3, actor=acme.owner, via="page", now=now)
    shown = re.findall(r'class="tag tag-\w+">(\w+)</span></td>', order_page(client, order, acme.owner))
    lots = call("GET", f"orders/{order.pk}", key).json()["allocations"]
    assert [lot["status_text"] for lot in lots] == shown == ["Preparing", "Running", "Stopped"]
    assert [lot["state"] for lot in lots] == ["running", "running", "stopped"]
    assert call("POST", f"orders/{order.pk}/allocations/1/start", key).json()["status_text"] == "Preparing"


def test_a_key_that_may_order_is_told_how_a_lot_is_reached(client, acme, globex, now):
    order = make_order(acme, make_machine(lots=2), lots=2, placement={"now": now - timedelta(hours=1)})
    make_delivered(order, 1, host="gpu7.example.net", login="ada", port=2222, notes="Data is in /data.", now=now)
    key, reading = make_api_key(acme), make_api_key(acme, "read")
    lots = call("GET", f"orders/{order.pk}", key).json()["allocations"]
    assert lots[0]["connection"] == {
        "host": "gpu7.example.net",
        "port": 2222,
        "user": "ada",
        "notes": "Data is in /data.",
        "changed_at": lots[0]["delivered_at"],
    }
    assert lots[1]["connection"] is None
    answer = call("GET", f"orders/{order.pk}", reading)
    assert [lot["connection"] for lot in answer.json()["allocations"]] == [None, None]
    assert "no-store" in answer.headers["Cache-Control"]
    others = [call("GET", f"orders/{order.pk}", make_api_key(globex)), call("GET", "orders", key)]
    others.append(call("POST", f"orders/{order.pk}/allocations/1/stop", key))
    assert [answer.status_code for answer in others] == [404, 200, 200]
    client.force_login(acme.owner)
    others.append(client.get(f"/o/acme/orders/{order.pk}/receipt.json"))
    assert not any(b"gpu7" in answer.content or b'"connection"' in answer.content for answer in others)


def test_the_api_does_not_tell_how_a_lot_of_an_order_that_is_over_is_reached(acme, now):
    order = make_order(acme, placement={"now": now - timedelta(days=7, seconds=1)})
    make_delivered(order, now=now - timedelta(days=1))
    (lot,) = call("GET", f"orders/{order.pk}", make_api_key(acme)).json()["allocations"]
    assert lot["connection"] is None


def told():
    events = WebhookEvent.objects.filter(kind="allocation.delivered").order_by("created_at")
    return [json.loads(event.body)["data"] for event in events]


def test_a_handing_over_is_told_once_to_webhooks_who_ordered_and_the_owners(acme, now):
    make_endpoint(acme)
    member = make_member(acme)
    order = make_order(acme, make_machine(lots=2), lots=2, placement={"actor": member, "now": now})
    send_notices(lambda: now)
    mail.outbox.clear()
    for _ in range(2):
        make_delivered(order, 2, host="gpu7.example.net", login="ada", notes="Data is in /data.", now=now)
    (data,) = told()
    page = f"http://testserver/o/acme/orders/{order.pk}/"
    assert data["corrected"] is False
    assert data["api_url"] == f"http://testserver/api/v1/orders/{order.pk}"
    assert (data["allocation"]["order"], data["allocation"]["number"]) == (str(order.pk), 2)
    assert data["allocation"]["html_url"] == page
    assert [lot["delivered_at"] is not None for lot in data["order"]["allocations"]] == [False, True]
    assert data["allocation"]["delivered_at"] == data["order"]["allocations"][1]["delivered_at"]
    assert send_notices(lambda: now) == 2
    assert send_notices(lambda: now) == 0
    subject = f"[Berth] Order {order.reference}: lot 2 is handed over"
    assert sorted((message.to[0], message.subject) for message in mail.outbox) == sorted(
        [(member.email, subject), (acme.owner.email, subject)]
    )
    assert page in mail.outbox[0].body
    assert "None" not in mail.outbox[0].body
    for text in (WebhookEvent.objects.get(kind="allocation.delivered").body, mail.outbox[0].body):
        assert not any(detail in text for detail in ("gpu7", "ada", "/data"))


def test_each_correction_is_told_once_and_one_without_a_change_is_none(acme, now):
    make_endpoint(acme)
    order = make_order(acme, placement={"now": now})
    moments = [now + timedelta(hours=hours) for hours in range(5)]
    for moment, port in zip(moments, (22, 2222, 2222, 22, 22), strict=True):
        make_delivered(order, port=port, now=moment)
    assert [data["corrected"] for data in told()] == [False, True, True]
    assert {data["allocation"]["delivered_at"] for data in told()} == {told()[0]["allocation"]["delivered_at"]}
    send_notices(lambda: moments[-1])
    subjects = [message.subject for message in mail.outbox if "lot 1" in message.subject]
    changed = f"[Berth] Order {order.reference}: lot 1 has new connection details"
    assert subjects == [f"[Berth] Order {order.reference}: lot 1 is handed over", changed, changed]
    assert AuditEvent.objects.filter(action="allocation.connection_changed").count() == 2


def test_lots_of_a_key_are_told_to_the_owners(acme, now):
    order = make_order(acme, placement={"actor": make_api_key(acme), "via": "api", "now": now})
    make_delivered(order, now=now)
    assert [notice.recipient for notice in Notice.objects.filter(kind="delivered")] == [acme.owner.email]


def test_a_mail_of_a_handing_over_that_was_late_says_nothing_of_what_is_over(acme, now):
    order = make_order(acme, placement={"now": now})
    make_delivered(order, now=order.ends_at - timedelta(hours=1))
    send_notices(lambda: order.ends_at)
    assert Notice.objects.get(kind="delivered").state == "dropped"


def test_a_lot_that_was_never_handed_over_is_told_of_by_the_cancellation_of_its_order(acme, staff, now):
    make_endpoint(acme)
    order = make_order(acme, placement={"now": now})
    cancel_order(order.pk, reason="No machine", credit_usd=order.total_usd, actor=staff, now=now + timedelta(hours=1))
    assert not told()
    event = json.loads(WebhookEvent.objects.get(kind="order.cancelled").body)["data"]["order"]
    assert event["allocations"] == [{"number": 1, "state": "stopped", "status_text": "Stopped", "delivered_at": None}]
    assert Notice.objects.filter(kind="cancelled", recipient=acme.owner.email).exists()


def test_nothing_is_handed_over_of_an_order_that_is_over(acme, staff, now):
    ended, cancelled = make_order(acme, placement={"now": now}), make_order(acme, placement={"now": now})
    cancel_order(cancelled.pk, reason="x", credit_usd=cancelled.total_usd, actor=staff, now=now)
    for order, moment in ((ended, ended.ends_at), (cancelled, now)):
        with pytest.raises(OrderOver):
            make_delivered(order, now=moment)
    assert not Connection.objects.exists()


def test_only_staff_hand_over(acme, now):
    order = make_order(acme, placement={"now": now})
    with pytest.raises(NotPermitted):
        deliver(order.allocations.get().pk, Details("a.example", "ada"), actor=acme.owner, now=now)


@pytest.mark.parametrize("host", ["gpu7.example.net", "10.0.0.7", "2001:db8::1", "a", "x-1.example"])
def test_hosts(host):
    assert Details(host, "ubuntu").host == host


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("host", {"host": ""}),
        ("host", {"host": "-oProxyCommand=x"}),
        ("host", {"host": "a b"}),
        ("host", {"host": "999.1.1.1"}),
        ("host", {"host": "a" * 254}),
        ("host", {"host": "a\x00"}),
        ("host", {"host": "fe80::1%eth0"}),
        ("port", {"port": 0}),
        ("port", {"port": 65536}),
        ("port", {"port": True}),
        ("login", {"login": ""}),
        ("login", {"login": "-x"}),
        ("login", {"login": "a;b"}),
        ("login", {"login": "root\n"}),
        ("notes", {"notes": "x" * 1001}),
        ("notes", {"notes": "\x00"}),
        ("notes", {"notes": "\ud800"}),
    ],
)
def test_details_that_are_no_connection_are_refused(field, values):
    with pytest.raises(InvalidConnection) as refused:
        Details(**{"host": "a.example", "login": "ubuntu", **values})
    assert refused.value.field == field


def test_the_queue_has_the_longest_waiting_first_and_only_what_is_to_deliver(client, acme, staff, now):
    machine = make_machine(lots=9)
    newer = make_order(acme, machine, placement={"now": now - timedelta(hours=1)})
    older = make_order(acme, machine, lots=2, placement={"now": now - timedelta(hours=5)})
    done = make_order(acme, machine, placement={"now": now - timedelta(hours=6)})
    over = make_order(acme, machine, placement={"now": now - timedelta(days=8)})
    make_delivered(done, now=now)
    assert [(lot.order_id, lot.number) for lot in to_deliver(now)] == [(older.pk, 1), (older.pk, 2), (newer.pk, 1)]
    client.force_login(staff)
    html = client.get("/admin/rentals/allocation/").content.decode()
    assert html.index(f"{older.reference}, lot 1") < html.index(f"{newer.reference}, lot 1")
    assert done.reference not in html
    assert over.reference not in html
    assert done.reference in client.get("/admin/rentals/allocation/?delivery=delivered").content.decode()
    assert over.reference in client.get("/admin/rentals/allocation/?delivery=all").content.decode()


def test_staff_hand_a_lot_over_on_its_page(client, acme, staff, now):
    order = make_order(acme, environment_notes="CUDA 12.4", placement={"now": now})
    key = make_ssh_key(acme)
    lot = order.allocations.get()
    page = reverse("admin:rentals_allocation_change", args=[lot.pk])
    client.force_login(staff)
    html = client.get(page).content.decode()
    assert "CUDA 12.4" in html
    assert key.blob.rstrip("=") in html.replace("&#x2B;", "+")
    form = {"host": "gpu7.example.net", "port": "22", "login": "ubuntu", "notes": ""}
    assert "Give a host name" in client.post(page, {**form, "host": "-o x"}).content.decode()
    assert client.post(page, {**form, "port": "99999"}).status_code == 200
    assert not Connection.objects.exists()
    assert client.post(page, form).status_code == 302
    lot.refresh_from_db()
    assert lot.delivered_at is not None
    client.post(page, {**form, "host": "gpu8.example.net"})
    assert Connection.objects.get().host == "gpu8.example.net"
    assert 'value="gpu8.example.net"' in client.get(page).content.decode()


@pytest.mark.parametrize("address", ["999999", "x", "²", "9" * 30])
def test_a_lot_that_is_not_there(client, staff, address):
    client.force_login(staff)
    assert client.get(f"/admin/rentals/allocation/{address}/change/").status_code == 404


def test_staff_without_rights_see_no_queue(client, acme):
    lot = make_order(acme).allocations.get()
    client.force_login(make_user("looking@example.com", is_staff=True))
    page = reverse("admin:rentals_allocation_change", args=[lot.pk])
    assert client.get(page).status_code == 403
    assert client.post(page, {"host": "a.example", "port": "22", "login": "x"}).status_code == 403
