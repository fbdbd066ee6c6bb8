"""Webhooks and saved searches for staff, who look at them: neither a secret nor what an event says is shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from rentals.admin_read_only import ReadOnly
from rentals.models import SavedSearch, WebhookAttempt, WebhookDelivery, WebhookEndpoint


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["address", "organization", "description", "enabled", "failing_since", "given_up_at", "created_at"]
    list_filter = ["enabled"]
    search_fields = ["description", "organization__name", "organization__slug"]
    list_select_related = ["organization"]
    # What follows a question mark in the address may be a password, as the secrets are.
    exclude = ["url", "secret", "previous_secret"]
    readonly_fields = ["address"]

    @admin.display(description="address")
    def address(self, endpoint: WebhookEndpoint) -> str:
        return endpoint.shown_url


class AttemptInline(ReadOnly, admin.TabularInline):
    model = WebhookAttempt
    readonly_fields = ["at", "answered", "took", "problem"]
    fields = ["at", "answered", "took", "problem"]
    extra = 0

    @admin.display(description="answer")
    def answered(self, attempt: WebhookAttempt) -> str:
        return "No answer" if attempt.status is None else str(attempt.status)

    @admin.display(description="took")
    def took(self, attempt: WebhookAttempt) -> str:
        return f"{attempt.milliseconds} ms"


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["event_id", "kind", "organization", "state", "tries", "created_at", "next_attempt_at"]
    list_filter = ["state", "event__kind"]
    search_fields = ["organization__name", "organization__slug", "event__id"]
    list_select_related = ["organization", "event"]
    fields = ["event_id", "kind", "organization", "state", "tries", "created_at", "next_attempt_at", "finished_at"]
    inlines = [AttemptInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[WebhookDelivery]:
        return super().get_queryset(request).select_related("event")

    @admin.display(description="event", ordering="event__kind")
    def kind(self, delivery: Any) -> str:
        return str(delivery.event.kind)


@admin.register(SavedSearch)
class SavedSearchAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["name", "organization", "machines", "checked_at", "found_at", "problem"]
    search_fields = ["name", "organization__name", "organization__slug"]
    list_select_related = ["organization"]
    exclude = ["known"]
