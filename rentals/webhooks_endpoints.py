"""An organization's webhook endpoints: made, changed, removed, given a new secret; by owners, admins and programs.

A program has a key of the scope `order`, which an owner or admin made for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from catalog import outgoing
from catalog.links import page_url
from catalog.quoting import did_you_mean, shown
from catalog.sealing import WEBHOOKS
from catalog.visible import is_plain_line
from rentals.askers import Asker, check_may, made_by, record_act
from rentals.documents import instant
from rentals.errors import InvalidWebhook, SecretChanged, TooManyWebhooks, WebhookOff, WebhookThere
from rentals.models import Membership, Organization, WebhookDelivery, WebhookEndpoint
from rentals.models.webhooks import MAX_DESCRIPTION, MAX_URL, TEST, EventKind
from rentals.webhooks_events import promise
from rentals.webhooks_signing import OVERLAP, new_secret

MAX_ENDPOINTS = 10
State = WebhookDelivery.State


@dataclass(frozen=True)
class Wish:
    """What an endpoint shall be. Raises: InvalidWebhook naming the field."""

    url: str
    events: tuple[str, ...]
    description: str = ""
    enabled: bool = True

    def __post_init__(self) -> None:
        check_url(self.url)
        if not self.events:
            raise InvalidWebhook("events", "Choose at least one event.")
        if unknown := set(self.events) - set(EventKind.values):
            word = min(unknown)
            meant = did_you_mean(word, EventKind.values)
            raise InvalidWebhook("events", f"There is no event “{shown(word)}”.{meant}")
        if self.description and (len(self.description) > MAX_DESCRIPTION or not is_plain_line(self.description)):
            raise InvalidWebhook(
                "description", f"Describe it on one line, in at most {MAX_DESCRIPTION} printable characters."
            )

    @classmethod
    def of(cls, endpoint: WebhookEndpoint, **changes: Any) -> Wish:
        """The endpoint as it is but for the changes."""
        now = {"url": endpoint.url, "events": endpoint.events, "description": endpoint.description}
        return cls(**{**now, "enabled": endpoint.enabled, **changes})

    @property
    def kinds(self) -> list[str]:
        """The events in their usual order, each once."""
        return [kind for kind in EventKind.values if kind in self.events]


def check_url(url: str) -> None:
    """Whether the address may be told anything; what a name leads to is looked at with every delivery.

    Raises: InvalidWebhook.
    """
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidWebhook("url", f"Give an address of at most {MAX_URL} printable ASCII characters, without spaces.")
    try:
        parsed = outgoing.parse(url)
    except outgoing.Refused as refused:
        raise InvalidWebhook("url", refused.detail) from None
    if parsed.scheme != "https" and parsed.netloc.decode() not in settings.OUTGOING_ALLOWED:
        raise InvalidWebhook("url", "The address must begin with https://, so that nobody reads along.")
    if "#" in url:
        raise InvalidWebhook("url", "Leave out the part after #: it is never sent.")


def create_endpoint(manager: Asker, wish: Wish, *, now: datetime, once: bool = False) -> tuple[WebhookEndpoint, str]:
    """A new endpoint and its secret, which nobody can read again.

    `once`: no second one of the same address, so that a request that is sent again makes nothing unseen.

    Raises: NotPermitted, TooManyWebhooks, WebhookThere.
    """
    secret = new_secret()
    with transaction.atomic():
        organization = _held(manager, now)
        mine = WebhookEndpoint.objects.for_organization(organization)
        if once and (there := mine.filter(url=wish.url).first()):
            raise WebhookThere(there.pk)
        if mine.count() >= MAX_ENDPOINTS:
            raise TooManyWebhooks(MAX_ENDPOINTS)
        endpoint = WebhookEndpoint.objects.create(
            organization=organization,
            url=wish.url,
            description=wish.description,
            events=wish.kinds,
            enabled=wish.enabled,
            secret=WEBHOOKS.seal(secret),
            secret_made_at=now,
            created_at=now,
            next_send_at=now,
            **made_by(manager),
        )
        _record(endpoint, "created", manager, now)
    return endpoint, secret


def change_endpoint(
    manager: Asker, endpoint_id: int, wish: Wish | Callable[[WebhookEndpoint], Wish], *, now: datetime
) -> WebhookEndpoint:
    """The endpoint as wished. Turned off, it is told nothing, and what still waited for it is not sent.

    `wish` may be made of the endpoint as it is, for who changes a part of it.

    Raises: NotPermitted, InvalidWebhook, WebhookEndpoint.DoesNotExist.
    """
    with transaction.atomic():
        endpoint = _held_endpoint(manager, endpoint_id, now)
        wish = wish(endpoint) if callable(wish) else wish
        wished = {"url": wish.url, "description": wish.description, "events": wish.kinds, "enabled": wish.enabled}
        changed = {name: value for name, value in wished.items() if value != getattr(endpoint, name)}
        if not changed:
            return endpoint
        if "url" in changed or changed.get("enabled"):
            changed |= {"failing_since": None, "given_up_at": None, "given_up_why": "", "next_send_at": now}
        for name, value in changed.items():
            setattr(endpoint, name, value)
        endpoint.save(update_fields=changed)
        if not endpoint.enabled:
            drop_waiting(endpoint, now)
        _record(endpoint, "changed", manager, now)
    return endpoint


def remove_endpoint(manager: Asker, endpoint_id: int, *, now: datetime) -> WebhookEndpoint:
    """The endpoint, gone with the log of its deliveries.

    Raises: NotPermitted, WebhookEndpoint.DoesNotExist.
    """
    with transaction.atomic():
        endpoint = _held_endpoint(manager, endpoint_id, now)
        _record(endpoint, "removed", manager, now)
        WebhookEndpoint.objects.filter(pk=endpoint.pk).delete()
    return endpoint


def rotate_secret(manager: Asker, endpoint_id: int, *, made_at: str, now: datetime) -> tuple[WebhookEndpoint, str]:
    """The endpoint and a new secret. The one before signs too for `OVERLAP`; the one before that no more.

    `made_at` is when the secret was made that the person saw, so that a form sent twice does not end a live one.

    Raises: NotPermitted, SecretChanged when there is another secret already, WebhookEndpoint.DoesNotExist.
    """
    secret = new_secret()
    with transaction.atomic():
        endpoint = _held_endpoint(manager, endpoint_id, now)
        if made_at != instant(endpoint.secret_made_at):
            raise SecretChanged
        endpoint.previous_secret, endpoint.previous_until = endpoint.secret, now + OVERLAP
        endpoint.secret, endpoint.secret_made_at = WEBHOOKS.seal(secret), now
        endpoint.save(update_fields=["secret", "secret_made_at", "previous_secret", "previous_until"])
        _record(endpoint, "secret_rotated", manager, now)
    return endpoint, secret


def send_test(manager: Asker, endpoint_id: int, *, now: datetime) -> WebhookDelivery:
    """The delivery of a test event to this endpoint; where one still waits, that one begins anew.

    Raises: NotPermitted, WebhookOff, WebhookEndpoint.DoesNotExist.
    """
    with transaction.atomic():
        endpoint = _held_endpoint(manager, endpoint_id, now)
        _check_enabled(endpoint)
        waiting = _deliveries(endpoint).filter(state=State.PENDING, event__kind=TEST)
        if not waiting.update(next_attempt_at=now, tries=0):
            page = page_url("webhook", endpoint.organization.slug, endpoint.pk)
            data = {"message": "Somebody asked for a test. Nothing happened."}
            promise(endpoint.organization, TEST, data, [endpoint.pk], now=now, html_url=page)
        _answerable(endpoint, now)
        return waiting.latest("created_at")


def replay(manager: Asker, endpoint_id: int, delivery_id: int, *, now: datetime) -> WebhookDelivery:
    """The delivery, due again with the id its event has, and with the whole schedule before it.

    Raises: NotPermitted, WebhookOff, DoesNotExist of either.
    """
    with transaction.atomic():
        endpoint = _held_endpoint(manager, endpoint_id, now)
        delivery = _deliveries(endpoint).get(pk=delivery_id)
        _check_enabled(endpoint)
        delivery.state, delivery.tries = State.PENDING, 0
        delivery.next_attempt_at, delivery.finished_at = now, None
        delivery.save(update_fields=["state", "tries", "next_attempt_at", "finished_at"])
        _answerable(endpoint, now)
    return delivery


def drop_waiting(endpoint: WebhookEndpoint, now: datetime) -> None:
    """What still waits for an endpoint that is turned off is not sent, unless somebody replays it."""
    _deliveries(endpoint).filter(state=State.PENDING).update(state=State.DROPPED, finished_at=now)


def _answerable(endpoint: WebhookEndpoint, now: datetime) -> None:
    """Whoever presses a button believes that the endpoint answers again: its rest after a silence is over."""
    resting = WebhookEndpoint.objects.filter(pk=endpoint.pk, failing_since__isnull=False, next_send_at__gt=now)
    resting.update(next_send_at=now)


def _check_enabled(endpoint: WebhookEndpoint) -> None:
    if not endpoint.enabled:
        raise WebhookOff


def _deliveries(endpoint: WebhookEndpoint) -> QuerySet[WebhookDelivery]:
    return WebhookDelivery.objects.for_organization(endpoint.organization).filter(endpoint=endpoint)


def _held(manager: Asker, now: datetime) -> Organization:
    """The organization, held so that two at once neither pass the limit nor undo each other."""
    organization = Organization.objects.select_for_update().get(pk=manager.organization_id)
    check_may(manager, _manages, "Only owners and admins manage webhooks.", now=now)
    return organization


def _manages(member: Membership | None) -> bool:
    return member is not None and member.may_manage


def _held_endpoint(manager: Asker, endpoint_id: int, now: datetime) -> WebhookEndpoint:
    organization = _held(manager, now)
    mine = WebhookEndpoint.objects.for_organization(organization).select_related("organization")
    return mine.select_for_update(of=("self",)).get(pk=endpoint_id)


def _record(endpoint: WebhookEndpoint, act: str, manager: Asker, now: datetime) -> None:
    record_act(manager, endpoint.organization, f"webhook.{act}", at=now, object_id=endpoint.pk,
               url=endpoint.shown_url, events=endpoint.events, enabled=endpoint.enabled)  # fmt: skip
