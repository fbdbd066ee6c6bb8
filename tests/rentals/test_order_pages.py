"""The dashboard, the list of orders, the receipt and its buttons."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from rentals.endings import end_due_orders
from rentals.models import Allocation
from tests.factories import make_machine, make_member, make_option, make_order
from tests.tenancy import statements


@pytest.fixture
def client(acme, client):
    client.force_login(acme.owner)
    return client


def read(client, url, status=200):
    response = client.get(url)
    assert response.status_code == status
    return response.content.decode()


def test_an_empty_dashboard_says_where_to_begin(client):
    html = read(client, "/o/acme/")
    assert "No orders yet" in html
    assert "Launch by workload" in html


def test_the_dashboard_shows_what_runs(client, acme, now):
    make_order(acme, make_machine(name="Running"))
    make_order(acme, make_machine(name="Finished"), placement={"now": now - timedelta(days=8)})
    html = read(client, "/o/acme/")
    assert "1 active order," in html
    assert html.index("Running<") < html.index("Finished")


def test_the_list_filters_by_state_as_it_is_now(client, acme, now):
    running = make_order(acme)
    over = make_order(acme, placement={"now": now - timedelta(days=8)})
    assert running.reference in read(client, "/o/acme/orders/?state=active")
    assert over.reference not in read(client, "/o/acme/orders/?state=active")
    assert over.reference in read(client, "/o/acme/orders/?state=ended")
    assert "No cancelled orders" in read(client, "/o/acme/orders/?state=cancelled")
    assert "There is no such state" in read(client, "/o/acme/orders/?state=running%00", 400)


def test_the_list_is_paginated(client, acme):
    machine = make_machine(lots=30)
    orders = [make_order(acme, machine) for _ in range(27)]
    first, second = read(client, "/o/acme/orders/"), read(client, "/o/acme/orders/?page=2")
    assert orders[-1].reference in first
    assert orders[0].reference not in first
    assert orders[0].reference in second
    for page in ("0", "-1", "abc", "9" * 400, "%00"):
        read(client, f"/o/acme/orders/?page={page}")


def test_the_list_asks_few_questions_however_long_it_is(client, acme):
    machine = make_machine(lots=30)
    for _ in range(20):
        make_order(acme, machine)
    with CaptureQueriesContext(connection) as counted:
        read(client, "/o/acme/orders/")
    assert len(statements(counted.captured_queries)) <= 7


def test_the_receipt_has_all_six_facts_and_the_rest(client, acme, now):
    make_option("storage-500")
    from rentals.baskets import ChosenOption

    order = make_order(
        acme,
        make_machine(name="RTX 4090 × 2, Frankfurt", lots=3, gpu_count=2, price_7_days_usd="110.00"),
        lots=2,
        options=(ChosenOption("storage-500"),),
        environment="vllm",
        environment_notes="vLLM <0.9>",
    )
    html = read(client, f"/o/acme/orders/{order.pk}/")
    for words in (
        order.reference,
        "RTX 4090 × 2, Frankfurt",
        "4 cards in all",
        "Exactly 7 × 24 hours.",
        f"{order.starts_at:%Y-%m-%d %H:%M:%S} UTC",
        f"{order.ends_at:%Y-%m-%d %H:%M:%S} UTC",
        "$241.00",
        "24.00 GiB counted",
        "vLLM &lt;0.9&gt;",
        "preparation preference, not a guarantee",
        acme.owner.email,
        order.idempotency_key,
        "Stopping does not pause the paid period.",
        "Placed",
        "Preparing",
    ):
        assert words in html, words


def test_order_again_mints_a_new_key_for_the_same_choices(client, acme):
    make_option("storage-500")
    from rentals.baskets import ChosenOption

    order = make_order(acme, make_machine(lots=2), options=(ChosenOption("storage-500", 2),), environment="cuda")
    html = read(client, f"/o/acme/orders/{order.pk}/")
    link = html.partition('href="/o/acme/orders/review/?')[2].partition('"')[0].replace("&amp;", "&")
    review = read(client, f"/o/acme/orders/review/?{link}")
    assert f"Confirm order – ${order.total_usd}" in review
    assert order.idempotency_key not in review


def test_the_receipt_as_json_has_the_apis_shape(client, acme):
    order = make_order(acme)
    response = client.get(f"/o/acme/orders/{order.pk}/receipt.json")
    document = json.loads(response.content)
    assert document["id"] == str(order.pk)
    assert document["ends_at"].endswith("Z")
    assert document["status"] == "active"
    assert "attachment" in response["Content-Disposition"]


def test_a_lot_is_stopped_and_started_by_buttons(client, acme):
    order = make_order(acme, make_machine(lots=2), lots=2)
    url = f"/o/acme/orders/{order.pk}/"
    assert "Stop lot 2" in read(client, url)
    assert client.post(f"{url}allocations/2/stop/").url == url
    assert "Start lot 2" in read(client, url)
    client.post(f"{url}allocations/2/start/")
    assert not Allocation.objects.filter(state="stopped").exists()
    opened = client.get(f"{url}allocations/2/stop/", follow=True)
    assert opened.redirect_chain == [(url, 302)]
    assert "Nothing was changed" in opened.content.decode()
    refused = client.put(f"{url}allocations/2/stop/")
    assert refused.status_code == 405
    assert "Error 405" in refused.content.decode()
    assert not Allocation.objects.filter(state="stopped").exists()


def test_what_is_not_handed_over_yet_is_being_prepared_wherever_it_is_told(client, acme):
    """No line of the receipt says that a lot runs which the next line says was not handed over."""
    order = make_order(acme, make_machine(lots=2), lots=2)
    url = f"/o/acme/orders/{order.pk}/"
    html = read(client, url)
    assert html.count(">Preparing</span>") == 2
    assert ">Running</span>" not in html
    assert "0 of 2 lots handed over." in html
    order.allocations.filter(number=1).update(delivered_at=order.starts_at)
    html = read(client, url)
    assert (html.count(">Preparing</span>"), html.count(">Running</span>")) == (1, 1)
    client.post(f"{url}allocations/2/stop/")
    html = client.post(f"{url}allocations/2/start/", follow=True).content.decode()
    assert "Lot 2: Preparing." in html
    assert client.post(f"{url}allocations/3/stop/").status_code == 404


def test_a_viewer_may_look_and_not_touch(client, acme):
    order = make_order(acme)
    client.force_login(make_member(acme, "viewer"))
    url = f"/o/acme/orders/{order.pk}/"
    assert "Stop lot" not in read(client, url)
    assert client.post(f"{url}allocations/1/stop/").status_code == 403
    assert not Allocation.objects.filter(state="stopped").exists()


def test_an_order_over_but_not_yet_swept_reads_as_ended_and_cannot_be_started(client, acme, now):
    order = make_order(acme, placement={"now": now - timedelta(days=7, seconds=1)})
    url = f"/o/acme/orders/{order.pk}/"
    before = read(client, url)
    assert "Ended" in before
    assert "Stop lot" not in before
    response = client.post(f"{url}allocations/1/start/")
    assert response.status_code == 409
    assert "over" in response.content.decode()
    end_due_orders(now)
    assert "Stopped" in read(client, url)


def test_hostile_names_are_text(client, acme):
    order = make_order(acme, make_machine(name='<script>alert("x")</script>'), environment_notes="<b>bold</b>")
    html = read(client, f"/o/acme/orders/{order.pk}/")
    assert "<script>alert" not in html
    assert "<b>bold</b>" not in html
