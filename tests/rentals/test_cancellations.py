"""Cancelling: by staff, once, with a reason and a credit that are written down."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from django.urls import reverse

from catalog.models import Machine
from rentals.cancellations import cancel_order, least_credit_usd
from rentals.documents import order_document
from rentals.endings import end_due_orders
from rentals.errors import InvalidCancellation, NotPermitted, OrderOver
from rentals.invariants import violations
from rentals.models import AuditEvent, Notice, Order
from rentals.notices import send_notices
from tests.factories import make_api_key, make_delivered, make_machine, make_order, make_user

PRICE = Decimal("110.00")
HOUR = timedelta(hours=1)


@pytest.fixture
def staff(db):
    return make_user("staff@example.com", is_staff=True, is_superuser=True)


@pytest.fixture
def machine(db):
    return make_machine(lots=3, price_7_days_usd=PRICE, name="North 1")


def cancel(order, staff, credit="220.00", reason="The provider withdrew it.", now=None):
    moment = now or order.starts_at + HOUR
    return cancel_order(order.pk, reason=reason, credit_usd=Decimal(credit), actor=staff, now=moment)


def free(machine):
    return Machine.objects.get(pk=machine.pk).free_lots


def test_lots_return_once_and_everything_is_written_down(acme, staff, machine):
    order = make_order(acme, machine, lots=2)
    cancel(order, staff)
    order.refresh_from_db()
    assert (order.status, order.ended_at) == ("cancelled", order.starts_at + HOUR)
    assert (order.cancel_reason, order.credit_usd) == ("The provider withdrew it.", Decimal("220.00"))
    assert {lot.state for lot in order.allocations.all()} == {"stopped"}
    assert free(machine) == 3
    event = AuditEvent.objects.get(action="order.cancelled")
    assert (event.actor, event.via) == (staff, "staff")
    assert event.data == {"lots": 2, "credit_usd": "220.00", "reason": "The provider withdrew it."}
    assert not violations()


def test_cancelled_and_ended_are_final(acme, staff, machine):
    order, other = make_order(acme, machine), make_order(acme, machine)
    cancel(order, staff, "110.00")
    with pytest.raises(OrderOver, match="cancelled already"):
        cancel(order, staff, "110.00", reason="Again")
    assert end_due_orders(other.ends_at) == 1
    assert Order.objects.get(pk=order.pk).status == "cancelled"
    with pytest.raises(OrderOver, match="ended already"):
        cancel(other, staff, "110.00")
    assert free(machine) == 3
    assert not violations()


@pytest.mark.parametrize(
    ("after_the_end", "possible"),
    [(timedelta(microseconds=-1), True), (timedelta(0), False), (timedelta(seconds=1), False)],
)
def test_the_last_moment_to_cancel_is_before_the_end(acme, staff, machine, after_the_end, possible):
    order = make_order(acme, machine)
    if possible:
        cancel(order, staff, "110.00", now=order.ends_at + after_the_end)
    else:
        with pytest.raises(OrderOver):
            cancel(order, staff, "110.00", now=order.ends_at + after_the_end)
    assert free(machine) == (3 if possible else 2)


@pytest.mark.parametrize(("delivered", "least"), [(0, "330.00"), (1, "220.00"), (3, "0.00")])
def test_a_lot_never_handed_over_is_credited_in_full(acme, staff, machine, delivered, least):
    order = make_order(acme, machine, lots=3)
    for number in range(1, delivered + 1):
        make_delivered(order, number, now=order.starts_at)
    assert least_credit_usd(order, order.allocations.all()) == Decimal(least)
    if delivered < 3:
        with pytest.raises(InvalidCancellation, match="never handed over"):
            cancel(order, staff, str(Decimal(least) - Decimal("0.01")))
        assert free(machine) == 0
    cancel(order, staff, least)
    assert Order.objects.get().credit_usd == Decimal(least)


@pytest.mark.parametrize("credit", ["-0.01", "110.01", "NaN", "Infinity", "1E+30", "50.001"])
def test_a_credit_outside_nought_and_the_total_is_refused(acme, staff, machine, credit):
    order = make_order(acme, machine)
    make_delivered(order, now=order.starts_at)
    with pytest.raises(InvalidCancellation) as refused:
        cancel(order, staff, credit)
    assert refused.value.field == "credit_usd"
    assert Order.objects.get().status == "active"


@pytest.mark.parametrize("reason", ["", "  \n ", "\u3164", "\u200b", "x" * 501, "a\x00b", "\ud800"])
def test_a_reason_is_required(acme, staff, machine, reason):
    order = make_order(acme, machine)
    with pytest.raises(InvalidCancellation) as refused:
        cancel(order, staff, "110.00", reason=reason)
    assert refused.value.field == "reason"


def test_only_staff_cancel(acme, machine):
    order = make_order(acme, machine)
    with pytest.raises(NotPermitted):
        cancel(order, acme.owner, "110.00")


@pytest.mark.parametrize(
    "row",
    [
        {"status": "cancelled"},
        {"status": "cancelled", "cancel_reason": "x", "credit_usd": "1.00"},
        {"cancel_reason": "x"},
        {"credit_usd": "1.00"},
    ],
)
def test_the_database_refuses_half_a_cancellation(acme, machine, row):
    order = make_order(acme, machine)
    with pytest.raises(IntegrityError), transaction.atomic():
        Order.objects.filter(pk=order.pk).update(**row)


def test_the_database_refuses_a_credit_above_the_total(acme, machine):
    order = make_order(acme, machine)
    row = {"status": "cancelled", "cancel_reason": "x", "ended_at": order.starts_at + HOUR}
    with pytest.raises(IntegrityError), transaction.atomic():
        Order.objects.filter(pk=order.pk).update(credit_usd="110.01", **row)


def test_page_receipt_api_and_mail_say_the_same(client, acme, staff, machine, now):
    order = make_order(acme, machine, placement={"now": now - HOUR})
    cancel(order, staff, "110.00", now=now)
    client.force_login(acme.owner)
    html = client.get(f"/o/acme/orders/{order.pk}/").content.decode()
    for words in ("Cancelled", "The provider withdrew it.", "$110.00</strong> USD<small>Cancelled by the operator"):
        assert words in html
    assert "Stop lot" not in html
    receipt = client.get(f"/o/acme/orders/{order.pk}/receipt.json").json()
    key = make_api_key(acme)
    api = client.get(f"/api/v1/orders/{order.pk}", headers={"Authorization": f"Bearer {key.text}"}).json()
    assert receipt["cancellation"] == api["cancellation"]
    assert receipt["status"] == api["status"] == "cancelled"
    assert receipt["cancellation"]["credit_usd"] == "110.00"
    send_notices(lambda: now)
    text = next(message.body for message in mail.outbox if "is cancelled" in message.subject)
    assert "Reason: The provider withdrew it." in text
    assert "Credit: $110.00 of $110.00" in text
    assert Notice.objects.filter(kind="cancelled").count() == 1


def test_an_order_that_was_not_cancelled_says_so(acme, machine, now):
    order = make_order(acme, machine, placement={"now": now})
    assert order_document(order, order.allocations.all(), now=now)["cancellation"] is None


def test_staff_cancel_on_a_page_of_their_own(client, acme, staff, machine):
    order = make_order(acme, machine)
    client.force_login(staff)
    change = client.get(reverse("admin:rentals_order_change", args=[order.pk])).content.decode()
    page = reverse("admin:rentals_order_cancel", args=[order.pk])
    assert f'href="{page}"' in change
    assert "at least $110.00" in client.get(page).content.decode()
    assert "Lots that were never handed over" in client.post(page, {"reason": "x", "credit_usd": "1"}).content.decode()
    assert client.post(page, {"reason": "", "credit_usd": "110"}).status_code == 200
    assert Order.objects.get().status == "active"
    client.post(page, {"reason": "Withdrawn", "credit_usd": "110.00"})
    assert Order.objects.get().status == "cancelled"
    assert page not in client.get(reverse("admin:rentals_order_change", args=[order.pk])).content.decode()
    assert "that is final" in client.post(page, {"reason": "y", "credit_usd": "110.00"}).content.decode()


def test_staff_without_the_right_do_not_cancel(client, acme, machine):
    order = make_order(acme, machine)
    client.force_login(make_user("looking@example.com", is_staff=True))
    assert client.get(reverse("admin:rentals_order_cancel", args=[order.pk])).status_code == 403
