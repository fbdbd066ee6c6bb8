"""The webhook endpoints of an organization, their secrets, and what was delivered to them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from catalog.api_queries import ListQuery, refuse_parameters
from catalog.api_schemas import PAGING, answers
from rentals import webhooks_endpoints as acts
from rentals.api import kept_schemas as schemas
from rentals.api.bodies import read_fields, refuse_body
from rentals.api.views import TenantView, or_404
from rentals.authentication import KeyRequest, MayOrder, MayRead
from rentals.kept_documents import delivery_document, endpoint_document
from rentals.models import WebhookDelivery, WebhookEndpoint
from rentals.models.api_keys import Scope
from sizing.json_input import FLAG, TEXT, TEXTS

_NEW = {"url": TEXT, "events": TEXTS, "description": TEXT}
_STATES = WebhookDelivery.State.values


class WebhooksView(TenantView):
    """The organization's webhook endpoints."""

    key = MayRead
    key_for = {"POST": MayOrder}

    @extend_schema(operation_id="list_webhooks", parameters=PAGING, responses=answers(schemas.WebhookList, 403))
    def get(self, request: KeyRequest) -> Response:
        """Webhook endpoints, the one made first at the head."""
        rows = WebhookEndpoint.objects.for_organization(request.organization).select_related("organization")
        return ListQuery(request).respond(rows, ("created_at", "id"), partial(_document, request), name="webhooks")

    @extend_schema(
        operation_id="make_webhook",
        request=schemas.WebhookRequest,
        responses=answers(schemas.WebhookWithSecret, 403, 409, status=201, body=True),
    )
    def post(self, request: KeyRequest) -> Response:
        """Make an endpoint, turned on. Its secret is in this answer alone.

        An organization makes one of the same address here once: a repeat is 409 `already_exists` with its id. Who lost
        the answer asks for a new secret there.
        """
        refuse_parameters(request)
        body = read_fields(request.data, _NEW, required=("url", "events"))
        wish = acts.Wish(body["url"], tuple(body["events"]), body.get("description") or "")
        made, secret = acts.create_endpoint(request.auth, wish, now=timezone.now(), once=True)
        location = {"Location": reverse("api-webhook", args=[made.pk])}
        return Response({**_document(request, made), "secret": secret}, status=201, headers=location)


class WebhookView(TenantView):
    """One webhook endpoint of the organization."""

    key = MayRead
    key_for = {"PATCH": MayOrder, "DELETE": MayOrder}

    @extend_schema(operation_id="get_webhook", responses=answers(schemas.Webhook, 403, 404))
    def get(self, request: KeyRequest, endpoint_id: int) -> Response:
        refuse_parameters(request)
        return Response(_document(request, _endpoint(request, endpoint_id)))

    @extend_schema(
        operation_id="change_webhook",
        request=schemas.WebhookChange,
        responses=answers(schemas.Webhook, 403, 404, body=True),
    )
    def patch(self, request: KeyRequest, endpoint_id: int) -> Response:
        """Change what is given. Turned off, it is told nothing, and what still waited for it is not sent."""
        refuse_parameters(request)
        _endpoint(request, endpoint_id)
        body = read_fields(request.data, {**_NEW, "enabled": FLAG})
        changes = {name: value for name, value in body.items() if value is not None}
        with or_404():
            changed = acts.change_endpoint(
                request.auth, endpoint_id, lambda endpoint: acts.Wish.of(endpoint, **changes), now=timezone.now()
            )
        return Response(_document(request, changed))

    @extend_schema(
        operation_id="remove_webhook", request=None, responses=answers(None, 403, 404, status=204, body=True)
    )
    def delete(self, request: KeyRequest, endpoint_id: int) -> Response:
        """Remove it with the log of its deliveries. It is told nothing any more."""
        refuse_parameters(request)
        refuse_body(request.data)
        with or_404():
            acts.remove_endpoint(request.auth, endpoint_id, now=timezone.now())
        return Response(status=204)


class WebhookSecretView(TenantView):
    """A new secret for an endpoint. For 24 hours the one before signs too; a further one ends the oldest at once."""

    key = MayOrder

    @extend_schema(
        operation_id="replace_webhook_secret",
        request=schemas.NewSecretRequest,
        responses=answers(schemas.WebhookWithSecret, 403, 404, 409, body=True),
    )
    def post(self, request: KeyRequest, endpoint_id: int) -> Response:
        refuse_parameters(request)
        _endpoint(request, endpoint_id)
        made_at = read_fields(request.data, {"secret_made_at": TEXT}, required=("secret_made_at",))["secret_made_at"]
        with or_404():
            endpoint, secret = acts.rotate_secret(request.auth, endpoint_id, made_at=made_at, now=timezone.now())
        return Response({**_document(request, endpoint), "secret": secret})


class WebhookTestView(TenantView):
    """A test event for an endpoint. While one still waits, that one is due now and no other is made."""

    key = MayOrder

    @extend_schema(
        operation_id="test_webhook",
        request=None,
        responses=answers(schemas.WebhookDelivery, 403, 404, 409, status=202, body=True),
    )
    def post(self, request: KeyRequest, endpoint_id: int) -> Response:
        refuse_parameters(request)
        refuse_body(request.data)
        with or_404():
            delivery = acts.send_test(request.auth, endpoint_id, now=timezone.now())
        return Response(delivery_document(delivery, delivery.endpoint.organization.slug), status=202)


class WebhookDeliveriesView(TenantView):
    """What was sent to an endpoint within the last 30 days, and what waits."""

    key = MayRead

    @extend_schema(
        operation_id="list_webhook_deliveries",
        parameters=[OpenApiParameter("state", enum=_STATES, description="What became of them."), *PAGING],
        responses=answers(schemas.WebhookDeliveryList, 403, 404),
    )
    def get(self, request: KeyRequest, endpoint_id: int) -> Response:
        """Deliveries of an endpoint, the latest first."""
        query = ListQuery(request, ("state",))
        endpoint, state = _endpoint(request, endpoint_id), query.one_of("state", _STATES)
        rows = _deliveries(request, endpoint).defer("event__body").prefetch_related("attempts")
        rows = rows.filter(state=state) if state else rows
        document = partial(delivery_document, slug=endpoint.organization.slug)
        return query.respond(rows, ("-created_at", "-id"), document, name=f"deliveries-{endpoint.pk}")


class WebhookDeliveryView(TenantView):
    """One delivery: what was sent, and every attempt with the beginning of its answer."""

    key = MayRead

    @extend_schema(operation_id="get_webhook_delivery", responses=answers(schemas.WebhookDeliveryWithEvent, 403, 404))
    def get(self, request: KeyRequest, endpoint_id: int, event_id: UUID) -> Response:
        refuse_parameters(request)
        endpoint = _endpoint(request, endpoint_id)
        with or_404():
            delivery = _deliveries(request, endpoint).get(event=event_id)
        document = delivery_document(delivery, endpoint.organization.slug)
        return Response({**document, "event": json.loads(delivery.event.body)})


class WebhookReplayView(TenantView):
    """A delivery once more, under the id that its event has, with the whole schedule before it."""

    key = MayOrder

    @extend_schema(
        operation_id="replay_webhook_delivery",
        request=None,
        responses=answers(schemas.WebhookDelivery, 403, 404, 409, status=202, body=True),
    )
    def post(self, request: KeyRequest, endpoint_id: int, event_id: UUID) -> Response:
        refuse_parameters(request)
        refuse_body(request.data)
        endpoint = _endpoint(request, endpoint_id)
        with or_404():
            asked = _deliveries(request, endpoint).get(event=event_id)
            delivery = acts.replay(request.auth, endpoint.pk, asked.pk, now=timezone.now())
        return Response(delivery_document(delivery, endpoint.organization.slug), status=202)


def _document(request: KeyRequest, endpoint: WebhookEndpoint) -> dict[str, Any]:
    return endpoint_document(endpoint, now=timezone.now(), in_full=request.auth.may(Scope.ORDER))


def _endpoint(request: KeyRequest, endpoint_id: int) -> WebhookEndpoint:
    rows = WebhookEndpoint.objects.for_organization(request.organization).select_related("organization")
    with or_404():
        return rows.get(pk=endpoint_id)


def _deliveries(request: KeyRequest, endpoint: WebhookEndpoint) -> Any:
    rows = WebhookDelivery.objects.for_organization(request.organization).filter(endpoint=endpoint)
    return rows.select_related("event")
