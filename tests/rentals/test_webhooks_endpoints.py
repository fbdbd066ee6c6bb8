"""Endpoints: their secrets, what is done by hand, and what is refused."""

import json
from datetime import UTC, timedelta

import pytest
from django.conf import settings as django_settings

from catalog.sealing import WEBHOOKS, SecretUnreadable
from rentals.errors import InvalidWebhook, NotPermitted
from rentals.models import AuditEvent, Membership, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from rentals.models.webhooks import EventKind
from rentals.webhooks_endpoints import (
    MAX_ENDPOINTS,
    Wish,
    change_endpoint,
    replay,
    rotate_secret,
    send_test,
)
from rentals.webhooks_sealing import seal_anew
from rentals.webhooks_sending import KEPT_FOR, WAITS, claim, note, prune, request, send_webhooks
from rentals.webhooks_signing import OVERLAP
from tests.factories import make_endpoint, make_order
from tests.rentals.receivers import receiving


def send(now):
    return send_webhooks(lambda: now)


def manager(organization):
    return Membership.objects.get(organization=organization, user=organization.owner)


def made_at(endpoint):
    endpoint.refresh_from_db()
    return endpoint.secret_made_at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def test_with_a_new_secret_both_verify_for_the_overlap_then_the_new_one_alone(acme, endpoint, receiver, recipe, now):
    old = endpoint.text
    _, new = rotate_secret(manager(acme), endpoint.pk, made_at=made_at(endpoint), now=now)
    assert new != old
    for moment, both in ((now, True), (now + OVERLAP - timedelta(microseconds=1), True), (now + OVERLAP, False)):
        receiver.received.clear()
        send_test(manager(acme), endpoint.pk, now=moment)
        assert send(moment) == 1
        (came,) = receiver.received
        age = abs((moment - now).total_seconds()) + 60
        recipe(new, came.headers, came.body, age)
        if both:
            recipe(old, came.headers, came.body, age)
        else:
            with pytest.raises(ValueError):
                recipe(old, came.headers, came.body, age)


def test_a_form_that_is_sent_twice_changes_the_secret_once(acme, endpoint, now):
    seen = made_at(endpoint)
    rotate_secret(manager(acme), endpoint.pk, made_at=seen, now=now)
    with pytest.raises(InvalidWebhook, match="changed already"):
        rotate_secret(manager(acme), endpoint.pk, made_at=seen, now=now)


def test_the_database_does_not_have_the_secret_and_a_new_key_of_the_server_keeps_it(
    acme, endpoint, receiver, recipe, settings, now
):
    stored = WebhookEndpoint.objects.get().secret
    assert endpoint.text.removeprefix("whsec_") not in stored
    assert not any(endpoint.text.removeprefix("whsec_") in str(row) for row in AuditEvent.objects.values_list("data"))
    before = django_settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key", [before]
    assert WEBHOOKS.unseal(stored) == endpoint.text
    assert seal_anew() == 1
    settings.SECRET_KEY_FALLBACKS = []
    make_order(acme, placement={"now": now})
    assert send(now) == 1
    recipe(endpoint.text, receiver.received[0].headers, receiver.received[0].body)


def test_a_secret_that_cannot_be_read_fails_and_says_what_to_do(acme, endpoint, receiver, settings, now):
    settings.SECRET_KEY = "another key"
    with pytest.raises(SecretUnreadable):
        WEBHOOKS.unseal(WebhookEndpoint.objects.get().secret)
    make_order(acme, placement={"now": now})
    assert send(now) == 0
    assert not receiver.received
    assert "Make a new one" in WebhookAttempt.objects.get().problem
    rotate_secret(manager(acme), endpoint.pk, made_at=made_at(endpoint), now=now)
    assert send(now + WAITS[0]) == 1


def test_a_sealed_secret_is_never_twice_the_same():
    assert WEBHOOKS.seal("whsec_AAAA") != WEBHOOKS.seal("whsec_AAAA")


def test_a_test_event_is_sent_to_its_endpoint_alone_and_waits_once(acme, endpoint, receiver, settings, now):
    with receiving(settings) as other:
        make_endpoint(acme, other.url, now=now)
        for _ in range(3):
            send_test(manager(acme), endpoint.pk, now=now)
        assert send(now) == 1
        assert not other.received
    told = json.loads(receiver.received[0].body)
    assert told["type"] == "webhook.test"
    assert told["html_url"] == f"http://testserver/o/acme/webhooks/{endpoint.pk}/"


def test_a_test_event_that_is_asked_for_again_has_the_whole_schedule(acme, endpoint, receiver, now):
    receiver.answer = lambda came: (500, {}, b"")
    send_test(manager(acme), endpoint.pk, now=now)
    moment = now
    for wait in WAITS:
        send(moment)
        moment += wait
    assert WebhookDelivery.objects.get().tries == len(WAITS)
    send_test(manager(acme), endpoint.pk, now=moment)
    for wait in WAITS:
        send(moment)
        moment += wait
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.tries, delivery.next_attempt_at) == ("pending", len(WAITS), moment)
    assert len(set(receiver.ids())) == 1


def test_a_replay_sends_the_same_event_again_with_the_whole_schedule(acme, endpoint, receiver, now):
    receiver.answer = lambda came: (500, {}, b"")
    make_order(acme, placement={"now": now})
    moment = now
    for wait in (*WAITS, timedelta(0)):
        send(moment)
        moment += wait
    delivery = WebhookDelivery.objects.get()
    assert delivery.state == "failed"
    replay(manager(acme), endpoint.pk, delivery.pk, now=moment)
    send(moment)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries, delivery.next_attempt_at) == ("pending", 1, moment + WAITS[0])
    receiver.answer = lambda came: (200, {}, b"")
    assert send(moment + WAITS[0]) == 1
    replay(manager(acme), endpoint.pk, delivery.pk, now=moment + timedelta(hours=1))
    assert send(moment + timedelta(hours=1)) == 1
    assert len(set(receiver.ids())) == 1
    assert WebhookAttempt.objects.count() == len(receiver.received) == 10


def test_turned_off_it_is_told_nothing_and_on_again_only_what_happens_then(acme, endpoint, receiver, now):
    make_order(acme, placement={"now": now})
    wish = {"url": receiver.url, "events": tuple(EventKind.values)}
    change_endpoint(manager(acme), endpoint.pk, Wish(**wish, enabled=False), now=now)
    make_order(acme, placement={"now": now})
    assert send(now) == 0
    assert list(WebhookDelivery.objects.values_list("state", flat=True)) == ["dropped"]
    with pytest.raises(InvalidWebhook, match="turned off"):
        replay(manager(acme), endpoint.pk, WebhookDelivery.objects.get().pk, now=now)
    with pytest.raises(InvalidWebhook, match="turned off"):
        send_test(manager(acme), endpoint.pk, now=now)
    change_endpoint(manager(acme), endpoint.pk, Wish(**wish), now=now)
    make_order(acme, placement={"now": now})
    assert send(now) == 1
    replay(manager(acme), endpoint.pk, WebhookDelivery.objects.get(state="dropped").pk, now=now)
    assert send(now) == 1


def test_an_endpoint_that_is_removed_while_a_message_is_on_its_way_leaves_nothing(acme, endpoint, receiver, now):
    make_order(acme, placement={"now": now})
    shot = claim(acme.pk, endpoint.pk, now)
    outcome = request(shot)
    WebhookEndpoint.objects.all().delete()
    note(shot, outcome, now)
    assert not WebhookAttempt.objects.exists()


def test_events_are_forgotten_after_thirty_days(acme, endpoint, receiver, now):
    make_order(acme, placement={"now": now})
    send(now)
    assert prune(now + KEPT_FOR) == 0
    assert prune(now + KEPT_FOR + timedelta(seconds=1)) == 1
    assert not WebhookDelivery.objects.exists()
    assert not WebhookAttempt.objects.exists()
    assert WebhookEndpoint.objects.exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/hook",
        "ftp://example.com/",
        "https://user:password@example.com/",
        "https://127.0.0.1/",
        "https://10.0.0.5/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.5]/",
        "https://169.254.169.254/latest/",
        "https://2130706433/",
        "https://localhost/",
        "https://example.com/#part",
        "https://example.com/a b",
        "https://exämple.com/",
        "https://example.com:99999/",
        "https://",
        "example.com",
        "javascript:alert(1)",
        "https://example.com/" + "a" * 500,
    ],
)
def test_an_address_that_may_not_be_told_is_refused_at_its_field(url):
    with pytest.raises(InvalidWebhook) as refused:
        Wish(url, ("order.placed",))
    assert refused.value.field == "url"


def test_an_organization_has_at_most_ten_endpoints(acme, globex):
    for _ in range(MAX_ENDPOINTS):
        make_endpoint(acme)
    with pytest.raises(InvalidWebhook, match="at most 10"):
        make_endpoint(acme)
    make_endpoint(globex)


def test_who_lost_the_role_meanwhile_changes_nothing(acme, endpoint, now):
    member = manager(acme)
    Membership.objects.filter(pk=member.pk).update(role="member")
    with pytest.raises(NotPermitted):
        rotate_secret(member, endpoint.pk, made_at=made_at(endpoint), now=now)
