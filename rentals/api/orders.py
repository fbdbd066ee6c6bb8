"""Quotes, orders and the lots of an order."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from catalog.api_queries import ListQuery, refuse_parameters
from catalog.api_schemas import PAGING, answers
from rentals import allocations as acts
from rentals import policies
from rentals.api import schemas
from rentals.api.bodies import read_order, read_quote, refuse_body
from rentals.api.views import TenantView
from rentals.authentication import HasKey, KeyRequest, MayOrder, MayRead
from rentals.deliveries import connections_of
from rentals.documents import allocation_document, order_document, quote_document
from rentals.fits import sizing_document
from rentals.models import Allocation, Order
from rentals.models.api_keys import Scope
from rentals.models.orders import Status
from rentals.ordering import Placement, digest_of, place_order, placed_before
from rentals.own_models import shapes_of
from rentals.quotes import permitted_quote
from rentals.tenants import tenant
from sizing.json_input import InvalidBody

_MAX_ID = 2**63 - 1


class QuotesView(TenantView):
    """What a basket costs now. Nothing is stored, nothing is reserved."""

    key = HasKey

    @extend_schema(
        operation_id="quote",
        request=schemas.QuoteRequest,
        responses=answers(schemas.Quote, 403, 404, 409, body=True),
    )
    def post(self, request: KeyRequest) -> Response:
        refuse_parameters(request)
        now, organization = timezone.now(), request.organization
        basket, policy = read_quote(request.data), policies.policy_of(organization)
        return Response(quote_document(permitted_quote(basket, organization, policy, policies.ROLE_OF_KEYS, now=now)))


class OrdersView(TenantView):
    """The organization's orders."""

    key = MayRead
    key_for = {"POST": MayOrder}
    opens_transactions = ("POST",)

    @extend_schema(
        operation_id="list_orders",
        parameters=schemas.ORDER_FILTERS + PAGING,
        responses=answers(schemas.OrderList, 403),
    )
    def get(self, request: KeyRequest) -> Response:
        """Orders, the latest first."""
        now = timezone.now()
        query = ListQuery(request, ("state", "machine", "created_from", "created_before"))
        state, machine = query.one_of("state", Status.values), query.whole("machine", most=_MAX_ID)
        earliest, before = query.instant("created_from"), query.instant("created_before")
        rows = Order.objects.for_organization(request.organization).in_state(state, now)
        if machine is not None:
            rows = rows.filter(machine=machine)
        if earliest is not None:
            rows = rows.filter(starts_at__gte=earliest)
        if before is not None:
            rows = rows.filter(starts_at__lt=before)
        rows = rows.select_related("organization").prefetch_related("allocations")

        def document(order: Order) -> dict[str, Any]:
            return order_document(order, order.allocations.all(), now=now)

        return query.respond(rows, ("-starts_at", "-id"), document, name="orders")

    @extend_schema(
        operation_id="place_order",
        parameters=[schemas.IDEMPOTENCY_KEY],
        request=schemas.OrderRequest,
        responses=answers(schemas.Order, 403, 404, 409, 422, status=201, body=True),
    )
    def post(self, request: KeyRequest) -> HttpResponse:
        """Place an order. The same key with the same body gives the same answer, however often it is sent."""
        refuse_parameters(request)
        placement = self._place(request, timezone.now())
        headers = {"Location": reverse("api-order", args=[placement.order.pk])}
        if placement.replayed:
            headers["Idempotency-Replayed"] = "true"
        # The stored bytes as they are: a renderer would write them anew.
        return HttpResponse(placement.body, "application/json", placement.status, headers=headers)

    def _place(self, request: KeyRequest, now: datetime) -> Placement:
        key, sent = request.headers.get("Idempotency-Key"), digest_of(request.data)
        # Closed before the order is placed, in a transaction of its own.
        with tenant(request.organization):
            try:
                wanted = read_order(request.data, key, own_models=shapes_of(request.organization))
            except InvalidBody:
                # What it names may be gone since it was answered the first time.
                if before := placed_before(
                    request.organization, idempotency_key=key, sent=sent, actor=request.auth, via="api",
                    path=request.path, now=now,
                ):  # fmt: skip
                    return before
                raise
        return place_order(
            organization=request.organization,
            basket=wanted.basket,
            idempotency_key=wanted.idempotency_key,
            expected_total_usd=wanted.expected_total_usd,
            actor=request.auth,
            via="api",
            path=request.path,
            now=now,
            size=partial(sizing_document, wanted.workload) if wanted.workload else None,
            sent=sent,
        )


class OrderView(TenantView):
    """One order of the organization; a key with the scope `order` is told how its lots are reached."""

    key = MayRead

    @extend_schema(operation_id="get_order", responses=answers(schemas.Order, 403, 404))
    def get(self, request: KeyRequest, order_id: UUID) -> Response:
        refuse_parameters(request)
        order, now = _order(request, order_id), timezone.now()
        may = request.auth.may(Scope.ORDER) and policies.keys_may_order(policies.policy_of(request.organization))
        told = connections_of(order, now=now) if may else {}
        return Response(order_document(order, order.allocations.all(), now=now, connections=told))


class _AllocationView(TenantView):
    key = MayOrder

    def _act(self, request: KeyRequest, order_id: UUID, number: int, verb: Any) -> Response:
        refuse_parameters(request)
        refuse_body(request.data)
        order, now = _order(request, order_id), timezone.now()
        try:
            allocation = verb(order, number, actor=request.auth, via="api", now=now)
        except Allocation.DoesNotExist:
            raise Http404 from None
        return Response(allocation_document(allocation, order, now))


class StopView(_AllocationView):
    """Stop a lot. The paid period runs on; stopping a stopped lot changes nothing."""

    @extend_schema(
        operation_id="stop_allocation", request=None, responses=answers(schemas.Allocation, 403, 404, 409, body=True)
    )
    def post(self, request: KeyRequest, order_id: UUID, number: int) -> Response:
        return self._act(request, order_id, number, acts.stop)


class StartView(_AllocationView):
    """Start a stopped lot again, until the end of the order's term."""

    @extend_schema(
        operation_id="start_allocation", request=None, responses=answers(schemas.Allocation, 403, 404, 409, body=True)
    )
    def post(self, request: KeyRequest, order_id: UUID, number: int) -> Response:
        return self._act(request, order_id, number, acts.start)


def _order(request: KeyRequest, order_id: UUID) -> Order:
    """The order, when it is this organization's; another's does not exist."""
    orders = Order.objects.for_organization(request.organization).select_related("organization")
    order = orders.filter(pk=order_id).first()
    if order is None:
        raise Http404
    return order
