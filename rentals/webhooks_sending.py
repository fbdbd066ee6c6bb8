"""Sending what waits for webhook endpoints: each by itself, none in the way of another, until it answers with 2xx.

A sweep takes the endpoints in hand that have something due, one request to each at a time, all of them side by side,
and looks for more while it waits: an endpoint that is slow, or dead, delays itself alone. The claim is one conditional
update, committed before the request; what came of it is written after. A worker that dies in between leaves the
delivery due, and it is sent again under the same id once the claim has run out: at least once.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus

from django.db import transaction
from django.db.models import F, Min

from catalog import outgoing
from catalog.sealing import SecretUnreadable
from rentals.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
from rentals.models.webhooks import MAX_ANSWER
from rentals.tenants import Across, across_tenants, tenant
from rentals.webhooks_failing import turn_off_if_dead
from rentals.webhooks_signing import signing_headers

logger = logging.getLogger(__name__)

# Waits after the first attempt, the second, and so on; after the last one it is given up. About a day and a half.
WAITS = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=8),
    timedelta(hours=24),
)
SECONDS = 10.0
# Longer than any request lasts: nobody else sends to the endpoint meanwhile.
CLAIM = timedelta(minutes=2)
# An endpoint that gave no answer at all is left alone for so long, or each of its events would cost a time limit.
REST = timedelta(minutes=1)
SIDE_BY_SIDE = 32
# The others are left for endpoints that answered last: many dead ones at once use up half of a sweep.
FAILING_SIDE_BY_SIDE = 16
LOOKS_AGAIN_AFTER_SECONDS = 1.0
# While requests are on their way a sweep takes what becomes due, after a while from those alone that answered last: it
# comes to an end, and mostly with no slow one left to wait for.
TAKES_WORK_FOR_SECONDS = 10.0
TAKES_SOUND_FOR_SECONDS = 30.0
KEPT_FOR = timedelta(days=30)
_PRUNED_AT_ONCE = 500
_MOST_BYTES = 16 * 1024
# Whose Retry-After is about how much comes, not about this one message.
_ASKS_TO_WAIT = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)

Clock = Callable[[], datetime]
State = WebhookDelivery.State


@dataclass(frozen=True)
class Shot:
    """A claimed delivery on its way. `until` is the claim's end, which tells this claim from any other."""

    endpoint: WebhookEndpoint
    delivery: WebhookDelivery
    until: datetime
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Outcome:
    """What came of a request. `problem` is empty when it was delivered; `status` None when there was no answer.

    `rest` is for how long the receiver asked to be left alone, `gone` whether it asked so for ever.
    """

    milliseconds: int
    status: int | None = None
    problem: str = ""
    answer: str = ""
    rest: timedelta = timedelta(0)

    @property
    def gone(self) -> bool:
        return self.status == HTTPStatus.GONE


def send_webhooks(clock: Clock) -> int:
    """Send what is due, and what becomes due while requests are on their way; how many were delivered."""
    begun = time.monotonic()
    delivered = 0
    with ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="webhook") as pool:
        flying: dict[Future[Outcome], Shot] = {}

        def take(organization_id: int, endpoint_id: int) -> None:
            with _alone(endpoint_id):
                if shot := claim(organization_id, endpoint_id, clock()):
                    flying[pool.submit(request, shot)] = shot

        looked_at = begun
        for each in _endpoints_due(clock(), SIDE_BY_SIDE, FAILING_SIDE_BY_SIDE):
            take(*each)
        while flying:
            done, _ = wait(flying, timeout=LOOKS_AGAIN_AFTER_SECONDS, return_when=FIRST_COMPLETED)
            takes_all = time.monotonic() - begun < TAKES_WORK_FOR_SECONDS
            takes_sound = time.monotonic() - begun < TAKES_SOUND_FOR_SECONDS
            for future in done:
                shot, outcome = flying.pop(future), future.result()
                with _alone(shot.endpoint.pk):
                    note(shot, outcome, clock())
                    delivered += not outcome.problem
                if takes_all if outcome.problem else takes_sound:
                    take(shot.endpoint.organization_id, shot.endpoint.pk)
            if takes_sound and (not flying or time.monotonic() - looked_at >= LOOKS_AGAIN_AFTER_SECONDS):
                looked_at = time.monotonic()
                failing = sum(shot.endpoint.failing_since is not None for shot in flying.values())
                most_failing = FAILING_SIDE_BY_SIDE - failing if takes_all else 0
                for each in _endpoints_due(clock(), SIDE_BY_SIDE - len(flying), most_failing):
                    take(*each)
    return delivered


@contextmanager
def _alone(endpoint_id: int) -> Iterator[None]:
    """The trouble of one endpoint stays its own: what it has waiting is sent when its claim has run out."""
    try:
        yield
    # The database's trouble too, unlike in other sweeps: the answers that are still on their way must be noted.
    except Exception:
        logger.exception("The webhook endpoint %s could not be served now.", endpoint_id)


def claim(organization_id: int, endpoint_id: int, now: datetime) -> Shot | None:
    """The endpoint's oldest due delivery, taken in hand for this process alone; None when another was first."""
    until = now + CLAIM
    with tenant(organization_id), transaction.atomic():
        free = WebhookEndpoint.objects.filter(pk=endpoint_id, enabled=True, next_send_at__lte=now)
        # A row that somebody holds is passed over: waiting for it would hold up all others of the sweep.
        if free.select_for_update(skip_locked=True).first() is None or not free.update(next_send_at=until):
            return None
        due = WebhookDelivery.objects.filter(endpoint=endpoint_id, state=State.PENDING, next_attempt_at__lte=now)
        delivery = due.select_related("event", "endpoint").order_by("next_attempt_at", "id").first()
        if delivery is None:
            WebhookEndpoint.objects.filter(pk=endpoint_id, next_send_at=until).update(next_send_at=now)
            return None
        endpoint, body = delivery.endpoint, delivery.event.body.encode()
        try:
            headers = signing_headers(endpoint, str(delivery.event_id), body, now=now)
        except SecretUnreadable:
            headers = {}
    return Shot(endpoint, delivery, until, headers, body)


def request(shot: Shot) -> Outcome:
    """Make the request. Runs beside others, so it asks the database nothing."""
    if not shot.headers:
        return Outcome(0, problem="The secret cannot be read any more. Make a new one, and tell your receiver.")
    begun = time.monotonic()

    def took() -> int:
        return round((time.monotonic() - begun) * 1000)

    try:
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Berth-Webhooks/1", **shot.headers}
        fetched = outgoing.fetch(
            shot.endpoint.url,
            method="POST",
            headers=headers,
            content=shot.body,
            seconds=SECONDS,
            most_bytes=_MOST_BYTES,
            cut=True,
        )
    except outgoing.OutgoingError as error:
        return Outcome(took(), problem=error.detail[:300])
    except Exception:
        logger.exception("A request to the webhook endpoint %s could not be made.", shot.endpoint.pk)
        return Outcome(took(), problem="The request could not be made.")
    asked = (fetched.retry_after or 0) if fetched.status in _ASKS_TO_WAIT else 0
    rest = min(timedelta(seconds=asked), WAITS[-1])
    return Outcome(took(), fetched.status, _problem(fetched.status), _beginning(fetched.content), rest)


def note(shot: Shot, outcome: Outcome, now: datetime) -> None:
    """Write down what came of it, plan the next attempt, and let go of the endpoint."""
    with tenant(shot.endpoint.organization_id), transaction.atomic():
        endpoint = WebhookEndpoint.objects.select_for_update(of=("self",)).filter(pk=shot.endpoint.pk).first()
        if endpoint is None or not WebhookDelivery.objects.filter(pk=shot.delivery.pk).exists():
            # Removed meanwhile, and its log with it.
            return
        WebhookAttempt.objects.create(
            organization_id=endpoint.organization_id,
            delivery=shot.delivery,
            at=now,
            milliseconds=outcome.milliseconds,
            status=outcome.status,
            problem=outcome.problem,
            answer=outcome.answer,
        )
        if outcome.problem:
            _plan(shot.delivery, outcome, now)
        else:
            delivered = WebhookDelivery.objects.filter(pk=shot.delivery.pk)
            delivered.update(state=State.DELIVERED, tries=F("tries") + 1, finished_at=now)
        _let_go(endpoint, shot, outcome, now)


def prune(now: datetime) -> int:
    """Forget events that are older than `KEPT_FOR`, with their deliveries; how many."""
    pruned = 0
    old = WebhookEvent.objects.filter(created_at__lt=now - KEPT_FOR).order_by("created_at")
    while True:
        with across_tenants(Across.WEBHOOKS), transaction.atomic():
            chunk = list(old.values_list("pk", flat=True)[:_PRUNED_AT_ONCE])
            WebhookEvent.objects.filter(pk__in=chunk).delete()
        pruned += len(chunk)
        if len(chunk) < _PRUNED_AT_ONCE:
            return pruned


def _endpoints_due(now: datetime, most: int, most_failing: int) -> list[tuple[int, int]]:
    """(organization, endpoint), those that answered last first, so that dead ones never use up a sweep."""
    if most <= 0:
        return []
    due = WebhookDelivery.objects.filter(
        state=State.PENDING,
        next_attempt_at__lte=now,
        endpoint__enabled=True,
        endpoint__next_send_at__lte=now,
    )
    with across_tenants(Across.WEBHOOKS):
        found = list(
            due.order_by()
            .values_list("organization", "endpoint")
            .annotate(failing=F("endpoint__failing_since"), first=Min("next_attempt_at"))
            .order_by(F("failing").asc(nulls_first=True), "first")[:most]
        )
    sound = [each for each in found if each[2] is None]
    failing = [each for each in found if each[2] is not None][: max(most_failing, 0)]
    return [(organization, endpoint) for organization, endpoint, *_ in sound + failing]


def _plan(delivery: WebhookDelivery, outcome: Outcome, now: datetime) -> None:
    """The next attempt, or the end. A replay that was asked for meanwhile stays as it is."""
    waiting = WebhookDelivery.objects.filter(pk=delivery.pk, state=State.PENDING, tries=delivery.tries)
    waiting = waiting.filter(next_attempt_at=delivery.next_attempt_at)
    if delivery.tries < len(WAITS):
        pause = max(WAITS[delivery.tries], outcome.rest)
        waiting.update(tries=delivery.tries + 1, next_attempt_at=now + pause)
    else:
        waiting.update(tries=delivery.tries + 1, state=State.FAILED, finished_at=now)


def _let_go(endpoint: WebhookEndpoint, shot: Shot, outcome: Outcome, now: datetime) -> None:
    if endpoint.next_send_at == shot.until:
        endpoint.next_send_at = now + (outcome.rest if outcome.status is not None else REST)
    if not outcome.problem:
        endpoint.failing_since = None
    elif endpoint.failing_since is None:
        endpoint.failing_since = now
    endpoint.save(update_fields=["next_send_at", "failing_since"])
    if outcome.problem:
        # Who is gone is the address that was asked: another may have been entered meanwhile.
        turn_off_if_dead(endpoint, now, gone=outcome.gone and endpoint.url == shot.endpoint.url)


def _problem(status: int) -> str:
    if 200 <= status < 300:
        return ""
    if 300 <= status < 400:
        return f"It redirects ({status}). Redirects are not followed: give the address that answers itself."
    if status == HTTPStatus.GONE:
        return "It answers 410, which says that it is gone for good."
    return f"It answers {status}; only 2xx counts as delivered."


def _beginning(content: bytes) -> str:
    """How the answer begins, in letters that can be kept and shown; a secret that it repeats is left out."""
    text = content[: 4 * MAX_ANSWER].decode(errors="replace")
    text = re.sub(r"whsec_[A-Za-z0-9+/=]*", "whsec_…", text)
    return "".join(letter if letter.isprintable() else " " for letter in text)[:MAX_ANSWER]
