"""What webhooks are told: written with the act, once, and nothing where nobody listens."""

import json
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from rentals.allocations import start, stop
from rentals.cancellations import cancel_order
from rentals.endings import end_due_orders
from rentals.errors import SoldOut
from rentals.invariants import violations
from rentals.models import Organization, WebhookDelivery, WebhookEndpoint, WebhookEvent
from rentals.webhooks_endpoints import (
    MAX_ENDPOINTS,
)
from rentals.webhooks_events import tell_of_ends
from rentals.webhooks_sending import send_webhooks
from rentals.webhooks_signing import new_secret, signature
from tests.factories import make_api_key, make_endpoint, make_machine, make_order, make_ssh_key, make_user


def send(now):
    return send_webhooks(lambda: now)


def kinds():
    return list(WebhookEvent.objects.order_by("created_at", "kind").values_list("kind", flat=True))


def staff():
    return make_user(is_staff=True)


def test_a_delivery_verifies_with_the_recipe_of_the_manual(acme, endpoint, receiver, recipe, now):
    order = make_order(acme, make_machine(name="North 1"), placement={"now": now})
    assert not receiver.received
    assert send(now) == 1
    (came,) = receiver.received
    recipe(endpoint.text, came.headers, came.body)
    later = str(int(came.headers["webhook-timestamp"]) + 1)
    for damage in (
        {"body": came.body + b" "},
        {"secret": make_endpoint(acme).text},
        {"headers": came.headers | {"webhook-id": "another"}},
        {"headers": came.headers | {"webhook-timestamp": later}},
        {"headers": came.headers | {"webhook-signature": "v1,AAAA v2,BBBB"}},
    ):
        with pytest.raises(ValueError, match="not Berth's"):
            recipe(**{"secret": endpoint.text, "headers": came.headers, "body": came.body} | damage)
    told = json.loads(came.body)
    assert came.headers["webhook-id"] == told["id"] == str(WebhookEvent.objects.get().pk)
    assert came.headers["content-type"] == "application/json; charset=utf-8"
    assert (told["type"], told["organization"]) == ("order.placed", "acme")
    assert told["html_url"] == f"http://testserver/o/acme/orders/{order.pk}/"
    assert datetime.fromisoformat(told["created_at"]) == now


@pytest.mark.parametrize("value", [None, "", "soon", "²", "-1", "9" * 5000])
@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_the_recipe_refuses_a_message_without_a_header_or_with_an_odd_one(recipe, now, name, value):
    secret, body, timestamp = new_secret(), b"{}", int(now.timestamp())
    headers = {
        "webhook-id": "an id",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, "an id", timestamp, body),
    }
    recipe(secret, headers, body)
    headers.pop(name)
    with pytest.raises(ValueError):
        recipe(secret, headers if value is None else {**headers, name: value}, body)


@pytest.mark.parametrize("age", [timedelta(minutes=6), -timedelta(minutes=6)])
def test_a_message_of_another_time_does_not_verify(acme, endpoint, receiver, recipe, now, age):
    make_order(acme, placement={"now": now - age})
    assert send(now - age) == 1
    (came,) = receiver.received
    with pytest.raises(ValueError, match="too old"):
        recipe(endpoint.text, came.headers, came.body)


def test_the_order_is_the_one_of_the_api_without_what_opens_a_machine(acme, client, endpoint, receiver, now):
    make_ssh_key(acme, "ada@laptop")
    key, machine = make_api_key(acme), make_machine(price_7_days_usd="110.00")
    body = {"machine": machine.pk, "term_days": 7, "lots": 1, "expected_total_usd": "110.00"}
    headers = {"Authorization": f"Bearer {key.text}", "Idempotency-Key": "k1"}
    placed = client.post("/api/v1/orders", body, content_type="application/json", headers=headers).json()
    send(now + timedelta(hours=1))
    told = json.loads(receiver.received[0].body)
    assert told["data"] == {"order": placed}
    assert b"ssh-ed25519" not in receiver.received[0].body


def test_every_turn_of_an_order_is_told_once(acme, endpoint, receiver, now):
    order = make_order(acme, placement={"now": now})
    actor = {"actor": acme.owner, "via": "page"}
    for _ in range(2):
        stop(order, 1, **actor, now=now + timedelta(hours=1))
    start(order, 1, **actor, now=now + timedelta(hours=2))
    for _ in range(2):
        tell_of_ends(order.ends_at - timedelta(hours=24))
    for _ in range(2):
        end_due_orders(order.ends_at)
    assert kinds() == ["order.placed", "allocation.stopped", "allocation.started", "order.ending", "order.ended"]
    assert send(order.ends_at) == 5
    told = {data["type"]: data["data"] for data in (json.loads(came.body) for came in receiver.received)}
    assert told["allocation.stopped"]["allocation"]["state"] == "stopped"
    assert told["allocation.started"]["allocation"] == {
        "order": str(order.pk),
        "number": 1,
        "state": "running",
        "status_text": "Preparing",
        "delivered_at": None,
        "html_url": f"http://testserver/o/acme/orders/{order.pk}/",
    }
    assert [told[kind]["order"]["status"] for kind in ("order.placed", "order.ending", "order.ended")] == [
        "active", "active", "ended",
    ]  # fmt: skip
    assert not violations()


def test_a_cancellation_is_told_with_its_credit(acme, endpoint, receiver, now):
    order = make_order(acme, placement={"now": now})
    cancel_order(order.pk, reason="Broken", credit_usd=order.total_usd, actor=staff(), now=now + timedelta(hours=1))
    send(now + timedelta(hours=1))
    told = json.loads(receiver.received[1].body)
    assert told["type"] == "order.cancelled"
    assert told["data"]["order"]["status"] == "cancelled"
    assert told["data"]["order"]["cancellation"]["credit_usd"] == f"{order.total_usd:.2f}"


@pytest.mark.parametrize(
    ("before_the_end", "told"),
    [(timedelta(hours=24, seconds=1), 0), (timedelta(hours=24), 1), (timedelta(minutes=1), 1), (timedelta(0), 0)],
)
def test_an_end_is_told_a_day_before_and_never_after_it(acme, endpoint, before_the_end, told):
    order = make_order(acme)
    assert tell_of_ends(order.ends_at - before_the_end) == told
    assert kinds().count("order.ending") == told


def test_one_end_that_cannot_be_told_of_keeps_none_from_another(acme, globex, receiver, now):
    first = make_order(acme, placement={"now": now - timedelta(hours=1)})
    make_order(globex, placement={"now": now})
    make_endpoint(acme, receiver.url)
    make_endpoint(globex, receiver.url)
    # There is no page of such a name that an event could lead to.
    Organization.objects.filter(pk=acme.pk).update(slug="no slug")
    tell_of_ends(first.ends_at - timedelta(hours=1))
    assert kinds().count("order.ending") == 1


def test_an_end_is_told_once_to_each_endpoint_also_to_one_that_is_added_or_turned_on_late(acme, receiver, now):
    """The end is still to come: who listens now wants to know of it."""
    order = make_order(acme, placement={"now": now})
    first, off = make_endpoint(acme, receiver.url), make_endpoint(acme, receiver.url, enabled=False)
    other = make_endpoint(acme, receiver.url, events=["order.ended"])
    moment = order.ends_at - timedelta(hours=20)

    def told():
        tell_of_ends(moment)
        assert tell_of_ends(moment) == 0
        return sorted(WebhookDelivery.objects.values_list("endpoint", flat=True))

    assert told() == [first.pk]
    late = make_endpoint(acme, receiver.url)
    assert told() == [first.pk, late.pk]
    WebhookEndpoint.objects.filter(pk=off.pk).update(enabled=True)
    assert told() == sorted([first.pk, late.pk, off.pk])
    assert kinds() == ["order.ending"]
    assert not other.deliveries.exists()
    make_endpoint(acme, receiver.url)
    assert tell_of_ends(order.ends_at) == 0


def test_what_nobody_chose_is_not_written(acme, globex, receiver, now):
    make_endpoint(acme, receiver.url, events=["order.ended"])
    make_endpoint(globex, receiver.url)
    off = make_endpoint(acme, receiver.url, enabled=False)
    order = make_order(acme, placement={"now": now})
    tell_of_ends(order.ends_at - timedelta(hours=1))
    assert not WebhookEvent.objects.exists()
    end_due_orders(order.ends_at)
    assert kinds() == ["order.ended"]
    assert not off.deliveries.exists()


def test_an_order_that_was_refused_tells_nobody(acme, endpoint):
    with pytest.raises(SoldOut):
        make_order(acme, make_machine(lots=1), lots=2)
    assert not WebhookEvent.objects.exists()


def test_an_order_costs_one_question_where_nobody_listens_and_three_statements_where_ten_do(
    acme, now, django_assert_max_num_queries
):
    def statements():
        with django_assert_max_num_queries(100) as captured:
            make_order(acme, machines.pop(), placement={"now": now, "expected_total_usd": Decimal("110.00")})
        return [query["sql"] for query in captured if "rentals_webhook" in query["sql"]]

    machines = [make_machine(price_7_days_usd=Decimal("110.00")) for _ in range(2)]
    assert len(statements()) == 1
    for _ in range(MAX_ENDPOINTS):
        make_endpoint(acme)
    assert len(statements()) == 3
