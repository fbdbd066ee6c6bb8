"""What is sold and how it is spelled: GPUs with their aliases, options, spellings of places."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils import timezone
from simple_history.admin import SimpleHistoryAdmin

from catalog.admin.counted import CountsMachines
from catalog.admin.files import KeepsFiles
from catalog.admin.forms import GpuForm
from catalog.importing.products import GpuAliasTable, GpuTable, PlaceAliasTable
from catalog.models import Gpu, GpuAlias, Option, PlaceAlias
from catalog.questions import close_understood
from catalog.visible import has_something_to_see


class AnswersQuestions(admin.ModelAdmin):
    """What is saved here may be what lists have asked about."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if closed := close_understood(timezone.now()):
            messages.success(request, f"Questions of feeds that this answers: {closed}. Their lists are fetched again.")


class AliasForm(forms.ModelForm):
    """A spelling, with the reason why it means that in its history."""

    change_reason = forms.CharField(label="How you know", required=False, max_length=100)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        reason = cleaned.get("change_reason", "")
        if self.has_changed() and not has_something_to_see(reason) and "change_reason" not in self.errors:
            self.add_error("change_reason", "Say how you know: it is kept in the history.")
        self.instance._change_reason = reason
        return cleaned


class GpuAliasInline(admin.TabularInline):
    model = GpuAlias
    form = AliasForm
    extra = 1


@admin.register(Gpu)
class GpuAdmin(AnswersQuestions, KeepsFiles, CountsMachines, SimpleHistoryAdmin):
    table = GpuTable
    machine_field = "gpu"
    form = GpuForm
    list_display = ("name", "slug", "vendor", "memory_gb_nominal", "memory_mib_reported", "machine_count")
    list_filter = ("vendor", "architecture", "memory_gb_nominal")
    search_fields = ("name", "slug", "aliases__name")
    show_full_result_count = False
    inlines = (GpuAliasInline,)


@admin.register(Option)
class OptionAdmin(SimpleHistoryAdmin):
    list_display = ("name", "slug", "price_per_lot_day_usd", "max_quantity", "listed")
    list_filter = ("listed",)
    search_fields = ("name", "slug", "description")


@admin.register(GpuAlias)
class GpuAliasAdmin(AnswersQuestions, KeepsFiles, SimpleHistoryAdmin):
    table = GpuAliasTable
    form = AliasForm
    list_display = ("name", "gpu")
    list_select_related = ("gpu",)
    search_fields = ("name", "gpu__name", "gpu__slug")
    autocomplete_fields = ("gpu",)
    show_full_result_count = False


@admin.register(PlaceAlias)
class PlaceAliasAdmin(AnswersQuestions, KeepsFiles, SimpleHistoryAdmin):
    table = PlaceAliasTable
    form = AliasForm
    list_display = ("name", "country_or_none")
    search_fields = ("name", "=country")
    show_full_result_count = False

    @admin.display(description="country", ordering="country", empty_value="names no country")
    def country_or_none(self, alias: PlaceAlias) -> str | None:
        return alias.country
