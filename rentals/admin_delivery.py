"""Staff's pages around a running order: the queue of lots to hand over, cancelling, and what became of the mails."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.timesince import timesince

from rentals.admin_read_only import ReadOnly
from rentals.cancellations import cancel_order, least_credit_usd
from rentals.deliveries import deliver, to_deliver
from rentals.delivery_forms import CancelOrderForm, ConnectionForm
from rentals.errors import RentalError
from rentals.models import Allocation, Connection, Notice, Order, SshKey
from rentals.models.orders import Status


def may_change_orders(request: HttpRequest) -> bool:
    """The right is Django's own "change"; rows themselves are written by verbs alone."""
    user = cast(User, request.user)
    return user.is_staff and user.has_perm("rentals.change_order")


class DeliveryFilter(admin.SimpleListFilter):
    """Without a choice the queue is shown: what staff come here for."""

    title = "delivery"
    parameter_name = "delivery"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("delivered", "Handed over"), ("all", "All")]

    def choices(self, changelist: Any) -> Any:
        first, *others = super().choices(changelist)
        first["display"] = "To deliver"
        return [first, *others]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Allocation]) -> QuerySet[Allocation]:
        match self.value():
            case "all":
                return queryset
            case "delivered":
                return queryset.filter(delivered_at__isnull=False)
        return queryset.filter(pk__in=to_deliver(timezone.now()).order_by().values("pk"))


@admin.register(Allocation)
class AllocationAdmin(admin.ModelAdmin):
    list_display = ["lot", "organization", "machine_name", "environment", "waiting_since", "waits", "delivered_at"]
    list_filter = [DeliveryFilter]
    search_fields = ["order__id", "organization__name", "organization__slug", "order__machine_facts__name"]
    list_select_related = ["organization", "order"]
    ordering = ["order__starts_at", "order_id", "number"]

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    @admin.display(description="lot", ordering="order__starts_at")
    def lot(self, allocation: Allocation) -> str:
        return f"{allocation.order.reference}, lot {allocation.number}"

    @admin.display(description="machine")
    def machine_name(self, allocation: Allocation) -> str:
        return allocation.order.machine_facts["name"]

    @admin.display(description="requested environment")
    def environment(self, allocation: Allocation) -> str:
        return allocation.order.get_environment_display()

    @admin.display(description="ordered", ordering="order__starts_at")
    def waiting_since(self, allocation: Allocation) -> Any:
        return allocation.order.starts_at

    @admin.display(description="waits")
    def waits(self, allocation: Allocation) -> str:
        now = timezone.now()
        if allocation.delivered_at is not None or allocation.order.status_at(now) != Status.ACTIVE:
            return ""
        return timesince(allocation.order.starts_at, now)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Hand the lot over, or correct how it is reached."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        allocation = self.get_object(request, unquote(object_id))
        if allocation is None:
            raise Http404("There is no such lot.")
        connection = Connection.objects.filter(allocation=allocation).first()
        form = ConnectionForm(request.POST or None, initial=ConnectionForm.filled(connection))
        if request.method == "POST":
            if not self.has_change_permission(request):
                raise PermissionDenied
            if form.is_valid() and self._deliver(request, allocation, form):
                return redirect("admin:rentals_allocation_changelist")
        context = {
            **self.admin_site.each_context(request),
            "title": f"Lot {allocation.number} of order {allocation.order.reference}",
            "opts": self.opts,
            "form": form,
            "allocation": allocation,
            "order": allocation.order,
            "keys": SshKey.objects.for_organization(allocation.organization),
            "may_change": self.has_change_permission(request),
            "running": allocation.order.status_at(timezone.now()) == Status.ACTIVE,
        }
        return render(request, "admin/rentals/allocation/deliver.html", context)

    def _deliver(self, request: HttpRequest, allocation: Allocation, form: ConnectionForm) -> bool:
        try:
            deliver(allocation.pk, form.details(), actor=cast(User, request.user), now=timezone.now())
        except RentalError as error:
            _add(form, error)
            return False
        word = "corrected" if allocation.delivered_at else "handed over"
        messages.success(request, f"Lot {allocation.number} of order {allocation.order.reference} is {word}.")
        return True


class CancelsOrders(admin.ModelAdmin):
    """The page that cancels an order, for the admin of orders."""

    change_form_template = "admin/rentals/order/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.cancel_view)
        return [path("<uuid:order_id>/cancel/", view, name="rentals_order_cancel"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        order = Order.objects.filter(pk=object_id).first() if len(object_id) == 36 else None
        running = order is not None and order.status_at(timezone.now()) == Status.ACTIVE
        extra = {"may_cancel": running and may_change_orders(request)}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **extra})

    def cancel_view(self, request: HttpRequest, order_id: Any) -> HttpResponse:
        """Say why and what is credited, then cancel."""
        if not may_change_orders(request):
            raise PermissionDenied
        order = get_object_or_404(Order.objects.select_related("organization"), pk=order_id)
        least = least_credit_usd(order, order.allocations.all())
        form = CancelOrderForm(request.POST or None, initial={"credit_usd": least})
        if request.method == "POST" and form.is_valid() and self._cancel(request, order, form):
            return redirect(reverse("admin:rentals_order_change", args=[order.pk]))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Cancel order {order.reference}",
            "opts": self.opts,
            "form": form,
            "order": order,
            "least": least,
            "running": order.status_at(timezone.now()) == Status.ACTIVE,
        }
        return render(request, "admin/rentals/order/cancel.html", context)

    def _cancel(self, request: HttpRequest, order: Order, form: CancelOrderForm) -> bool:
        try:
            cancel_order(order.pk, **form.cleaned_data, actor=cast(User, request.user), now=timezone.now())
        except RentalError as error:
            _add(form, error)
            return False
        messages.success(request, f"Order {order.reference} is cancelled.")
        return True


@admin.register(SshKey)
class SshKeyAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["comment", "organization", "kind", "fingerprint", "added_by_name", "added_at"]
    search_fields = ["comment", "fingerprint", "organization__name", "organization__slug"]
    list_select_related = ["organization"]


@admin.register(Notice)
class NoticeAdmin(ReadOnly, admin.ModelAdmin):
    """What was sent, what waits, and what was cut off."""

    list_display = ["created_at", "kind", "recipient", "organization", "state", "attempts", "sent_at", "error"]
    list_filter = ["state", "kind"]
    search_fields = ["recipient", "order__id", "organization__name", "organization__slug"]
    list_select_related = ["organization"]


def _add(form: Form, error: RentalError) -> None:
    form.add_error(error.field if error.field in form.fields else None, error.message)
