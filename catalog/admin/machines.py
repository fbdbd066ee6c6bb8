"""Machines: a list that stays fast with a hundred thousand of them, one machine's form, and what is done to many."""

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import smart_split, unescape_string_literal
from simple_history.admin import SimpleHistoryAdmin

from catalog import wording
from catalog.admin.bulk import BulkChange, ReasonForm, change_listed, change_online, most_at_once
from catalog.admin.files import KeepsFiles
from catalog.admin.filters import CountryFilter, GpuFilter, ProviderFilter
from catalog.admin.forms import MachineForm, fill_pro_rata
from catalog.admin.preview import PreviewsForm, computed_from
from catalog.admin.problems import ProblemFilter, problems_of
from catalog.importing.machines import MachineTable
from catalog.models import FeedAbsence, FeedQuestion, Gpu, Machine, Provider
from catalog.pricing import Package, to_cents
from catalog.querysets import MachineQuerySet
from catalog.stock import LotsUnderRent, change_lots
from catalog.templatetags.units import gib, usd
from catalog.visible import has_something_to_see

# What a feed says of a machine: staff may read it, the next refresh writes it.
SYNCED_FIELDS = (
    "name", "provider", "gpu", "gpu_count", "tier", "country", "memory_figure", "memory_unit", "memory_source",
    "interruptible", "max_term_days", "lots", "online",
    "hourly_usd", "price_3_days_usd", "price_7_days_usd", "price_30_days_usd",
)  # fmt: skip
# Of these, what staff may take over from a list with stricter terms, so that the lots beside rented ones are sold.
TERMS = (
    "interruptible", "max_term_days", "hourly_usd", "price_3_days_usd", "price_7_days_usd", "price_30_days_usd",
)  # fmt: skip


@admin.register(Machine)
class MachineAdmin(KeepsFiles, PreviewsForm, SimpleHistoryAdmin):
    table = MachineTable
    form = MachineForm
    preview_buttons = (
        ("_preview", "Preview the prices"),
        ("_pro_rata", "Fill in 3 and 30 days pro rata from the price for 7 days"),
    )
    previewed_parts = ("packages", "memory_counted")
    list_display = (
        "name", "problems", "gpu_and_count", "tier", "memory_short", "country", "lots_free", "week", "month", "listed",
        "online", "provider", "memory_source", "last_seen",
    )  # fmt: skip
    empty_value_display = "unknown"
    list_filter = (
        ProblemFilter, "tier", "listed", "online", "memory_source", "interruptible", ProviderFilter, CountryFilter,
        GpuFilter,
    )  # fmt: skip
    list_select_related = ("gpu", "provider", "feed_absence")
    list_per_page = 50
    # By the key, which needs no sorting; the count of all is not asked for beside the count of what was found.
    ordering = ("-id",)
    show_full_result_count = False
    # What is searched is in `get_search_results`; here it says that there is a search.
    search_fields = ("name",)
    search_help_text = "Each word in the machine's, its provider's or its GPU's name, an offer's id, or a country code."
    autocomplete_fields = ("provider", "gpu")
    action_form = ReasonForm
    actions = ("mark_off_line", "mark_on_line", "put_on_the_pages", "take_off_the_pages")
    readonly_fields = ("free_lots", "memory_counted", "packages", "problems", "updated_at")
    fieldsets = (
        (None, {"fields": ("name", "provider", "gpu", "gpu_count", "tier", "country", "problems")}),
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
    @computed_from("memory_figure", "memory_unit")
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
    @computed_from()
    def problems(self, machine: Machine) -> str:
        if machine.pk is None:
            return "told once it is saved"
        return "; ".join(problems_of(machine, timezone.now())) or "none"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Machine], search_term: str
    ) -> tuple[QuerySet[Machine], bool]:
        """Every word somewhere. GPUs and providers are few: they are found first, so that no join is searched."""
        for bit in smart_split(search_term):
            word = unescape_string_literal(bit) if bit[:1] in "\"'" and bit[:1] == bit[-1:] and len(bit) > 1 else bit
            gpus = Gpu.objects.filter(
                Q(name__icontains=word) | Q(slug__icontains=word) | Q(aliases__name__icontains=word)
            )
            providers = Provider.objects.filter(Q(name__icontains=word) | Q(slug__icontains=word))
            found = Q(name__icontains=word) | Q(gpu__in=gpus.values("pk")) | Q(provider__in=providers.values("pk"))
            found |= Q(external_id=word)
            if len(word) == 2:
                found |= Q(country=word.upper())
            queryset = queryset.filter(found)
        return queryset, False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        open_questions = FeedQuestion.objects.filter(resolved_at=None).count()
        return super().changelist_view(request, {"open_questions": open_questions, **(extra_context or {})})

    # --- One machine ---

    @admin.display(description="sold for")
    @computed_from("hourly_usd", "price_3_days_usd", "price_7_days_usd", "price_30_days_usd", "max_term_days")
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
        if not (obj and obj.pk and obj.provider.has_feed):
            return own
        stricter = obj.absence is not None and obj.absence.why == FeedAbsence.Why.TERMS
        return (*own, *(name for name in SYNCED_FIELDS if not (stricter and name in TERMS)))

    def save_model(self, request: HttpRequest, obj: Machine, form: Any, change: bool) -> None:
        """Save what stands in the form and nothing else: of a machine with a feed, its list writes the rest meanwhile.

        Lots move in a statement of their own, for orders change them at the same time.
        """
        obj._change_reason = form.cleaned_data.get("change_reason") or None  # type: ignore[attr-defined]
        if not change:
            obj.free_lots = obj.lots
            obj.save()
            return
        if "lots" in form.fields:
            try:
                change_lots(obj.pk, obj.lots)
            except LotsUnderRent as error:
                # An order came between the form's check and here.
                messages.error(request, f"The lots were left as they are: {error}")
        if any(name in request.POST and name not in form.fields for name in TERMS):
            said = f"The terms were left as they are: the list of {obj.provider} keeps them again."
            messages.warning(request, said)
        computed = {"memory_figure": "gpu_memory_bytes"}
        own = {computed.get(name, name) for name in form.fields} - {"lots"} | {"updated_at"}
        names = {field.name for field in obj._meta.concrete_fields}
        obj.refresh_from_db(fields=names - own - {"id", "provider"})
        obj.save(update_fields=names & own)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Refuse to delete a machine under rent, on the page that asks whether to delete."""
        if refused := most_at_once(objs):
            return [], {}, set(), [refused]
        to_delete, counts, missing, protected = super().get_deleted_objects(objs, request)
        for machine in objs:
            if machine.free_lots < machine.lots:
                rented = machine.lots - machine.free_lots
                protected.append(f"{machine}: {rented} of its lots are not free. Unlist it instead.")
        return to_delete, counts, missing, protected

    # --- Many machines ---

    @admin.action(description="Mark off-line", permissions=["change"])
    def mark_off_line(self, request: HttpRequest, queryset: MachineQuerySet) -> None:
        self._change(request, queryset, change_online, False, "off-line")

    @admin.action(description="Mark on-line", permissions=["change"])
    def mark_on_line(self, request: HttpRequest, queryset: MachineQuerySet) -> None:
        self._change(request, queryset, change_online, True, "on-line")

    @admin.action(description="List on the pages", permissions=["change"])
    def put_on_the_pages(self, request: HttpRequest, queryset: MachineQuerySet) -> None:
        self._change(request, queryset, change_listed, True, "listed")

    @admin.action(description="Take off the pages", permissions=["change"])
    def take_off_the_pages(self, request: HttpRequest, queryset: MachineQuerySet) -> None:
        self._change(request, queryset, change_listed, False, "unlisted")

    def _change(
        self, request: HttpRequest, queryset: MachineQuerySet, change: BulkChange, value: bool, word: str
    ) -> None:
        reason = request.POST.get("reason", "").strip()[:100]
        if not has_something_to_see(reason):
            messages.error(request, "Write a reason beside the action: it goes into the history of each machine.")
            return
        done = change(queryset, value, user=cast(User, request.user), reason=reason, now=timezone.now())
        messages.success(request, f"Machines now {word}: {done.changed:,}.")
        if done.same:
            messages.info(request, f"They were so before: {done.same:,}.")
        if done.synced:
            messages.warning(request, f"Left alone, because a feed says whether they are on-line: {done.synced:,}.")


def _price(package: Package) -> str:
    return format_html("{} ({}/h)", usd(package.price_usd), usd(package.hourly_usd))
