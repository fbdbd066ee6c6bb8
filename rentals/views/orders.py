"""An organization's orders: the list, the receipt, and its lots' stop and start."""

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from rentals import allocations as acts
from rentals.documents import order_document
from rentals.errors import OrderOver
from rentals.models import Order
from rentals.models.orders import Status
from rentals.policies import permits_ordering, policy_of
from rentals.receipts import receipt
from rentals.scoping import TenantRequest, nothing_done, organization_page

ORDERS_PER_PAGE = 25


@require_safe
@organization_page
def orders(request: TenantRequest) -> HttpResponse:
    now = timezone.now()
    state = request.GET.get("state", "")
    if state and state not in Status.values:
        return render(request, "rentals/orders.html", {"unknown_state": True, "states": Status}, status=400)
    rows = Order.objects.for_organization(request.organization).in_state(state, now)
    page = Paginator(rows, ORDERS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": [(order, order.status_at(now)) for order in page],
        "state": state,
        "states": Status,
    }
    return render(request, "rentals/orders.html", context)


@require_safe
@organization_page
def order(request: TenantRequest, order_id: UUID) -> HttpResponse:
    found = _order(request, order_id)
    return _page(request, found, 200)


@require_safe
@organization_page
def receipt_json(request: TenantRequest, order_id: UUID) -> HttpResponse:
    found = _order(request, order_id)
    document = order_document(found, found.allocations.all(), now=timezone.now())
    disposition = f'attachment; filename="berth-order-{found.pk}.json"'
    parameters = {"ensure_ascii": False, "indent": 2}
    return JsonResponse(document, json_dumps_params=parameters, headers={"Content-Disposition": disposition})


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def stop(request: TenantRequest, order_id: UUID, number: int) -> HttpResponse:
    return _set_state(request, order_id, number, acts.stop)


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def start(request: TenantRequest, order_id: UUID, number: int) -> HttpResponse:
    return _set_state(request, order_id, number, acts.start)


def _set_state(request: TenantRequest, order_id: UUID, number: int, verb) -> HttpResponse:  # type: ignore[no-untyped-def]
    found = _order(request, order_id)
    if not found.allocations.filter(number=number).exists():
        raise Http404("This order has no such lot.")
    if request.method != "POST":
        return nothing_done(request, "order", found.pk)
    if not _may(request):
        messages.error(request, "Only members who may order stop and start lots. Ask an owner or admin.")
        return _page(request, found, 403)
    now = timezone.now()
    try:
        allocation = verb(found, number, actor=request.user, via="page", now=now)
    except OrderOver as error:
        messages.error(request, error.message)
        return _page(request, found, 409)
    messages.success(request, f"Lot {number}: {allocation.label_at(found, now)}.")
    return redirect("order", request.organization.slug, found.pk)


def _page(request: TenantRequest, found: Order, status: int) -> HttpResponse:
    may = _may(request)
    shown = receipt(found, now=timezone.now(), connections=may)
    context = {"receipt": shown, "order": found, "may_order": may}
    return render(request, "rentals/order.html", context, status=status)


def _may(request: TenantRequest) -> bool:
    return permits_ordering(request.membership, policy_of(request.organization))


def _order(request: TenantRequest, order_id: UUID) -> Order:
    orders = Order.objects.for_organization(request.organization).select_related("organization", "machine")
    return get_object_or_404(orders, pk=order_id)
