"""Several workers at once, in real transactions: each delivery is sent once, each event is written once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone

from rentals.invariants import violations
from rentals.models import Membership, Order, WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from rentals.saved_searches import CHECK_EVERY, check_saved_searches
from rentals.webhooks_endpoints import MAX_ENDPOINTS, rotate_secret
from rentals.webhooks_events import tell_of_ends
from rentals.webhooks_sending import send_webhooks
from tests.factories import make_endpoint, make_machine, make_order, make_organization, make_search
from tests.rentals.receivers import receiving
from tests.rentals.test_concurrency import at_once

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def test_workers_at_once_send_each_delivery_once(settings):
    now = timezone.now()
    acme, globex = make_organization("acme"), make_organization("globex")
    with receiving(settings) as first, receiving(settings) as second, receiving(settings) as third:
        for organization, receiver in ((acme, first), (acme, second), (globex, third)):
            make_endpoint(organization, receiver.url, now=now)
        machine = make_machine(lots=20)
        for number in range(10):
            make_order(acme if number % 2 else globex, machine, placement={"now": now})
        delivered = at_once([lambda: send_webhooks(lambda: now)] * 4)
        # What a worker found in another's hand is taken by the next sweep.
        delivered.append(send_webhooks(lambda: now))
    assert sum(delivered) == 15
    for receiver in (first, second, third):
        assert len(receiver.received) == len(set(receiver.ids())) == 5
    assert set(WebhookDelivery.objects.values_list("state", "tries")) == {("delivered", 1)}
    assert WebhookAttempt.objects.count() == 15
    assert not violations()


@pytest.mark.timeout(60)
def test_an_order_is_placed_while_a_slow_endpoint_has_a_worker_in_hand(settings):
    """No row that an order needs is held while a request is on its way."""
    now, arrived, go_on = timezone.now(), threading.Event(), threading.Event()
    acme = make_organization("acme")
    with receiving(settings) as receiver, ThreadPoolExecutor(1) as pool:

        def answer(came):
            arrived.set()
            go_on.wait(9)
            return 200, {}, b""

        def sweep():
            try:
                return send_webhooks(lambda: now)
            finally:
                connections.close_all()

        receiver.answer = answer
        endpoint = make_endpoint(acme, receiver.url, now=now)
        make_order(acme, placement={"now": now})
        sending = pool.submit(sweep)
        assert arrived.wait(30)
        # Not held: asked for without waiting, a row that somebody holds is an error.
        with transaction.atomic():
            assert WebhookEndpoint.objects.select_for_update(nowait=True).get() == endpoint
        make_order(acme, placement={"now": now})
        go_on.set()
        assert sending.result(30) == 2
    assert Order.objects.count() == 2


def test_an_endpoint_whose_row_is_held_is_passed_over_and_the_others_are_served(settings):
    now, acme, held, go_on = timezone.now(), make_organization("acme"), threading.Event(), threading.Event()
    with receiving(settings) as first, receiving(settings) as second, ThreadPoolExecutor(1) as pool:
        endpoint = make_endpoint(acme, first.url, now=now)
        make_endpoint(acme, second.url, now=now)
        make_order(acme, placement={"now": now})

        def hold():
            try:
                with transaction.atomic():
                    WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
                    held.set()
                    go_on.wait(30)
            finally:
                connections.close_all()

        holding = pool.submit(hold)
        assert held.wait(30)
        assert send_webhooks(lambda: now) == 1
        assert (len(first.received), len(second.received)) == (0, 1)
        go_on.set()
        holding.result(30)
        assert send_webhooks(lambda: now) == 1


def test_sweeps_at_once_tell_of_an_end_once():
    acme = make_organization("acme")
    make_endpoint(acme)
    order = make_order(acme)
    at_once([lambda: tell_of_ends(order.ends_at - timedelta(hours=1))] * 6)
    assert WebhookEvent.objects.filter(kind="order.ending").count() == 1
    assert WebhookDelivery.objects.filter(event__kind="order.ending").count() == 1


def test_sweeps_at_once_tell_of_a_machine_once():
    now, acme = timezone.now(), make_organization("acme")
    make_endpoint(acme)
    for number in range(5):
        make_search(acme, f"search {number}", now=now)
    make_machine()
    found = at_once([lambda: check_saved_searches(now + CHECK_EVERY)] * 6)
    assert sum(found) == 5
    assert WebhookEvent.objects.filter(kind="machine.available").count() == 5


def test_endpoints_and_secrets_made_at_once_keep_their_limits():
    now, acme = timezone.now(), make_organization("acme")
    results = at_once([lambda: make_endpoint(acme)] * 14)
    assert WebhookEndpoint.objects.count() == MAX_ENDPOINTS
    assert sum(isinstance(result, WebhookEndpoint) for result in results) == MAX_ENDPOINTS
    member = Membership.objects.get(organization=acme)
    endpoint = WebhookEndpoint.objects.first()
    seen = endpoint.secret_made_at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    results = at_once([lambda: rotate_secret(member, endpoint.pk, made_at=seen, now=now + timedelta(hours=1))] * 4)
    assert sum(isinstance(result, tuple) for result in results) == 1
