"""Sending: signed, on the stated schedule, each endpoint by itself, at least once."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.core import mail

from catalog.sealing import WEBHOOKS
from rentals import tasks
from rentals.invariants import violations
from rentals.models import AuditEvent, Membership, Order, WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from rentals.webhooks_endpoints import Wish, change_endpoint
from rentals.webhooks_failing import DEAD_AFTER
from rentals.webhooks_sending import CLAIM, REST, WAITS, claim, note, request, send_webhooks
from tests.factories import make_endpoint, make_machine, make_member, make_order, make_user
from tests.rentals.receivers import receiving, until
from tests.tenancy import as_in_production

MANUAL = Path(__file__).parents[2] / "docs" / "webhooks.md"


def send(now):
    return send_webhooks(lambda: now)


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (500, "It answers 500"),
        (404, "It answers 404"),
        (302, "It redirects (302). Redirects are not followed"),
    ],
)
def test_a_failing_endpoint_is_tried_on_the_stated_schedule_under_one_id_and_given_up(
    acme, endpoint, receiver, now, status, problem
):
    receiver.answer = lambda came: (status, {"Location": "http://127.0.0.1:1/private"} if status == 302 else {}, b"no")
    make_order(acme, placement={"now": now})
    moments = [now]
    for wait in WAITS:
        moments.append(moments[-1] + wait)
    for number, moment in enumerate(moments):
        if number:
            assert send(moment - timedelta(microseconds=1)) == 0
            assert len(receiver.received) == number
        assert send(moment) == 0
        assert len(receiver.received) == number + 1
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.tries, delivery.finished_at) == ("failed", 7, moments[-1])
    assert send(moments[-1] + timedelta(days=1)) == 0
    assert len(set(receiver.ids())) == 1
    assert len(receiver.received) == 7
    attempts = list(WebhookAttempt.objects.all())
    assert {attempt.status for attempt in attempts} == {status}
    assert all(attempt.problem.startswith(problem) for attempt in attempts)


def test_the_schedule_is_the_one_of_the_manual():
    rows = re.findall(r"^\| (\d)(?:, the last)? \| (\d+) (minute|hour)s? \|$", MANUAL.read_text(), re.MULTILINE)
    assert [int(number) for number, *_ in rows] == [2, 3, 4, 5, 6, 7]
    assert tuple(timedelta(**{f"{unit}s": int(count)}) for _, count, unit in rows) == WAITS


def test_an_endpoint_that_is_back_gets_what_it_missed_and_counts_as_sound_again(acme, endpoint, receiver, now):
    receiver.answer = lambda came: (503, {}, b"")
    for _ in range(3):
        make_order(acme, placement={"now": now})
    assert send(now) == 0
    endpoint.refresh_from_db()
    assert endpoint.failing_since == now
    receiver.answer = lambda came: (204, {}, b"")
    assert send(now + WAITS[0]) == 3
    endpoint.refresh_from_db()
    assert endpoint.failing_since is None
    assert WebhookDelivery.objects.filter(state="delivered").count() == 3


def test_an_endpoint_that_gives_no_answer_is_left_alone_for_a_minute(acme, settings, now):
    with receiving(settings) as gone:
        pass
    make_endpoint(acme, gone.url, now=now)
    for _ in range(3):
        make_order(acme, placement={"now": now})
    send(now)
    send(now + REST - timedelta(microseconds=1))
    assert WebhookAttempt.objects.count() == 1
    send(now + REST)
    assert WebhookAttempt.objects.count() == 2
    assert WebhookAttempt.objects.first().problem == "The server does not take connections."
    assert WebhookAttempt.objects.first().status is None


def test_where_there_was_no_answer_the_pages_say_so_in_words(acme, client, settings, now):
    with receiving(settings) as gone:
        pass
    endpoint = make_endpoint(acme, gone.url, now=now)
    make_order(acme, placement={"now": now})
    send(now)
    delivery = WebhookDelivery.objects.get()
    pages = {
        acme.owner: [f"/o/acme/webhooks/{endpoint.pk}/", f"/o/acme/webhooks/{endpoint.pk}/deliveries/{delivery.pk}/"],
        make_user(is_staff=True, is_superuser=True): [f"/admin/rentals/webhookdelivery/{delivery.pk}/change/"],
    }
    for user, addresses in pages.items():
        client.force_login(user)
        for address in addresses:
            html = client.get(address).content.decode()
            assert "No answer" in html
            assert "None" not in html


def test_a_redirect_to_a_private_address_is_refused_and_nothing_is_sent_there(acme, endpoint, receiver, settings, now):
    with receiving(settings) as inner:
        settings.OUTGOING_ALLOWED = [receiver.address]
        for status in (301, 302, 303, 307, 308):
            receiver.answer = lambda came, status=status: (status, {"Location": inner.url}, b"")
            make_order(acme, placement={"now": now})
            assert send(now) == 0
        assert not inner.received
    assert WebhookAttempt.objects.exclude(problem="").count() == 5


def test_an_address_that_is_no_longer_allowed_is_refused_when_it_is_sent(acme, endpoint, receiver, settings, now):
    """As when a name leads elsewhere after it was checked."""
    make_order(acme, placement={"now": now})
    settings.OUTGOING_ALLOWED = []
    assert send(now) == 0
    assert not receiver.received
    assert "not a public address" in WebhookAttempt.objects.get().problem


def test_an_endpoint_that_failed_for_days_is_turned_off_and_the_owners_are_told_once(
    acme, endpoint, receiver, now, django_capture_on_commit_callbacks
):
    make_member(acme, "admin")
    receiver.answer = lambda came: (500, {}, b"")
    machine = make_machine(lots=20)
    moment = now
    with django_capture_on_commit_callbacks(execute=True):
        while moment < now + DEAD_AFTER:
            make_order(acme, machine, placement={"now": moment})
            send(moment)
            endpoint.refresh_from_db()
            assert endpoint.enabled
            moment += timedelta(hours=12)
    assert not mail.outbox
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            make_order(acme, machine, placement={"now": moment})
            send(moment)
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.given_up_at) == (False, moment)
    assert [(message.to, message.subject) for message in mail.outbox] == [
        ([acme.owner.email], "[Berth] A webhook of Acme is turned off")
    ]
    assert f"/o/acme/webhooks/{endpoint.pk}/" in mail.outbox[0].body
    assert AuditEvent.objects.filter(action="webhook.given_up", via="system").count() == 1
    assert not WebhookDelivery.objects.filter(state="pending").exists()
    sent = len(receiver.received)
    assert send(moment + timedelta(days=1)) == 0
    assert len(receiver.received) == sent


def test_what_the_answer_says_is_kept_in_part_and_shown_harmless(acme, endpoint, receiver, client, now):
    said = b"<script>alert(1)</script>\x00\xff" + endpoint.text.encode() + b" " + b"x" * 100_000
    receiver.answer = lambda came: (500, {}, said)
    make_order(acme, placement={"now": now})
    send(now)
    attempt = WebhookAttempt.objects.get()
    assert len(attempt.answer) == 500
    assert attempt.answer.startswith("<script>alert(1)</script> �whsec_… xxx")
    client.force_login(acme.owner)
    shown = client.get(f"/o/acme/webhooks/{endpoint.pk}/deliveries/{attempt.delivery_id}/").content.decode()
    assert "&lt;script&gt;alert(1)" in shown
    assert "<script>alert" not in shown
    assert endpoint.text not in shown


def test_a_slow_endpoint_holds_up_neither_orders_nor_another_endpoint(acme, globex, settings, now):
    with receiving(settings) as slow, receiving(settings) as quick:
        make_endpoint(acme, slow.url, now=now)
        make_endpoint(globex, quick.url, now=now)

        def answer(came):
            # It answers when the other has had everything, and would never if the other waited for it.
            until(lambda: len(quick.received) == 3, 9)
            return 200, {}, b""

        slow.answer = answer
        for organization in (acme, globex, globex, globex):
            make_order(organization, placement={"now": now})
        assert not slow.received
        assert send(now) == 4
    assert Order.objects.filter(status="active").count() == 4


def test_what_happens_while_a_slow_endpoint_is_waited_for_is_sent_to_the_others_meanwhile(acme, globex, settings, now):
    with receiving(settings) as slow, receiving(settings) as quick:
        make_endpoint(acme, slow.url, now=now)
        make_endpoint(globex, quick.url, now=now)

        def answer(came):
            until(lambda: len(quick.received) == 1, 9)
            return 200, {}, b""

        def clock():
            # The sweep asks for the time while it waits: then something happens in the other organization.
            if slow.received and not happened:
                happened.append(make_order(globex, placement={"now": now}))
            return now

        slow.answer, happened = answer, []
        make_order(acme, placement={"now": now})
        assert send_webhooks(clock) == 2


def test_many_dead_endpoints_leave_half_of_a_sweep_to_the_others(acme, globex, settings, now, monkeypatch):
    monkeypatch.setattr("rentals.webhooks_sending.SIDE_BY_SIDE", 2)
    monkeypatch.setattr("rentals.webhooks_sending.FAILING_SIDE_BY_SIDE", 1)
    with receiving(settings) as dead, receiving(settings) as sound:
        for _ in range(3):
            endpoint = make_endpoint(acme, dead.url, now=now)
            WebhookEndpoint.objects.filter(pk=endpoint.pk).update(failing_since=now)
        make_endpoint(globex, sound.url, now=now)

        def answer(came):
            until(lambda: len(sound.received) == 1, 9)
            return 200, {}, b""

        def clock():
            if dead.received and not happened:
                happened.append(make_order(globex, placement={"now": now}))
            return now

        dead.answer, happened = answer, []
        make_order(acme, placement={"now": now})
        assert send_webhooks(clock) == 4


@pytest.mark.parametrize(
    ("status", "asked", "waited"),
    [
        (429, "600", timedelta(minutes=10)),
        (503, "5", WAITS[0]),
        (503, "999999", timedelta(hours=24)),
        (503, "soon", WAITS[0]),
        (500, "600", WAITS[0]),
    ],
)
def test_a_receiver_that_asks_to_be_left_alone_is_for_as_long(acme, endpoint, receiver, now, status, asked, waited):
    receiver.answer = lambda came: (status, {"Retry-After": asked}, b"")
    make_order(acme, placement={"now": now})
    send(now)
    assert WebhookDelivery.objects.get().next_attempt_at == now + waited
    # What happens meanwhile waits too, where more than one message was meant.
    make_order(acme, placement={"now": now})
    send(now + timedelta(seconds=4))
    assert len(receiver.received) == (2 if status == 500 or asked == "soon" else 1)
    receiver.answer = lambda came: (200, {}, b"")
    assert send(now + max(waited, timedelta(seconds=4) + WAITS[0])) == 2


def test_an_endpoint_that_says_it_is_gone_is_turned_off_at_once_and_the_owners_are_told(
    acme, endpoint, receiver, client, now, django_capture_on_commit_callbacks
):
    receiver.answer = lambda came: (410, {}, b"")
    for _ in range(2):
        make_order(acme, placement={"now": now})
    with django_capture_on_commit_callbacks(execute=True):
        send(now)
    assert len(receiver.received) == 1
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.given_up_at, endpoint.given_up_why) == (False, now, "gone")
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {"dropped"}
    assert [message.to for message in mail.outbox] == [[acme.owner.email]]
    assert "410 Gone" in mail.outbox[0].body
    assert AuditEvent.objects.get(action="webhook.given_up").data["why"] == "gone"
    client.force_login(acme.owner)
    shown = client.get(f"/o/acme/webhooks/{endpoint.pk}/").content.decode()
    assert "It answered “410 Gone”" in shown
    assert "Turned off: it is gone" in shown
    manager = Membership.objects.get(organization=acme, user=acme.owner)
    change_endpoint(manager, endpoint.pk, Wish(endpoint.url, tuple(endpoint.events)), now=now)
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.given_up_at, endpoint.given_up_why) == (True, None, "")


def test_an_address_that_is_gone_does_not_turn_off_the_one_that_was_entered_meanwhile(acme, endpoint, receiver, now):
    receiver.answer = lambda came: (410, {}, b"")
    make_order(acme, placement={"now": now})
    shot = claim(acme.pk, endpoint.pk, now)
    outcome = request(shot)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(url="https://example.com/other")
    note(shot, outcome, now)
    endpoint.refresh_from_db()
    assert endpoint.enabled


@pytest.mark.timeout(60)
def test_an_endpoint_that_never_answers_costs_a_time_limit(acme, endpoint, receiver, monkeypatch, now):
    monkeypatch.setattr("rentals.webhooks_sending.SECONDS", 0.5)
    receiver.wait = 40
    make_order(acme, placement={"now": now})
    assert send(now) == 0
    attempt = WebhookAttempt.objects.get()
    assert attempt.problem == "The server did not answer in full within the time limit."
    assert attempt.milliseconds < 20_000


def test_an_endpoint_in_hand_is_left_to_whoever_has_it(acme, endpoint, receiver, now):
    make_order(acme, placement={"now": now})
    shot = claim(acme.pk, endpoint.pk, now)
    assert claim(acme.pk, endpoint.pk, now) is None
    assert send(now) == 0
    assert not receiver.received
    note(shot, request(shot), now)
    assert WebhookDelivery.objects.get().state == "delivered"
    assert send(now + CLAIM) == 0
    assert len(receiver.received) == 1


def test_a_crash_between_sending_and_noting_means_once_more_under_the_same_id(acme, endpoint, receiver, now):
    make_order(acme, placement={"now": now})
    # Sent, and then the worker is gone: nothing was written.
    request(claim(acme.pk, endpoint.pk, now))
    assert send(now + CLAIM - timedelta(microseconds=1)) == 0
    assert send(now + CLAIM) == 1
    assert len(receiver.received) == 2
    assert len(set(receiver.ids())) == 1
    assert receiver.received[0].body == receiver.received[1].body


def test_the_claims_of_a_worker_that_was_away_for_long_do_no_harm(acme, endpoint, receiver, now):
    make_order(acme, placement={"now": now})
    late = claim(acme.pk, endpoint.pk, now)
    receiver.answer = lambda came: (500, {}, b"")
    outcome = request(late)
    receiver.answer = lambda came: (200, {}, b"")
    assert send(now + CLAIM) == 1
    note(late, outcome, now + CLAIM)
    assert WebhookDelivery.objects.get().state == "delivered"


def test_the_trouble_of_one_endpoint_stays_its_own(acme, globex, receiver, now, caplog):
    broken = make_endpoint(acme, receiver.url, now=now)
    make_endpoint(globex, receiver.url, now=now)
    for organization in (acme, globex):
        make_order(organization, placement={"now": now})
    # No secret of ours: nothing can be signed with it.
    WebhookEndpoint.objects.filter(pk=broken.pk).update(secret=WEBHOOKS.seal("whsec_ä"))
    assert send(now) == 1
    assert "could not be served now" in caplog.text
    assert json.loads(receiver.received[0].body)["organization"] == "globex"


def test_periodic_work_reaches_every_tenant_without_being_one(acme, globex, receiver, now):
    for organization in (acme, globex):
        make_endpoint(organization, receiver.url, now=now)
        make_order(organization, placement={"now": now - timedelta(days=6, hours=12)})
    with as_in_production():
        assert tasks.tell_of_ends.run() == 2
        assert tasks.send_webhooks.run() == 4
        assert tasks.send_webhooks.run() == 0
        assert tasks.prune_webhooks.run() == 0
        assert tasks.seal_webhook_secrets_anew.run() == 0
    slugs = {(json.loads(came.body)["organization"], json.loads(came.body)["type"]) for came in receiver.received}
    assert slugs == {(slug, kind) for slug in ("acme", "globex") for kind in ("order.placed", "order.ending")}
    assert not violations()


def test_a_row_of_another_tenant_and_a_delivery_without_an_answer_are_found(acme, globex, endpoint, receiver, now):
    make_order(acme, placement={"now": now})
    assert send(now) == 1
    assert not violations()
    for model in (WebhookAttempt, WebhookDelivery, WebhookEvent):
        model.objects.update(organization=globex)
        assert {violation.rule for violation in violations()} == {"no_row_refers_to_another_tenant"}
        model.objects.update(organization=acme)
    WebhookAttempt.objects.update(status=500, problem="It answers 500.")
    assert {violation.rule for violation in violations()} == {"what_is_delivered_was_answered_with_success"}
