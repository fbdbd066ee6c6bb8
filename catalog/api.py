"""The catalog over the REST API: everybody may read it, without a key."""

from typing import Any, cast

from django.db.models import BigIntegerField, Value
from django.db.models.functions import Coalesce
from django.forms import ChoiceField
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ErrorDetail
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import api_schemas as schemas
from catalog.api_queries import PAGING, ListQuery, refuse_parameters
from catalog.api_view import ApiView
from catalog.documents import gpu_document, listing_document, option_document
from catalog.forms import TERMS, CatalogFilter
from catalog.models import SLUG, Gpu, Machine, Option, Tier
from catalog.querysets import MachineQuerySet

# What the page filters by; it pages by numbers, the API by cursors.
MACHINE_FILTERS = tuple(name for name in CatalogFilter.base_fields if name != "page")


class GpusView(ApiView):
    """GPU products, by name."""

    is_catalog = True

    @extend_schema(
        operation_id="list_gpus", parameters=schemas.PAGING, responses=schemas.answers(schemas.GpuList, cached=True)
    )
    def get(self, request: Request) -> Response:
        return ListQuery(request).respond(Gpu.objects.all(), ("name", "id"), gpu_document, name="gpus")


class GpuView(ApiView):
    """One GPU product."""

    is_catalog = True

    @extend_schema(operation_id="get_gpu", responses=schemas.answers(schemas.Gpu, 404, cached=True))
    def get(self, request: Request, slug: str) -> Response:
        refuse_parameters(request)
        return Response(gpu_document(_of_slug(Gpu.objects.all(), slug)))


class OptionsView(ApiView):
    """What can be ordered beside a machine, by name."""

    is_catalog = True

    @extend_schema(
        operation_id="list_options",
        parameters=schemas.PAGING,
        responses=schemas.answers(schemas.OptionList, cached=True),
    )
    def get(self, request: Request) -> Response:
        rows = Option.objects.filter(listed=True)
        return ListQuery(request).respond(rows, ("name", "id"), option_document, name="options")


class OptionView(ApiView):
    """One option."""

    is_catalog = True

    @extend_schema(operation_id="get_option", responses=schemas.answers(schemas.Option, 404, cached=True))
    def get(self, request: Request, slug: str) -> Response:
        refuse_parameters(request)
        return Response(option_document(_of_slug(Option.objects.filter(listed=True), slug)))


class MachinesView(ApiView):
    """Listed machines that are sold for the term, with the filters of the catalog page."""

    is_catalog = True

    @extend_schema(
        operation_id="list_machines",
        parameters=schemas.MACHINE_FILTERS + schemas.PAGING,
        responses=schemas.answers(schemas.MachineList, cached=True),
    )
    def get(self, request: Request) -> Response:
        now = timezone.now()
        query = ListQuery(request, MACHINE_FILTERS, repeatable=("countries",))
        for name in MACHINE_FILTERS:
            if "" in request.query_params.getlist(name):
                query.refuse(name, f"“{name}” is empty: give a value, or leave it out.", "required")
        filters = request.query_params.copy()
        for name in {*PAGING, *query.errors} - {"countries"}:
            filters.pop(name, None)
        form = CatalogFilter(filters)
        _accept_every_word(form)
        for name, errors in form.errors.get_json_data().items():
            for error in errors if name in form.fields else []:
                query.errors.setdefault(name, []).append(ErrorDetail(error["message"], error["code"] or "invalid"))
        query.raise_errors()
        machines, ordering = _in_order(form.machines(now), form.cleaned_data["sort"], form.cleaned_data["term_days"])
        return query.respond(
            machines.with_facts(), ordering, lambda machine: listing_document(machine, now), name="machines"
        )


class MachineView(ApiView):
    """One listed machine."""

    is_catalog = True

    @extend_schema(operation_id="get_machine", responses=schemas.answers(schemas.Machine, 404, cached=True))
    def get(self, request: Request, machine_id: int) -> Response:
        refuse_parameters(request)
        machine = Machine.objects.listed().with_facts().filter(pk=machine_id).first()
        if machine is None:
            raise Http404
        return Response(listing_document(machine, timezone.now()))


def _of_slug(rows: Any, slug: str) -> Any:
    # The pattern first: PostgreSQL refuses a text with a NUL byte outright.
    row = rows.filter(slug=slug).first() if SLUG.match(slug) else None
    if row is None:
        raise Http404
    return row


def _accept_every_word(form: CatalogFilter) -> None:
    """A page offers what has results; to a program a word of the vocabulary is never wrong, it may find nothing."""
    tiers = [("", "Any"), ("any", "Any"), *Tier.choices]
    cast(ChoiceField, form.fields["tier"]).choices = tiers
    cast(ChoiceField, form.fields["term_days"]).choices = list(TERMS.items())


def _in_order(machines: MachineQuerySet, sort: str, days: int) -> tuple[MachineQuerySet, tuple[str, ...]]:
    price = f"price_{days}_days_usd"
    match sort:
        case "-memory":
            known = Coalesce("gpu_memory_bytes", Value(-1), output_field=BigIntegerField())
            return machines.annotate(known_memory=known), ("-known_memory", price, "id")
        case "name":
            return machines, ("name", "id")
        case "-price":
            return machines, (f"-{price}", "id")
    return machines, (price, "id")
