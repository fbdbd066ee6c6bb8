"""What staff keep of the catalog. The admin edits, it does not decide: rules are in the models, checks and stock."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db import models
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from simple_history.admin import SimpleHistoryAdmin

from catalog import wording
from catalog.admin_forms import GpuForm, MachineForm, fill_pro_rata
from catalog.admin_preview import PreviewsForm
from catalog.models import Gpu, GpuAlias, Machine, Option, Provider
from catalog.pricing import Package, to_cents
from catalog.querysets import MachineQuerySet
from catalog.stock import LotsUnderRent, change_lots
from catalog.templatetags.units import gib, usd

# What a feed says of a machine: staff may read it, the next refresh writes it.
SYNCED_FIELDS = (
    "name", "provider", "gpu", "gpu_count", "tier", "country", "memory_figure", "memory_unit", "memory_source",
    "interruptible", "max_term_days", "lots", "online",
    "hourly_usd", "price_3_days_usd", "price_7_days_usd", "price_30_days_usd",
)  # fmt: skip


class GpuAliasInline(admin.TabularInline):
    model = GpuAlias
    extra = 1


@admin.register(Gpu)
class GpuAdmin(SimpleHistoryAdmin):
    form = GpuForm
    list_display = ("name", "slug", "vendor", "memory_gb_nominal", "memory_mib_reported", "machine_count")
    list_filter = ("vendor", "architecture", "memory_gb_nominal")
    search_fields = ("name", "slug", "aliases__name")
    inlines = (GpuAliasInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Gpu]:
        return super().get_queryset(request).annotate(machines_counted=Count("machines", distinct=True))

    @admin.display(description="machines", ordering="machines_counted")
    def machine_count(self, gpu: Any) -> int:
        return gpu.machines_counted


@admin.register(Provider)
class ProviderAdmin(SimpleHistoryAdmin):
    formfield_overrides: ClassVar = {models.URLField: {"assume_scheme": "https"}}
    list_display = ("name", "slug", "invented", "feed_format", "refreshed_at", "machine_count")
    list_filter = ("invented", "feed_format")
    search_fields = ("name", "slug")
    # The form would show it.
    exclude = ("feed_secret",)
    readonly_fields = ("refreshed_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Provider]:
        return super().get_queryset(request).annotate(machines_counted=Count("machines", distinct=True))

    @admin.display(description="machines", ordering="machines_counted")
    def machine_count(self, provider: Any) -> int:
        return provider.machines_counted


class ProblemFilter(admin.SimpleListFilter):
    """Machines that staff should look at, because something about them is unknown."""

    title = "problems"
    parameter_name = "problems"
    _conditions = {
        "memory": Q(gpu_memory_bytes__isnull=True),
        "country": Q(country__isnull=True),
        "any": Q(gpu_memory_bytes__isnull=True) | Q(country__isnull=True),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("memory", "Memory missing"), ("country", "Country unknown"), ("any", "Any of these")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Machine]) -> QuerySet[Machine]:
        condition = self._conditions.get(self.value() or "")
        return queryset if condition is None else queryset.filter(condition)


class ReasonForm(ActionForm):
    reason = forms.CharField(required=False, max_length=100, label="Reason (for off-line)")


@admin.register(Machine)
class MachineAdmin(PreviewsForm, SimpleHistoryAdmin):
    form = MachineForm
    preview_buttons = (
        ("_preview", "Preview the prices"),
        ("_pro_rata", "Fill in 3 and 30 days pro rata from the price for 7 days"),
    )
    previewed_parts = ("packages", "memory_counted")
    list_display = (
        "name", "provider", "tier", "gpu_and_count", "memory_short", "memory_source", "country", "lots_free",
        "listed", "online", "last_seen", "week", "month", "problems",
    )  # fmt: skip
    list_filter = (
        ProblemFilter, "tier", "listed", "online", "memory_source", "interruptible", "provider", "country", "gpu",
    )  # fmt: skip
    list_select_related = ("gpu", "provider")
    list_per_page = 50
    search_fields = ("name", "provider__name", "gpu__name", "gpu__slug", "country")
    action_form = ReasonForm
    actions = ("mark_off_line", "mark_on_line")
    readonly_fields = ("free_lots", "memory_counted", "packages", "updated_at")
    fieldsets = (
        (None, {"fields": ("name", "provider", "gpu", "gpu_count", "tier", "country")}),
        ("Memory per GPU", {"fields": (("memory_figure", "memory_unit"), "memory_source", "memory_counted")}),
        ("Availability", {"fields": ("listed", "online", "lots", "free_lots", "max_term_days", "interruptible")}),
        ("This change", {"fields": ("change_reason", "updated_at")}),
        (
            "Prices per lot",
            {"fields": ("hourly_usd", "price_7_days_usd", "price_30_days_usd", "price_3_days_usd", "packages")},
        ),
    )

    # --- The list ---

    @admin.display(description="GPU", ordering="gpu__name")
    def gpu_and_count(self, machine: Machine) -> str:
        return f"{machine.gpu.name} × {machine.gpu_count}"

    @admin.display(description="memory counted", ordering="gpu_memory_bytes")
    def memory_short(self, machine: Machine) -> str:
        return wording.UNKNOWN_MEMORY if machine.gpu_memory_bytes is None else gib(machine.gpu_memory_bytes)

    @admin.display(description="memory counted")
    def memory_counted(self, machine: Machine) -> str:
        if machine.gpu_memory_bytes is None:
            return wording.UNKNOWN_MEMORY
        return f"{gib(machine.gpu_memory_bytes)} ({machine.gpu_memory_bytes:,} bytes)"

    @admin.display(description="lots", ordering="free_lots")
    def lots_free(self, machine: Machine) -> str:
        return wording.lots(machine)

    @admin.display(description="last seen", ordering="provider__refreshed_at")
    def last_seen(self, machine: Machine) -> Any:
        if not machine.provider.has_feed:
            return "set by the operator"
        return machine.provider.refreshed_at or "never"

    @admin.display(description="7 days", ordering="price_7_days_usd")
    def week(self, machine: Machine) -> str:
        return _price(Package(7, machine.price_7_days_usd))

    @admin.display(description="30 days", ordering="price_30_days_usd")
    def month(self, machine: Machine) -> str:
        return _price(Package(30, machine.price_30_days_usd))

    @admin.display(description="problems")
    def problems(self, machine: Machine) -> str:
        found = []
        if machine.gpu_memory_bytes is None:
            found.append("memory missing: excluded from sizing")
        if machine.country is None:
            found.append("country unknown")
        return "; ".join(found) or "none"

    # --- One machine ---

    @admin.display(description="sold for")
    def packages(self, machine: Machine) -> SafeString | str:
        """The packages as saved, or as they stand in a form that is previewed."""
        if not machine.packages:
            return "Shown once there is a price: press Preview." if machine.pk is None else "no term"
        rows = [
            (package.days, usd(to_cents(package.price_usd)), usd(package.hourly_usd)) for package in machine.packages
        ]
        body = format_html_join("", "<tr><th scope='row'>{} days</th><td>{}</td><td>{} / h</td></tr>", rows)
        return format_html("<table><tbody>{}</tbody></table>", body)

    def previewed(self, request: HttpRequest, button: str, data: QueryDict) -> None:
        if button == "_pro_rata" and not fill_pro_rata(data):
            messages.error(request, "Write the price for 7 days first: an amount above 0 in whole cents.")

    def get_readonly_fields(self, request: HttpRequest, obj: Machine | None = None) -> tuple[str, ...]:
        own = tuple(self.readonly_fields)
        return (*own, *SYNCED_FIELDS) if obj and obj.pk and obj.provider.has_feed else own

    def save_model(self, request: HttpRequest, obj: Machine, form: Any, change: bool) -> None:
        """Save all but the stock: lots move in a statement of their own, for orders change them at the same time."""
        obj._change_reason = form.cleaned_data.get("change_reason") or None  # type: ignore[attr-defined]
        if not change:
            obj.free_lots = obj.lots
            obj.save()
            return
        try:
            change_lots(obj.pk, obj.lots)
        except LotsUnderRent as error:
            # An order came between the form's check and here.
            messages.error(request, f"The lots were left as they are: {error}")
        obj.refresh_from_db(fields=["lots", "free_lots"])
        kept = {"id", "lots", "free_lots"}
        obj.save(update_fields=[field.name for field in obj._meta.concrete_fields if field.name not in kept])

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Refuse to delete a machine under rent, on the page that asks whether to delete."""
        to_delete, counts, missing, protected = super().get_deleted_objects(objs, request)
        for machine in objs:
            if machine.free_lots < machine.lots:
                rented = machine.lots - machine.free_lots
                protected.append(f"{machine}: {rented} of its lots are not free. Unlist it instead.")
        return to_delete, counts, missing, protected

    # --- Many machines ---

    @admin.action(description="Mark off-line (give a reason)")
    def mark_off_line(self, request: HttpRequest, queryset: MachineQuerySet) -> None:
        reason = request.POST.get("reason", "").strip()
        if not reason:
            messages.error(request, "Write a reason beside the action: it goes into the history of each machine.")
            return
        self._set_online(request, queryset, online=False, reason=reason)

    @admin.action(description="Mark on-line")
    def mark_on_line(self, request: HttpRequest, queryset: MachineQuerySet) -> None:
        self._set_online(request, queryset, online=True, reason="Marked on-line")

    def _set_online(self, request: HttpRequest, queryset: MachineQuerySet, *, online: bool, reason: str) -> None:
        changed, synced = 0, 0
        for machine in queryset.select_related("provider"):
            if machine.provider.has_feed:
                synced += 1
            elif machine.online != online:
                machine.online = online
                machine._change_reason = reason
                machine.save(update_fields=["online", "updated_at"])
                changed += 1
        messages.success(request, f"Machines now {'on-line' if online else 'off-line'}: {changed}.")
        if synced:
            messages.warning(request, f"Left alone, because a feed says whether they are on-line: {synced}.")


@admin.register(Option)
class OptionAdmin(SimpleHistoryAdmin):
    list_display = ("name", "slug", "price_per_lot_day_usd", "max_quantity", "listed")
    list_filter = ("listed",)
    search_fields = ("name", "slug", "description")


def _price(package: Package) -> str:
    return format_html("{} ({}/h)", usd(package.price_usd), usd(package.hourly_usd))
