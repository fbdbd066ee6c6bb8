"""Mails about orders: written down in the transaction of the act, sent later by the periodic task, each at most once.

The web request never talks to a broker or a mail server: with both of them away an order is placed as fast as ever, and
its mail goes out when they are back.
"""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models import Exists, OuterRef
from django.template.loader import render_to_string

from catalog.links import page_url
from rentals.models import Membership, Notice, Order
from rentals.models.orders import Status
from rentals.models.organizations import Role
from rentals.one_by_one import alone
from rentals.tenants import Across, across_tenants, tenant

logger = logging.getLogger(__name__)

ENDS_SOON = timedelta(hours=24)
# Doubling from a minute to an hour: about a day of a mail server's absence is bridged.
MAX_ATTEMPTS = 30
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
# One sweep's share, so that it comes to an end while many more are written.
AT_ONCE = 200
# The server may have taken the mail before it fell silent: nobody can tell, so it is not sent again.
_UNCERTAIN = (smtplib.SMTPServerDisconnected, TimeoutError)

Clock = Callable[[], datetime]


def announce(order: Order, kind: Notice.Kind, *, now: datetime, lot: int = 0, correction: int = 0) -> None:
    """Write down the mails of one event, to whoever ordered and to the owners; what is written already stays."""
    Notice.objects.bulk_create(
        [
            Notice(
                organization_id=order.organization_id,
                order=order,
                kind=kind,
                lot=lot,
                correction=correction,
                recipient=membership.user.email,
                user=membership.user,
                created_at=now,
                next_attempt_at=now,
            )
            for membership in _told(order)
        ],
        ignore_conflicts=True,
    )


def announce_ends(now: datetime) -> int:
    """Write down the mails of orders that end within a day and are not announced yet; for how many orders."""
    written = Notice.objects.filter(order=OuterRef("pk"), kind=Notice.Kind.ENDS_SOON)
    soon = Order.objects.active(now).filter(ends_at__lte=now + ENDS_SOON).exclude(Exists(written))
    with across_tenants(Across.MAILS):
        found = list(soon.order_by("ends_at", "id")[:AT_ONCE])
    for order in found:
        # First in every sweep, one that cannot be announced would keep all others from it.
        with alone("The end of order %s cannot be announced.", order.pk), tenant(order.organization_id):
            announce(order, Notice.Kind.ENDS_SOON, now=now)
    return len(found)


def send_notices(clock: Clock) -> int:
    """Send what is due; how many went out. A mail server that does not answer ends the sweep, and is asked again."""
    due = Notice.objects.filter(state=Notice.State.PENDING, next_attempt_at__lte=clock())
    due = due.order_by("next_attempt_at", "id")
    with across_tenants(Across.MAILS):
        waiting = list(due.values_list("organization", "pk")[:AT_ONCE])
    if not waiting:
        return 0
    connection = get_connection()
    sent = 0
    try:
        for organization_id, notice_id in waiting:
            sent += _send(organization_id, notice_id, connection, clock)
    except _Away:
        logger.warning("The mail server does not answer; mails wait.", exc_info=True)
    finally:
        _forget(connection)
    return sent


class _Away(Exception):
    """The mail server cannot be reached: no other mail of this sweep would fare better."""


def _send(organization_id: int, notice_id: int, connection: BaseEmailBackend, clock: Clock) -> bool:
    # Claimed by one conditional update, and committed before the server is asked: who comes second sends nothing.
    with tenant(organization_id):
        pending = Notice.objects.filter(pk=notice_id, state=Notice.State.PENDING)
        if not pending.update(state=Notice.State.SENDING):
            return False
        notice = Notice.objects.select_related("order", "organization", "user").get(pk=notice_id)
        if not _still_true(notice, clock()):
            _write(notice, state=Notice.State.DROPPED)
            return False
    try:
        message = _message(notice)
    except Exception as error:
        logger.exception("Notice %s cannot be put into words.", notice.pk)
        _put_off(notice, error, clock())
        return False
    message.connection = connection
    try:
        connection.open()
    except Exception as error:
        _put_off(notice, error, clock())
        raise _Away from error
    try:
        message.send()
    except _UNCERTAIN as error:
        _forget(connection)
        logger.exception("Notice %s may or may not have been sent; it is not sent again.", notice.pk)
        _write(notice, error=_words(error))
        raise _Away from error
    except Exception as error:
        # What was refused may have cost the connection: the next mail gets a new one.
        _forget(connection)
        logger.warning("Notice %s could not be sent.", notice.pk, exc_info=True)
        _put_off(notice, error, clock())
        return False
    _write(notice, state=Notice.State.SENT, sent_at=clock(), error="")
    return True


def _forget(connection: BaseEmailBackend) -> None:
    with suppress(Exception):
        connection.close()


def _told(order: Order) -> Iterable[Membership]:
    """Who ordered, if still a member, and the owners; nobody twice, whatever the spelling of an address."""
    members = Membership.objects.for_organization(order.organization).select_related("user").order_by("id")
    chosen = {
        membership.user.email.lower(): membership
        for membership in members.exclude(user__email="").filter(user__is_active=True)
        if membership.role == Role.OWNER or membership.user_id == order.placed_by_id
    }
    return chosen.values()


def _still_true(notice: Notice, now: datetime) -> bool:
    """Whether the mail may go out now: to a member, and nothing about what runs when it is over."""
    if notice.user_id is None or not (
        Membership.objects.for_organization(notice.organization).filter(user_id=notice.user_id).exists()
    ):
        return False
    running = notice.order.status_at(now) == Status.ACTIVE
    return running or notice.kind not in (Notice.Kind.ENDS_SOON, Notice.Kind.DELIVERED)


def _message(notice: Notice) -> EmailMessage:
    order, organization = notice.order, notice.organization
    link = page_url("order", organization.slug, order.pk)
    handed_over = "has new connection details" if notice.correction else "is handed over"
    subject, words = {
        Notice.Kind.PLACED: (" is placed", "order_placed"),
        Notice.Kind.ENDS_SOON: (" ends in less than 24 hours", "order_ends_soon"),
        Notice.Kind.ENDED: (" has ended", "order_ended"),
        Notice.Kind.CANCELLED: (" is cancelled", "order_cancelled"),
        Notice.Kind.DELIVERED: (f": lot {notice.lot} {handed_over}", "lot_delivered"),
    }[Notice.Kind(notice.kind)]
    context = {
        "notice": notice,
        "order": order,
        "organization": organization,
        "machine": order.machine_facts,
        "link": link,
    }
    return EmailMessage(
        f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}Order {order.reference}{subject}",
        render_to_string(f"rentals/mail/{words}.txt", context),
        settings.DEFAULT_FROM_EMAIL,
        [notice.recipient],
        headers={"Auto-Submitted": "auto-generated"},
    )


def _put_off(notice: Notice, error: Exception, now: datetime) -> None:
    """Try again later, or give up after so many attempts."""
    attempts = notice.attempts + 1
    wait = min(FIRST_WAIT * 2 ** min(attempts - 1, 10), LONGEST_WAIT)
    state = Notice.State.PENDING if attempts < MAX_ATTEMPTS else Notice.State.FAILED
    _write(notice, state=state, attempts=attempts, next_attempt_at=now + wait, error=_words(error))


def _write(notice: Notice, **fields: object) -> None:
    with tenant(notice.organization_id):
        Notice.objects.filter(pk=notice.pk).update(**fields)


def _words(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    return "".join(letter if letter.isprintable() else " " for letter in text)[:200]
