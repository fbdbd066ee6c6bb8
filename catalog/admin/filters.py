"""Filters of lists whose choices stay few, whatever the table grows to."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest

from catalog import countries
from catalog.admin_refusing import is_row_number
from catalog.models import Gpu, Machine, Provider

MOST_CHOICES = 100
# Dozens of choices stay folded until one is chosen.
CLOSED = "admin/catalog/closed_filter.html"
UNKNOWN = "unknown"


class CountryFilter(admin.SimpleListFilter):
    """The countries that machines are in, and the unknown."""

    title = "country"
    template = CLOSED
    parameter_name = "country"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        codes = Machine.objects.exclude(country=None).order_by().values_list("country", flat=True).distinct()
        names = countries.names()
        named = sorted((names.get(code, code), code) for code in codes if code)
        return [(UNKNOWN, "Unknown"), *((code, f"{name} ({code})") for name, code in named)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Machine]) -> QuerySet[Machine]:
        if self.value() is None:
            return queryset
        return queryset.filter(country=None if self.value() == UNKNOWN else self.value())


class _OfMachines(admin.SimpleListFilter):
    """The rows that have machines; when they are more than a list of links can be, the search finds the others."""

    model: type[Gpu | Provider]
    template = CLOSED

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        used = Exists(Machine.objects.filter(**{str(self.parameter_name): OuterRef("pk")}))
        rows = self.model._default_manager.filter(used).order_by("name").values_list("pk", "name")
        return [(str(number), name) for number, name in rows[:MOST_CHOICES]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Machine]) -> QuerySet[Machine]:
        value = self.value()
        if value is None:
            return queryset
        if not is_row_number(value):
            return queryset.none()
        return queryset.filter(**{f"{self.parameter_name}_id": int(value)})


class ProviderFilter(_OfMachines):
    title = "provider"
    parameter_name = "provider"
    model = Provider


class GpuFilter(_OfMachines):
    title = "GPU"
    parameter_name = "gpu"
    model = Gpu
