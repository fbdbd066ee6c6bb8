"""The pages of webhooks: who may, what is shown once, and every button."""

import re

import pytest

from catalog.sealing import WEBHOOKS
from rentals.models import AuditEvent, WebhookDelivery, WebhookEndpoint
from rentals.webhooks_sending import send_webhooks
from tests.factories import make_endpoint, make_member, make_order, make_user

FORM = {
    "url": "https://example.com/hook?token=abc",
    "description": "billing",
    "events": ["order.placed", "order.ended"],
}


@pytest.fixture
def owner(client, acme):
    client.force_login(acme.owner)
    return client


def secret_in(response):
    found = re.findall(r"whsec_[A-Za-z0-9+/=]+", response.content.decode())
    assert len(found) <= 1
    return found[0] if found else None


def test_an_endpoint_is_made_and_its_secret_is_shown_once(owner):
    response = owner.post("/o/acme/webhooks/", FORM)
    assert response.status_code == 200
    endpoint = WebhookEndpoint.objects.get()
    assert WEBHOOKS.unseal(endpoint.secret) == secret_in(response)
    assert "no-store" in response.headers["Cache-Control"]
    assert (endpoint.url, endpoint.description, endpoint.events) == (FORM["url"], "billing", FORM["events"])
    for address in ("/o/acme/webhooks/", f"/o/acme/webhooks/{endpoint.pk}/"):
        shown = owner.get(address)
        assert shown.status_code == 200
        assert secret_in(shown) is None
        assert "billing" in shown.content.decode()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "http://example.com/hook"}, "id_url"),
        ({"url": "https://10.0.0.1/"}, "id_url"),
        ({"url": ""}, "id_url"),
        ({"url": "https://exam\x00ple.com/"}, "id_url"),
        ({"events": []}, "id_events"),
        ({"events": ["order.eaten"]}, "id_events"),
        ({"description": "x" * 101}, "id_description"),
        ({"description": "a\nb\x07"}, "id_description"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_made(owner, change, field):
    response = owner.post("/o/acme/webhooks/", FORM | change)
    assert response.status_code == 400
    assert f'href="#{field}' in response.content.decode()
    assert not WebhookEndpoint.objects.exists()


def test_an_eleventh_endpoint_is_refused_with_words(owner, acme):
    for _ in range(10):
        make_endpoint(acme)
    response = owner.post("/o/acme/webhooks/", FORM)
    assert response.status_code == 400
    assert "at most 10 endpoints" in response.content.decode()


@pytest.mark.parametrize("role", ["viewer", "member"])
def test_members_and_viewers_are_refused_every_page_of_it(client, acme, role):
    endpoint = make_endpoint(acme)
    make_order(acme)
    delivery = WebhookDelivery.objects.get()
    client.force_login(make_member(acme, role))
    one = f"/o/acme/webhooks/{endpoint.pk}/"
    log = f"{one}deliveries/{delivery.pk}/"
    for address in ("/o/acme/webhooks/", one, f"{one}secret/", f"{one}test/", f"{one}remove/", log, f"{log}replay/"):
        for response in (client.get(address), client.post(address, FORM)):
            assert response.status_code == 403
            assert b"example.com/hook" not in response.content
    assert WebhookEndpoint.objects.get().url == "https://example.com/hook"


def test_an_admin_changes_turns_off_and_removes_and_the_trail_tells_without_the_password(client, acme):
    admin = make_member(acme, "admin")
    client.force_login(admin)
    client.post("/o/acme/webhooks/", FORM)
    endpoint = WebhookEndpoint.objects.get()
    one = f"/o/acme/webhooks/{endpoint.pk}/"
    # A box that is not ticked is not sent.
    assert client.post(one, FORM | {"url": "https://example.net/new"}).status_code == 302
    endpoint.refresh_from_db()
    assert (endpoint.url, endpoint.enabled) == ("https://example.net/new", False)
    seen = re.search(r'name="made_at" value="([^"]+)"', client.get(one).content.decode())[1]
    rotated = client.post(f"{one}secret/", {"made_at": seen})
    assert secret_in(rotated)
    again = client.post(f"{one}secret/", {"made_at": seen}, follow=True)
    assert secret_in(again) is None
    assert "changed already" in again.content.decode()
    assert client.post(f"{one}remove/").status_code == 302
    assert not WebhookEndpoint.objects.exists()
    trail = AuditEvent.objects.filter(action__startswith="webhook.").order_by("pk")
    assert [event.action for event in trail] == [
        "webhook.created", "webhook.changed", "webhook.secret_rotated", "webhook.removed",
    ]  # fmt: skip
    assert {event.actor for event in trail} == {admin}
    assert trail[0].data["url"] == "https://example.com/hook?…"
    assert not any(word in str([event.data for event in trail]) for word in ("whsec_", "token=abc"))
    client.force_login(acme.owner)
    activity = client.get("/o/acme/activity/").content.decode()
    for words in ("Webhook made", "Webhook changed", "Webhook given a new secret", "Webhook removed"):
        assert words in activity


def test_the_buttons_send_a_test_and_send_again(owner, acme, receiver, endpoint, now):
    one = f"/o/acme/webhooks/{endpoint.pk}/"
    assert "on its way" in owner.post(f"{one}test/", follow=True).content.decode()
    delivery = WebhookDelivery.objects.get()
    assert send_webhooks(lambda: delivery.created_at) == 1
    shown = owner.get(one).content.decode()
    assert "webhook.test" in shown
    assert "200, " in shown
    log = f"{one}deliveries/{delivery.pk}/"
    shown = owner.get(log).content.decode()
    assert "thanks" in shown
    assert str(delivery.event_id) in shown
    assert "sent again" in owner.post(f"{log}replay/", follow=True).content.decode()
    delivery.refresh_from_db()
    assert send_webhooks(lambda: delivery.next_attempt_at) == 1
    assert receiver.ids() == [str(delivery.event_id)] * 2


def test_pages_of_a_long_log_ask_the_database_the_same_number_of_questions(
    owner, acme, receiver, endpoint, now, django_assert_max_num_queries
):
    def questions():
        with django_assert_max_num_queries(100) as captured:
            assert owner.get(f"/o/acme/webhooks/{endpoint.pk}/").status_code == 200
        return len(captured)

    make_order(acme, placement={"now": now})
    send_webhooks(lambda: now)
    first = questions()
    for _ in range(30):
        make_order(acme, placement={"now": now})
    send_webhooks(lambda: now)
    assert questions() == first
    assert "page=2" in owner.get(f"/o/acme/webhooks/{endpoint.pk}/").content.decode()


def test_staff_look_at_webhooks_and_see_no_secret(client, acme, receiver, endpoint, now):
    WebhookEndpoint.objects.update(url=f"{receiver.url}?token=abc")
    make_order(acme, placement={"now": now})
    send_webhooks(lambda: now)
    client.force_login(make_user(is_staff=True, is_superuser=True))
    delivery = WebhookDelivery.objects.get()
    for address in (
        "webhookendpoint/",
        f"webhookendpoint/{endpoint.pk}/change/",
        "webhookdelivery/",
        f"webhookdelivery/{delivery.pk}/change/",
        "savedsearch/",
    ):
        response = client.get(f"/admin/rentals/{address}")
        assert response.status_code == 200
        shown = response.content.decode()
        assert "token=abc" not in shown
        assert WebhookEndpoint.objects.get().secret not in shown
        assert 'name="_save"' not in shown
