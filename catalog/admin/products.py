"""What is sold and how it is spelled: GPUs with their aliases, options, spellings of places."""

from django.contrib import admin
from simple_history.admin import SimpleHistoryAdmin

from catalog.admin.completing import CompletesReferences
from catalog.admin.counted import CountsMachines
from catalog.admin.files import KeepsFiles
from catalog.admin.forms import GpuForm
from catalog.importing.products import GpuAliasTable, GpuTable, PlaceAliasTable
from catalog.models import Gpu, GpuAlias, Option, PlaceAlias


class GpuAliasInline(admin.TabularInline):
    model = GpuAlias
    extra = 1


@admin.register(Gpu)
class GpuAdmin(KeepsFiles, CountsMachines, SimpleHistoryAdmin):
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
class GpuAliasAdmin(CompletesReferences, KeepsFiles):
    table = GpuAliasTable
    list_display = ("name", "gpu")
    list_select_related = ("gpu",)
    search_fields = ("name", "gpu__name", "gpu__slug")
    autocomplete_fields = ("gpu",)
    show_full_result_count = False


@admin.register(PlaceAlias)
class PlaceAliasAdmin(KeepsFiles):
    table = PlaceAliasTable
    list_display = ("name", "country_or_none")
    search_fields = ("name", "=country")
    show_full_result_count = False

    @admin.display(description="country", ordering="country", empty_value="names no country")
    def country_or_none(self, alias: PlaceAlias) -> str | None:
        return alias.country
