"""Placing an order: one function and one transaction, for the page, the API and staff alike.

The key's record comes first, so a repeat stops before it meets any refusal; the stock comes last and in one statement,
so its row is locked for no longer than a commit. A refusal rolls everything back, the record included: the key is free.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, OperationalError
from django.db.models import F, Q

from catalog import countries
from catalog.models import Machine
from catalog.stock import lots_beyond_the_list
from rentals import policies
from rentals.api_keys import check_still_live
from rentals.audit import name_of, person, record
from rentals.baskets import Basket
from rentals.documents import line_document, machine_facts, order_document, to_bytes
from rentals.errors import (
    Busy,
    Difference,
    IdempotencyMismatch,
    InProgress,
    InvalidKey,
    MisfitNotAcknowledged,
    NotPermitted,
    OutsideCountries,
    PriceChanged,
    SoldOut,
)
from rentals.measures import counted
from rentals.models import Allocation, ApiKey, IdempotencyRecord, Membership, Notice, Order, Organization
from rentals.models.orders import Via
from rentals.models.organizations import Role
from rentals.models.webhooks import EventKind
from rentals.notices import announce
from rentals.quotes import Quote, permitted_quote, quote
from rentals.tenants import tenant
from rentals.webhooks_events import tell_of_order

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from rentals.audit import Actor
    from rentals.models import OrganizationPolicy

Sizer = Callable[[Machine], dict[str, Any]]

CREATED = 201
_KEY = re.compile(r"\A[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?\Z")
# PostgreSQL: lock not available (lock_timeout), deadlock, serialization failure. SQLite has only its words.
_LOCK_STATES = frozenset({"55P03", "40P01", "40001"})


def is_key(text: object) -> bool:
    """Whether the text can be an idempotency key: 1 to 255 printable ASCII characters."""
    return isinstance(text, str) and _KEY.match(text) is not None


@dataclass(frozen=True)
class Placement:
    """The answer to a request for an order: the bytes are the first answer's, however often it is asked again."""

    order: Order
    status: int
    body: bytes
    replayed: bool


@dataclass(frozen=True)
class _Request:
    """Who asks for what, under which key."""

    organization: Organization
    key: str
    method: str
    path: str
    body: dict[str, Any]
    actor: Actor
    via: str
    sent: str = ""
    asked_by: User | None = None


@dataclass(frozen=True)
class _Wish:
    """What is asked: the basket, the total that was seen, the countries that were chosen."""

    basket: Basket
    expected_total_usd: Decimal
    inside: Collection[str] | None


class _KeyTaken(Exception):
    """The key has a record already: leave the transaction and look at it."""


@counted
def place_order(
    *,
    organization: Organization,
    basket: Basket,
    idempotency_key: str,
    expected_total_usd: Decimal,
    actor: Actor,
    via: str,
    path: str,
    now: datetime,
    method: str = "POST",
    size: Sizer | None = None,
    inside: Collection[str] | None = None,
    sent: str = "",
    asked_by: User | None = None,
) -> Placement:
    """The order for the basket, placed once however often the same request comes.

    `size` says how the workload fits the machine; its answer is kept. `expected_total_usd` is what the person saw.
    `inside` are the countries (and EU) that the person wants the machine in; `sent` is `digest_of` the request.
    `asked_by` is the member for whom staff order: the policy asks for that member's role.

    Raises: InvalidKey, IdempotencyMismatch, InProgress, Busy, NotPermitted, KeyNotAccepted, PriceChanged,
    AcknowledgementRequired, MisfitNotAcknowledged, OutsideCountries, PolicyViolation, SoldOut, OffLine and what
    `rentals.quotes.permitted_quote` raises. After any of them nothing is stored.
    """
    if not is_key(idempotency_key):
        raise InvalidKey
    body = basket.canonical(expected_total_usd)
    request = _Request(organization, idempotency_key, method, path, body, actor, via, sent, asked_by)
    try:
        with tenant(organization, durable=True):
            return _place(request, _Wish(basket, expected_total_usd, inside), size, now)
    except _KeyTaken:
        with tenant(organization):
            return _replay(request, now)
    except OperationalError as error:
        if is_lock_timeout(error):
            raise Busy from error
        raise


def placed_before(
    organization: Organization, *, idempotency_key: object, sent: str, actor: Actor, via: str, path: str, now: datetime
) -> Placement | None:
    """The stored answer to a request that can no longer be read, when it is byte for byte one that was answered.

    A model that an order was sized with may be gone since; a repeat gets the first answer all the same. For this, ask
    inside a block of the organization.

    Raises: NotPermitted, KeyNotAccepted.
    """
    if not is_key(idempotency_key) or not sent:
        return None
    request = _Request(organization, str(idempotency_key), "POST", path, {}, actor, via, sent)
    stored = IdempotencyRecord.objects.for_organization(organization).filter(
        key=request.key, method=request.method, path=path, sent=sent
    )
    return _replay(request, now) if stored.exists() else None


def digest_of(sent: object) -> str:
    """What tells one request from another, whatever it means."""
    text = json.dumps(sent, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _place(request: _Request, wish: _Wish, size: Sizer | None, now: datetime) -> Placement:
    basket = wish.basket
    answer = _claim_key(request, now)
    # Held until the commit: of two orders that only together break the month's limit, the second sees the first.
    policy = policies.held_policy(request.organization)
    # After the wait for the policy: the role is the one of now.
    role = _permitted_role(request, now)
    offer = _checked_quote(wish, request.organization, policy, role, now)
    order = _build_order(request, offer, _checked_sizing(offer, size), now)
    allocations = [
        Allocation(organization=request.organization, order=order, number=number)
        for number in range(1, basket.lots + 1)
    ]
    order.save(force_insert=True)
    Allocation.objects.bulk_create(allocations, batch_size=500)
    asked = {} if request.asked_by is None else {"asked_by": name_of(request.asked_by)}
    record(
        request.organization, "order.placed", at=now, actor=request.actor, via=request.via, object_id=order.pk,
        machine=offer.machine.pk, lots=order.lots, term_days=order.term_days, total_usd=str(order.total_usd), **asked,
    )  # fmt: skip
    announce(order, Notice.Kind.PLACED, now=now)
    tell_of_order(order, EventKind.ORDER_PLACED, now=now, allocations=allocations)
    answer.order = order
    answer.response_status = CREATED
    answer.response_body = to_bytes(order_document(order, allocations, now=now))
    answer.save(update_fields=["order", "response_status", "response_body"])
    _take_stock(offer, now)
    return Placement(order, CREATED, answer.response_body, replayed=False)


def _claim_key(request: _Request, now: datetime) -> IdempotencyRecord:
    """Insert the key's record. Where another transaction is inserting the same, this waits for its end."""
    try:
        return IdempotencyRecord.objects.create(
            organization=request.organization,
            key=request.key,
            method=request.method,
            path=request.path,
            body=request.body,
            sent=request.sent,
            created_at=now,
        )
    except IntegrityError as error:
        raise _KeyTaken from error
    except OperationalError as error:
        if is_lock_timeout(error):
            raise InProgress from error
        raise


def _permitted_role(request: _Request, now: datetime) -> str:
    """The role in which this actor may order here now; asked again for a repeat, so a removed member is told nothing.

    Staff order in the role of who asked them.
    """
    if isinstance(request.actor, ApiKey):
        if request.actor.organization_id != request.organization.pk or not request.actor.may("order"):
            raise NotPermitted("This API key may not order here.")
        check_still_live(request.actor, now=now)
        return policies.ROLE_OF_KEYS
    if request.via == Via.STAFF:
        if request.actor is None or not request.actor.is_staff:
            raise NotPermitted("Only staff place orders on behalf of an organization.")
        return role_of_who_asked(request.organization, request.asked_by)
    membership = Membership.objects.for_organization(request.organization).filter(user=request.actor).first()
    return policies.check_member(membership).role


def role_of_who_asked(organization: Organization, asked_by: User | None) -> str:
    """The role in which staff order: of the member who asked, or, where they name nobody, the least that orders.

    Raises: NotPermitted.
    """
    if asked_by is None:
        return Role.MEMBER
    membership = Membership.objects.for_organization(organization).filter(user=asked_by).first()
    if membership is None or not membership.may_order:
        raise NotPermitted(f"{name_of(asked_by)} may not order for {organization.name}. Name a member who may.")
    return membership.role


def _checked_quote(
    wish: _Wish, organization: Organization, policy: OrganizationPolicy | None, role: str, now: datetime
) -> Quote:
    """First what a quote says too, then what an order alone is asked.

    Stock is said early, so that a hopeless order never queues for the row; what counts is said in `_take_stock`.
    """
    check_inside(wish.basket.machine_id, wish.inside)
    offer = permitted_quote(wish.basket, organization, policy, role, now=now)
    offer.check_acknowledged()
    _check_total(offer, wish.expected_total_usd)
    return offer


def _check_total(offer: Quote, expected_usd: Decimal) -> None:
    if offer.total_usd != expected_usd:
        raise PriceChanged(expected_usd, offer.total_usd)


def check_inside(machine_id: int, inside: Collection[str] | None) -> None:
    """Before anything is said about the machine: one outside the chosen countries is not described.

    Raises: OutsideCountries.
    """
    if not inside:
        return
    elsewhere = ~Q(country__in=countries.expand(inside)) | Q(country__isnull=True)
    if Machine.objects.filter(elsewhere, pk=machine_id).exists():
        raise OutsideCountries


def _checked_sizing(offer: Quote, size: Sizer | None) -> dict[str, Any] | None:
    if size is None:
        return None
    sizing = size(offer.machine)
    if not sizing["fits"] and not offer.basket.misfit_acknowledged:
        raise MisfitNotAcknowledged(offer.machine)
    return sizing


def _build_order(request: _Request, offer: Quote, sizing: dict[str, Any] | None, now: datetime) -> Order:
    basket = offer.basket
    return Order(
        id=uuid.uuid4(),
        organization=request.organization,
        machine=offer.machine,
        machine_facts=machine_facts(offer.machine),
        term_days=basket.term_days,
        lots=basket.lots,
        gpu_count=offer.machine.gpu_count,
        unit_usd=offer.unit_usd,
        lines=[line_document(line) for line in offer.lines],
        total_usd=offer.total_usd,
        environment=basket.environment,
        environment_notes=basket.environment_notes,
        community_acknowledged=basket.community_acknowledged,
        # Said of a workload that fits, it says nothing.
        misfit_acknowledged=basket.misfit_acknowledged and sizing is not None and not sizing["fits"],
        workload=basket.workload,
        sizing=sizing,
        starts_at=now,
        # A term is a duration in UTC: no calendar, no clock change has a say.
        ends_at=now + timedelta(days=basket.term_days),
        idempotency_key=request.key,
        placed_by=person(request.actor),
        placed_by_name=name_of(request.actor),
        placed_via=request.via,
    )


def _take_stock(offer: Quote, now: datetime) -> None:
    """Take the lots, if they are still there at the price that was checked; else say which of the two is gone."""
    wanted, machine = offer.basket.lots, offer.machine
    price = {f"price_{offer.basket.term_days}_days_usd": offer.unit_usd}
    enough = {"free_lots__gte": wanted + machine.withheld_lots}
    taken = Machine.objects.filter(pk=machine.pk, listed=True, online=True, **enough, **price).update(
        free_lots=F("free_lots") - wanted, updated_at=now
    )
    if not taken:
        # Not the policy: by now the order itself counts in its month.
        again = quote(offer.basket, now=now)
        again.check_current()
        again.check_stock()
        _check_total(again, offer.total_usd)
        # Changed and changed back between the two statements: nothing was wrong for long, so trying again is right.
        raise Busy
    # The wait for the row may have been long: a list that was read meanwhile may offer fewer.
    if machine.provider.has_feed and (beyond := lots_beyond_the_list(machine.pk)):
        raise SoldOut(machine, wanted, max(wanted - beyond, 0))


def _replay(request: _Request, now: datetime) -> Placement:
    """The stored answer of the key, when the request is the one it answered."""
    _permitted_role(request, now)
    stored = (
        IdempotencyRecord.objects.for_organization(request.organization)
        .select_related("order__organization")
        .get(key=request.key)
    )
    differences = tuple(_differences(stored, request))
    # Sent again as it was, it is the same request, even if what it names means something else by now.
    same = request.sent != "" and (stored.sent, stored.method, stored.path) == (
        request.sent, request.method, request.path
    )  # fmt: skip
    if differences and not same:
        raise IdempotencyMismatch(differences, stored.order_id)
    # Written in the transaction that placed the order: a record that can be read is complete.
    assert stored.order is not None
    assert stored.response_status is not None
    assert stored.response_body is not None
    return Placement(stored.order, stored.response_status, bytes(stored.response_body), replayed=True)


def _differences(stored: IdempotencyRecord, request: _Request) -> list[Difference]:
    pairs: list[tuple[str, Any, Any]] = [("method", stored.method, request.method), ("path", stored.path, request.path)]
    first, now = _flat(stored.body), _flat(request.body)
    pairs += [(field, first.get(field), now.get(field)) for field in dict.fromkeys([*first, *now])]
    return [Difference(*pair) for pair in pairs if pair[1] != pair[2]]


def _flat(body: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields by their dotted names, so that a difference points at the very field."""
    flat: dict[str, Any] = {}
    for name, value in body.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def is_lock_timeout(error: OperationalError) -> bool:
    """Whether the database gave up waiting for a row: nothing was done, and a repeat may succeed."""
    state = getattr(error.__cause__, "sqlstate", None)
    return state in _LOCK_STATES or "is locked" in str(error)
