"""What an organization ordered and was credited: by month, as a page and as CSV, and all orders as CSV."""

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from rentals import statements as reading
from rentals.csv_export import csv_response
from rentals.documents import instant
from rentals.models import Order
from rentals.models.orders import Status
from rentals.scoping import TenantRequest, organization_page
from rentals.statements import Statement

_STATEMENT_HEADER = (
    "at", "line", "order", "machine", "provider", "lots", "cards", "term_days", "ordered_by", "amount_usd", "note",
)  # fmt: skip
_ORDERS_HEADER = (
    "order", "status", "machine", "provider", "tier", "country", "gpu", "lots", "cards", "term_days", "unit_usd",
    "total_usd", "credit_usd", "starts_at", "ends_at", "ended_at", "environment", "environment_notes", "ordered_by",
    "ordered_via", "cancel_reason",
)  # fmt: skip


@require_safe
@organization_page
def statements(request: TenantRequest) -> HttpResponse:
    context = {"months": reading.months(request.organization, now=timezone.now())}
    return render(request, "rentals/statements.html", context)


@require_safe
@organization_page
def statement(request: TenantRequest, month: str) -> HttpResponse:
    return render(request, "rentals/statement.html", {"statement": _statement(request, month)})


@require_safe
@organization_page
def statement_csv(request: TenantRequest, month: str) -> HttpResponse:
    found = _statement(request, month)
    rows = [
        (
            instant(entry.at), entry.what, entry.order.pk, entry.order.machine_facts["name"],
            entry.order.machine_facts["provider"], entry.order.lots, entry.order.cards, entry.order.term_days,
            entry.order.placed_by_name, entry.amount_usd, entry.order.cancel_reason if entry.what == "credit" else "",
        )
        for entry in found.entries
    ]  # fmt: skip
    return csv_response(f"berth-{request.organization.slug}-{found.month}", _STATEMENT_HEADER, rows)


@require_safe
@organization_page
def orders_csv(request: TenantRequest) -> HttpResponse:
    """All orders, or those in one state."""
    now = timezone.now()
    state = request.GET.get("state", "")
    if state and state not in Status.values:
        raise Http404("There is no such state.")
    orders = Order.objects.for_organization(request.organization).in_state(state, now)
    rows = (
        (
            order.pk, order.status_at(now).value, order.machine_facts["name"], order.machine_facts["provider"],
            order.machine_facts["tier"], order.machine_facts["country"], order.machine_facts["gpu_name"], order.lots,
            order.cards, order.term_days, order.unit_usd, order.total_usd, order.credit_usd, instant(order.starts_at),
            instant(order.ends_at), instant(order.ended_at), order.environment, order.environment_notes,
            order.placed_by_name, order.placed_via, order.cancel_reason,
        )
        for order in orders.defer("sizing", "workload", "lines").iterator()
    )  # fmt: skip
    return csv_response(f"berth-{request.organization.slug}-orders", _ORDERS_HEADER, rows)


def _statement(request: TenantRequest, text: str) -> Statement:
    now = timezone.now()
    month = reading.read_month(text)
    if month is None or month.start > now:
        raise Http404("There is no statement of that month.")
    return reading.statement(request.organization, month, now=now)
