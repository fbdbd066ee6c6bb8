"""Tenants' rows for staff. Orders are looked at, never edited; placing one on behalf calls the one function."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html

from rentals import admin_webhooks as admin_webhooks  # registers its pages
from rentals import policies
from rentals.admin_delivery import CancelsOrders
from rentals.admin_forms import PlaceOrderForm
from rentals.admin_read_only import ReadOnly
from rentals.admin_teams import MembershipInline, RecordsMembers
from rentals.api_keys import revoke_api_key
from rentals.errors import IdempotencyMismatch, NotPermitted, PolicyViolation, PriceChanged, RentalError
from rentals.models import Allocation, ApiKey, AuditEvent, Membership, Order, Organization, OwnModel
from rentals.ordering import place_order, role_of_who_asked
from rentals.own_models import publish_own_model
from rentals.quotes import Quote, permitted_quote
from rentals.review import new_key
from rentals.scoping import opens_transactions
from rentals.tenants import Across, across_tenants
from sizing.own_views import reading_context
from sizing.publishing import PublishForm


@admin.register(Organization)
class OrganizationAdmin(RecordsMembers):
    list_display = ["name", "slug", "members", "orders_placed", "created_at"]
    search_fields = ["name", "slug", "memberships__user__email"]
    ordering = ["name", "id"]
    date_hierarchy = "created_at"
    inlines = [MembershipInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Organization]:
        counted = super().get_queryset(request)
        return counted.annotate(
            member_count=Count("memberships", distinct=True), order_count=Count("orders", distinct=True)
        )

    @admin.display(ordering="member_count")
    def members(self, organization: Any) -> int:
        return organization.member_count

    @admin.display(description="orders", ordering="order_count")
    def orders_placed(self, organization: Any) -> int:
        return organization.order_count

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> list[str]:
        # Addresses of receipts hold it.
        return ["slug"] if obj else []

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Membership)
class MembershipAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["user", "organization", "role", "created_at"]
    list_filter = ["role"]
    search_fields = ["user__email", "organization__name", "organization__slug"]
    list_select_related = ["user", "organization"]


class AllocationInline(ReadOnly, admin.TabularInline):
    model = Allocation
    fields = ["number", "state", "delivered_at"]
    extra = 0


@admin.register(Order)
class OrderAdmin(ReadOnly, CancelsOrders):
    list_display = [
        "reference", "organization", "machine_name", "lots", "term_days", "total_usd", "state_now", "starts_at",
        "ends_at", "placed_via",
    ]  # fmt: skip
    list_filter = ["status", "term_days", "placed_via", "environment"]
    search_fields = [
        "id", "organization__name", "organization__slug", "machine_facts__name", "placed_by_name", "idempotency_key",
    ]  # fmt: skip
    date_hierarchy = "starts_at"
    list_select_related = ["organization"]
    inlines = [AllocationInline]

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        # Adding is placing on behalf; the right to it is Django's own.
        return cast(User, request.user).has_perm("rentals.add_order")

    @admin.display(description="machine")
    def machine_name(self, order: Order) -> str:
        return order.machine_facts["name"]

    @admin.display(description="state")
    def state_now(self, order: Order) -> str:
        return order.status_at(timezone.now()).label

    @opens_transactions
    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Place an order on behalf of an organization: first the total, then the order."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        now = timezone.now()
        with across_tenants(Across.ADMINISTRATION):
            form = PlaceOrderForm(request.POST or None, initial={"idempotency_key": new_key()})
            sound = request.method == "POST" and form.is_valid()
        refusal: RentalError | None = None
        if sound and "place" in request.POST:
            try:
                return self._place(request, form, now)
            except RentalError as error:
                refusal = error
        with across_tenants(Across.ADMINISTRATION):
            return self._page(request, form, refusal, now)

    def _page(
        self, request: HttpRequest, form: PlaceOrderForm, refusal: RentalError | None, now: datetime
    ) -> HttpResponse:
        """The form with the total of what it asks for, or with why that cannot be had."""
        offer = None
        if request.method == "POST" and form.is_valid():
            try:
                if refusal is not None:
                    raise refusal
                offer = self._offer(form, now)
            except RentalError as error:
                field = _field_of(error)
                form.add_error(field if field in form.fields else None, error.message)
                offer = self._offer(form, now) if isinstance(error, PriceChanged) else None
                if isinstance(error, IdempotencyMismatch):
                    form.add_error(None, "Open this page anew to place another order.")
            form.show_total(offer.total_usd if offer else None)
        context = {
            **self.admin_site.each_context(request),
            "title": "Place an order on behalf of an organization",
            "opts": self.opts,
            "form": form,
            "offer": offer,
        }
        return render(request, "admin/rentals/order/place.html", context)

    def _offer(self, form: PlaceOrderForm, now: datetime) -> Quote:
        """Said with the total already; what counts is said when the order is placed."""
        organization = form.cleaned_data["organization"]
        role = role_of_who_asked(organization, form.asked_user)
        offer = permitted_quote(form.basket(), organization, policies.policy_of(organization), role, now=now)
        offer.check_acknowledged()
        return offer

    def _place(self, request: HttpRequest, form: PlaceOrderForm, now: datetime) -> HttpResponse:
        expected = form.cleaned_data["expected_total_usd"]
        if not expected:
            with across_tenants(Across.ADMINISTRATION):
                expected = self._offer(form, now).total_usd
        placement = place_order(
            organization=form.cleaned_data["organization"],
            basket=form.basket(),
            idempotency_key=form.cleaned_data["idempotency_key"],
            expected_total_usd=expected,
            actor=cast(User, request.user),
            via="staff",
            path=request.path,
            now=now,
            asked_by=form.asked_user,
        )
        word = "was already" if placement.replayed else "is"
        messages.success(request, f"Order {placement.order.reference} {word} placed.")
        return redirect(reverse("admin:rentals_order_change", args=[placement.order.pk]))


def _field_of(error: RentalError) -> str | None:
    """Where on the form an error can be mended: who may order is asked of the member who asked."""
    by_role = isinstance(error, NotPermitted) or (isinstance(error, PolicyViolation) and error.rule == "order_role")
    return "asked_by" if by_role else error.field


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly, admin.ModelAdmin):
    list_display = [
        "name",
        "prefix",
        "organization",
        "scopes",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
    ]
    search_fields = ["name", "prefix", "organization__name", "organization__slug"]
    list_select_related = ["organization"]
    exclude = ["secret_hash"]
    actions = ["revoke_keys"]

    @admin.action(description="Revoke the chosen keys", permissions=["revoke"])
    def revoke_keys(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
        now, actor = timezone.now(), cast(User, request.user)
        for key in keys.select_related("organization"):
            revoke_api_key(key.organization, key.pk, actor=actor, via="staff", now=now)
        messages.success(request, "The chosen keys are revoked.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        # The right is Django's own "change": the list itself is read-only.
        return cast(User, request.user).has_perm("rentals.change_apikey")


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["at", "organization", "action", "object_id", "actor_name", "via"]
    list_filter = ["action", "via"]
    search_fields = ["organization__name", "organization__slug", "object_id", "actor_name"]
    date_hierarchy = "at"
    list_select_related = ["organization"]


@admin.register(OwnModel)
class OwnModelAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["name", "slug", "organization", "architecture", "created_by_name", "created_at"]
    search_fields = ["name", "slug", "organization__name", "organization__slug"]
    date_hierarchy = "created_at"
    list_select_related = ["organization"]
    readonly_fields = ["into_the_catalog"]

    @admin.display
    def architecture(self, model: OwnModel) -> str:
        shape = model.readable
        return shape.architecture if shape else "cannot be read any more"

    @admin.display(description="catalog")
    def into_the_catalog(self, model: OwnModel) -> str:
        address = reverse("admin:rentals_ownmodel_publish", args=[model.pk])
        return format_html('<a href="{}">Publish it into the catalog, with its source</a>', address)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.publish_view)
        return [path("<int:pk>/publish/", view, name="rentals_ownmodel_publish"), *super().get_urls()]

    def publish_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """An organization's model becomes one of the catalog, which everybody sees; its own stays."""
        staff = cast(User, request.user)
        if not (self.has_view_permission(request) and staff.has_perm("sizing.add_aimodel")):
            raise PermissionDenied
        row = get_object_or_404(OwnModel.objects.select_related("organization"), pk=pk)
        shape = row.readable
        if shape is None:
            messages.error(request, "The figures of this model cannot be read any more: it must be brought again.")
            return redirect("admin:rentals_ownmodel_change", row.pk)
        form = PublishForm(request.POST if request.method == "POST" else None, initial={"name": row.name})
        if request.method == "POST" and form.is_valid():
            published = publish_own_model(row, form, actor=staff, now=timezone.now())
            if published is not None:
                messages.success(request, f"{published} is in the catalog. Check its figures and its worked example.")
                return redirect("admin:sizing_aimodel_change", published.pk)
        context = {
            **self.admin_site.each_context(request),
            **reading_context(shape, row.reading),
            "title": f"Publish {row.name} of {row.organization}",
            "opts": self.opts,
            "form": form,
            "back": reverse("admin:rentals_ownmodel_changelist"),
            "explanation": "Everybody sees a model of the catalog: make sure that the organization agrees and that the "
            "source is public. What its checkpoint stores is not published; the catalog sizes it by its parameters.",
        }
        return render(request, "admin/sizing/aimodel/import.html", context)
