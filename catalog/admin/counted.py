"""Rows that say how many machines they have, and cannot be deleted while they have any."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from catalog.models import Machine


class CountsMachines(admin.ModelAdmin):
    """Lists the number of machines; `machine_field` is the name of the machine's reference to these rows."""

    machine_field: str

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        # Counted for the list alone: a form, or a field that completes what one types, does not show it.
        if not (request.resolver_match and (request.resolver_match.url_name or "").endswith("_changelist")):
            return rows
        own = Machine.objects.filter(**{self.machine_field: OuterRef("pk")}).order_by().values(self.machine_field)
        return rows.annotate(machines_counted=Coalesce(Subquery(own.annotate(n=Count("pk")).values("n")), 0))

    @admin.display(description="machines", ordering="machines_counted")
    def machine_count(self, row: Any) -> int:
        return row.machines_counted

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Say how many machines stand in the way, instead of loading a hundred thousand of them to list them."""
        rows: list[Model] = list(objs[:100])
        machines = Machine.objects.filter(**{f"{self.machine_field}__in": rows}).count()
        if machines:
            return rows, {}, set(), [f"{machines:,} {'machine' if machines == 1 else 'machines'}"]
        return super().get_deleted_objects(objs, request)
