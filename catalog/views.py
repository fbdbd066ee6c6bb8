"""The public pages of the catalog: machines, one machine, and two texts."""

from dataclasses import dataclass
from datetime import datetime

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from catalog import wording
from catalog.forms import SORTS, CatalogFilter
from catalog.freshness import checked_lists
from catalog.models import Availability, Machine
from catalog.parameters import without_parameters
from catalog.pricing import Package
from catalog.programs import Call, Program

MACHINES_A_PAGE = 25


@dataclass(frozen=True)
class _Row:
    """A machine as the table shows it at one instant."""

    machine: Machine
    availability: Availability
    seen: str
    week: Package | None
    month: Package | None
    trial: Package | None

    @classmethod
    def of(cls, machine: Machine, now: datetime) -> "_Row":
        week, month, trial = (machine.package(days) for days in (7, 30, 3))
        return cls(machine, machine.availability(now), wording.seen(machine, now), week, month, trial)


@require_safe
def catalog(request: HttpRequest) -> HttpResponse:
    """Listed machines with filters; the address is the whole state of the page."""
    form, now = CatalogFilter(request.GET), timezone.now()
    page, rows = None, []
    if form.is_valid():
        paginator = Paginator(form.machines(now).with_facts(), MACHINES_A_PAGE)
        wanted = form.cleaned_data["page"] or 1
        if wanted > paginator.num_pages:
            form.add_error("page", f"There is no page {wanted:,}; the last is {paginator.num_pages:,}.")
        else:
            page = paginator.page(wanted)
            rows = [_Row.of(machine, now) for machine in page]
    context = {
        "form": form,
        "page": page,
        "rows": rows,
        "checked": checked_lists((row.machine.provider for row in rows), now),
        "term_days": form.chosen_days,
        "order": SORTS.get(form.data["sort"], ""),
    }
    return render(request, "catalog/catalog.html", context, status=400 if form.unknown_names else 200)


@require_safe
@without_parameters
def machine(request: HttpRequest, machine_id: int) -> HttpResponse:
    """One listed machine with all its facts, its prices and its limits."""
    found = get_object_or_404(Machine.objects.listed().with_facts(), pk=machine_id)
    now = timezone.now()
    availability = found.availability(now)
    context = {
        "machine": found,
        "availability": availability,
        "seen": wording.seen(found, now),
        "can_order": availability == Availability.AVAILABLE,
        "limits": wording.limits(found),
        "program": Program(Call(request.build_absolute_uri(reverse("api-machine", args=[found.pk])))),
    }
    return render(request, "catalog/machine.html", context)


@require_safe
@without_parameters
def help_tiers(request: HttpRequest) -> HttpResponse:
    return render(request, "catalog/help_tiers.html")


@require_safe
@without_parameters
def glossary(request: HttpRequest) -> HttpResponse:
    return render(request, "catalog/glossary.html")
