"""An organization's webhooks: endpoints, their secrets, and what was delivered. For owners and admins."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from functools import wraps

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from rentals import webhooks_endpoints as acts
from rentals.api.examples import webhook_program, webhooks_program
from rentals.documents import instant
from rentals.errors import InvalidWebhook, NotPermitted
from rentals.makers import Makers
from rentals.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from rentals.models.organizations import MANAGING_ROLES
from rentals.scoping import TenantRequest, nothing_done, organization_page
from rentals.sent_forms import SentBefore, acting_once, told_again
from rentals.webhooks_failing import DEAD_AFTER
from rentals.webhooks_forms import EndpointForm, NewEndpointForm
from rentals.webhooks_signing import OVERLAP

PER_PAGE = 25
SHOWN_ONCE = "Its secret was shown then and is not shown again: if nobody has it, open the endpoint and make a new one."


def managers_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Inside `organization_page`: what another organization has does not exist; the rest is for who manages."""

    @wraps(view)
    def managed(request: TenantRequest, **ids: int) -> HttpResponse:
        found: dict[str, object] = {}
        if "endpoint_id" in ids:
            found["endpoint"] = endpoint = get_object_or_404(
                WebhookEndpoint.objects.for_organization(request.organization).select_related("organization"),
                pk=ids["endpoint_id"],
            )
            if "delivery_id" in ids:
                found["delivery"] = get_object_or_404(
                    WebhookDelivery.objects.for_organization(request.organization).select_related("event"),
                    endpoint=endpoint,
                    pk=ids["delivery_id"],
                )
        if not request.membership.may_manage:
            raise PermissionDenied("Only owners and admins manage webhooks. Ask one of them.")
        try:
            return view(request, **found)
        except NotPermitted as error:
            raise PermissionDenied(error.message) from error

    return managed


def page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    return require_http_methods(["GET", "HEAD", "POST"])(never_cache(organization_page(managers_only(view))))


@page
def webhooks(request: TenantRequest) -> HttpResponse:
    """The list, and the one sight of a new secret: in the answer to the form, never in an address or a session."""
    form = NewEndpointForm(request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return _list(request, form)
    if not form.is_valid():
        return _list(request, form, status=400)
    now = timezone.now()
    try:
        with acting_once(request, now=now) as sending:
            made, secret = acts.create_endpoint(request.membership, form.wish(), now=now)
            sending.made = f"The endpoint {made} was made"
        return _list(request, NewEndpointForm(), made=made, secret=secret)
    except SentBefore as before:
        if before.same:
            return told_again(request, before, "webhooks", SHOWN_ONCE)
        form.add_error(None, before.message)
    except InvalidWebhook as error:
        form.add_error(error.field, error.message)
    return _list(request, form, status=400)


@page
def webhook(request: TenantRequest, endpoint: WebhookEndpoint) -> HttpResponse:
    """One endpoint: what it is told, and the log of its deliveries."""
    form = EndpointForm.of(endpoint, request.POST if request.method == "POST" else None)
    if request.method != "POST":
        return _one(request, endpoint, form)
    if form.is_valid():
        try:
            acts.change_endpoint(request.membership, endpoint.pk, form.wish(), now=timezone.now())
            messages.success(request, "The endpoint is changed.")
            return redirect("webhook", request.organization.slug, endpoint.pk)
        except InvalidWebhook as error:
            form.add_error(error.field, error.message)
    return _one(request, endpoint, form, status=400)


@page
def rotate(request: TenantRequest, endpoint: WebhookEndpoint) -> HttpResponse:
    """A new secret, shown in the answer to the button alone."""
    if request.method != "POST":
        return nothing_done(request, "webhook", endpoint.pk)
    made_at = request.POST.get("made_at", "")
    try:
        endpoint, secret = acts.rotate_secret(request.membership, endpoint.pk, made_at=made_at, now=timezone.now())
    except InvalidWebhook as error:
        messages.error(request, error.message)
        return redirect("webhook", request.organization.slug, endpoint.pk)
    return _one(request, endpoint, EndpointForm.of(endpoint), secret=secret)


@page
def test(request: TenantRequest, endpoint: WebhookEndpoint) -> HttpResponse:
    if request.method != "POST":
        return nothing_done(request, "webhook", endpoint.pk)
    try:
        acts.send_test(request.membership, endpoint.pk, now=timezone.now())
        messages.success(request, "A test event is on its way. Reload this page in a few seconds to see the answer.")
    except InvalidWebhook as error:
        messages.error(request, error.message)
    return redirect("webhook", request.organization.slug, endpoint.pk)


@page
def remove(request: TenantRequest, endpoint: WebhookEndpoint) -> HttpResponse:
    if request.method != "POST":
        return render(request, "rentals/webhook_remove.html", {"endpoint": endpoint})
    acts.remove_endpoint(request.membership, endpoint.pk, now=timezone.now())
    messages.success(request, "The endpoint is removed. It is told nothing any more.")
    return redirect("webhooks", request.organization.slug)


@page
def delivery(request: TenantRequest, endpoint: WebhookEndpoint, delivery: WebhookDelivery) -> HttpResponse:
    """One delivery: what was sent, and every attempt with the beginning of its answer."""
    body = json.dumps(json.loads(delivery.event.body), indent=2, ensure_ascii=False)
    context = {"endpoint": endpoint, "delivery": delivery, "body": body, "attempts": delivery.attempts.all()}
    return render(request, "rentals/webhook_delivery.html", context)


@page
def replay(request: TenantRequest, endpoint: WebhookEndpoint, delivery: WebhookDelivery) -> HttpResponse:
    if request.method == "POST":
        try:
            acts.replay(request.membership, endpoint.pk, delivery.pk, now=timezone.now())
            messages.success(request, "It is sent again, under the same id. Reload in a few seconds to see the answer.")
        except InvalidWebhook as error:
            messages.error(request, error.message)
        return redirect("webhook-delivery", request.organization.slug, endpoint.pk, delivery.pk)
    return nothing_done(request, "webhook-delivery", endpoint.pk, delivery.pk)


def _list(request: TenantRequest, form: NewEndpointForm, *, status: int = 200, **shown: object) -> HttpResponse:
    makers = Makers(request.organization, roles=MANAGING_ROLES)
    endpoints = WebhookEndpoint.objects.for_organization(request.organization)
    rows = [(endpoint, makers.note(endpoint.created_by_id)) for endpoint in endpoints]
    context = {"form": form, "rows": rows, "most": acts.MAX_ENDPOINTS, "now": timezone.now()}
    context |= {"program": webhooks_program(), **shown}
    return render(request, "rentals/webhooks.html", context, status=status)


def _one(
    request: TenantRequest, endpoint: WebhookEndpoint, form: EndpointForm, *, status: int = 200, **shown: object
) -> HttpResponse:
    log = WebhookDelivery.objects.for_organization(request.organization).filter(endpoint=endpoint)
    pages = Paginator(log.select_related("event").prefetch_related("attempts"), PER_PAGE)
    shown_page = pages.get_page(request.GET.get("page"))
    context = {
        "endpoint": endpoint,
        "form": form,
        "page": shown_page,
        "rows": [(row, _latest(row)) for row in shown_page],
        "now": timezone.now(),
        "made_at": instant(endpoint.secret_made_at),
        "overlap_hours": OVERLAP // timedelta(hours=1),
        "dead_after_days": DEAD_AFTER.days,
        "program": webhook_program(endpoint),
        **shown,
    }
    return render(request, "rentals/webhook.html", context, status=status)


def _latest(delivery: WebhookDelivery) -> WebhookAttempt | None:
    attempts = list(delivery.attempts.all())
    return attempts[-1] if attempts else None
