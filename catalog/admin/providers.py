"""Providers and their feeds: settings, what the last refreshes did, and the two things that staff may ask of one."""

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST
from simple_history.admin import SimpleHistoryAdmin
from simple_history.template_utils import HistoricalRecordContextHelper

from catalog.admin.counted import CountsMachines
from catalog.admin.feeds import lasted, rejected_rows
from catalog.admin.provider_form import ProviderForm
from catalog.models import FeedRun, FeedState, Provider
from catalog.outgoing import shown_address
from catalog.questions import REASON_LENGTH
from catalog.refresh import NothingHeld, accept_held
from catalog.refresh.turns import make_due

SHOWN_RUNS = 10
# What a refresh writes: a form that was opened before must not write an older time over it.
NOT_STAFFS = {"id", "refreshed_at"}
FEED_FIELDS = ("feed_url", "feed_format", "new_secret", "forget_secret")


class _Changes(HistoricalRecordContextHelper):
    """What was changed, without the secrets that an address may hold."""

    def prepare_delta_change_value(self, change: Any, value: Any) -> Any:
        if change.field == "feed_url" and value:
            return shown_address(value)
        return super().prepare_delta_change_value(change, value)


@admin.register(Provider)
class ProviderAdmin(CountsMachines, SimpleHistoryAdmin):
    machine_field = "provider"
    form = ProviderForm
    change_form_template = "admin/catalog/provider_change_form.html"
    list_display = ("name", "slug", "invented", "feed_format", "refreshed_at", "machine_count")
    list_filter = ("invented", "feed_format")
    search_fields = ("name", "slug")
    show_full_result_count = False
    readonly_fields = ("refreshed_at", "feed_address")
    fieldsets = (
        (None, {"fields": ("name", "slug", "website", "invented")}),
        (
            "Feed",
            {
                "fields": (
                    "feed_format", "feed_url", "new_secret", "forget_secret", "feed_interval_seconds", "refreshed_at",
                ),
                "description": "Without a feed its machines are declared by the operator and never age.",
            },
        ),
    )  # fmt: skip

    def get_fieldsets(self, request: HttpRequest, obj: Provider | None = None) -> Any:
        if obj is None or self.has_change_permission(request, obj):
            return super().get_fieldsets(request, obj)
        # Who may only look is not shown empty fields of a secret, nor the one that an address may hold.
        instead: dict[Any, str | None] = {"new_secret": None, "forget_secret": None, "feed_url": "feed_address"}
        return [
            (title, {**options, "fields": [name for one in options["fields"] if (name := instead.get(one, one))]})
            for title, options in self.fieldsets
        ]

    @admin.display(description="feed address")
    def feed_address(self, provider: Provider) -> str:
        return shown_address(provider.feed_url) if provider.feed_url else "none"

    def get_historical_record_context_helper(self, request: HttpRequest, historical_record: Any) -> Any:
        return _Changes(self.model, historical_record)

    def save_model(self, request: HttpRequest, obj: Provider, form: Any, change: bool) -> None:
        if not change:
            super().save_model(request, obj, form, change)
        else:
            obj.save(update_fields=[one.name for one in obj._meta.concrete_fields if one.name not in NOT_STAFFS])
        if obj.has_feed and set(form.changed_data) & set(FEED_FIELDS):
            make_due(obj, timezone.now())

    # --- The feed's page ----------------------------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/refresh/", wrap(require_POST(self.refresh_view)), name="catalog_provider_refresh"),
            path("<int:pk>/accept/", wrap(require_POST(self.accept_view)), name="catalog_provider_accept"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> Any:
        provider = self.get_object(request, unquote(object_id))
        runs = list(FeedRun.objects.filter(provider=provider)[:SHOWN_RUNS])
        over = next((run for run in runs if run.outcome != FeedRun.Outcome.RUNNING), None)
        read = FeedRun.objects.that_read_a_list().filter(provider=provider).first()
        state = FeedState.objects.filter(provider=provider).first()
        context = {
            "runs": [(run, lasted(run)) for run in runs],
            "state": state,
            "last_run": over,
            "read_run": read,
            "rejected": rejected_rows(read) if read and read.rejected else "",
            "is_held": over is not None and over.is_held,
            "accepted_until": state.accepted_until if state else None,
            "reason_length": REASON_LENGTH,
            **(extra_context or {}),
        }
        return super().change_view(request, object_id, form_url, context)

    def refresh_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Let the list be fetched at the next opportunity, whatever was planned."""
        provider = self._provider(request, pk)
        if provider.has_feed:
            make_due(provider, timezone.now())
            messages.success(request, "Its list is fetched at once: open this page again in a few seconds.")
        else:
            messages.error(request, f"{provider} has no feed: nothing can be fetched.")
        return self._back(provider)

    def accept_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The list that was held is what the provider really offers."""
        provider = self._provider(request, pk)
        try:
            accept_held(provider, cast(User, request.user), request.POST.get("reason", ""), timezone.now())
        except NothingHeld as nothing:
            messages.error(request, str(nothing))
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        else:
            messages.success(request, "Accepted: the next list is applied although it differs so much.")
        return self._back(provider)

    def _provider(self, request: HttpRequest, pk: int) -> Provider:
        if not self.has_change_permission(request):
            raise PermissionDenied
        return get_object_or_404(Provider, pk=pk)

    def _back(self, provider: Provider) -> HttpResponse:
        return redirect(reverse("admin:catalog_provider_change", args=[provider.pk]))
