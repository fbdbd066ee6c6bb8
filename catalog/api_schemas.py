"""The shapes of the catalog's answers for the OpenAPI document, and what every resource's description shares.

These serializers describe; the documents themselves are made by `catalog.documents`.
"""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from catalog import countries
from catalog.models import Availability, MemorySource, Tier
from catalog.paging import DEFAULT_LIMIT, MAX_LIMIT
from catalog.pricing import TERMS_DAYS

# --- Shared -------------------------------------------------------------------------------------------------------

STATUSES = {
    400: "Something in the request is not valid; `errors` names each field.",
    401: "No valid key.",
    403: "The key lacks the scope, which the detail names, or the organization's policy does not allow it.",
    404: "There is no such thing, or it is not yours.",
    409: "What was asked cannot be had as things are now; `code` says why.",
    413: "The body is larger than 1 MiB.",
    415: "The body is not JSON.",
    422: "The idempotency key was used for another request; `errors` names the fields that differ.",
    429: "Too many requests; `Retry-After` says when to come again.",
    500: "The fault is ours.",
    503: "Not available at the moment; nothing was done. Come again after `Retry-After`.",
}


class ProblemField(serializers.Serializer[Any]):
    field = serializers.CharField(help_text="Dotted path of the field in the request.")
    code = serializers.CharField()
    detail = serializers.CharField()


class Problem(serializers.Serializer[Any]):
    """RFC 9457 problem details. Programs act on `code`; it is stable."""

    type = serializers.URLField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    errors = ProblemField(many=True)  # type: ignore[assignment]  # the name is a property of serializers
    request_id = serializers.CharField(help_text="The operator finds the request in the log by it.")
    available_lots = serializers.IntegerField(required=False, help_text="With `sold_out`: lots free now.")
    existing_id = serializers.IntegerField(
        required=False, help_text="With `already_exists`: the id of the one that is there."
    )
    old_total_usd = serializers.CharField(required=False, help_text="With `price_changed`: the total that was sent.")
    new_total_usd = serializers.CharField(required=False, help_text="With `price_changed`: the total now.")
    offered_term_days = serializers.ListField(
        child=serializers.IntegerField(), required=False, help_text="With `term_not_offered`."
    )
    rule = serializers.CharField(required=False, help_text="With `policy`: the rule that was broken.")


def answers(shape: Any, *refusals: int, status: int = 200, body: bool = False, cached: bool = False) -> dict[Any, Any]:
    """The answers of one operation: its own, and the refusals that are documented for it.

    `cached` is for what may be asked for again by its ETag.
    """
    always = (400, 401, 413, 415, 429, 500, 503) if body else (400, 401, 429, 500, 503)
    found: dict[Any, Any] = {status: shape}
    if cached:
        found[304] = OpenApiResponse(description="Nothing has changed since the answer with the `If-None-Match` tag.")
    for number in sorted({*always, *refusals}):
        found[number, "application/problem+json"] = OpenApiResponse(Problem, description=STATUSES[number])
    return found


def money(**options: Any) -> serializers.RegexField:
    """USD as text with two decimals."""
    return serializers.RegexField(r"^\d+\.\d{2}$", **options)


def hourly(**options: Any) -> serializers.RegexField:
    """USD per hour as text with four decimals."""
    return serializers.RegexField(r"^\d+\.\d{4}$", **options)


def page_of(shape: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The envelope of a list."""
    fields = {
        "results": shape(many=True),
        "next": serializers.URLField(allow_null=True, help_text="The address of the next page; null on the last."),
    }
    return type(f"{shape.__name__}List", (serializers.Serializer,), fields)


PAGING = [
    OpenApiParameter("cursor", str, description="From `next` of the page before."),
    OpenApiParameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
        description="Rows a page.",
    ),
]  # fmt: skip
MACHINE_FILTERS = [
    OpenApiParameter("tier", enum=["any", *Tier.values], description="The tier."),
    OpenApiParameter("gpu", str, description="Slug of a GPU."),
    OpenApiParameter(
        "gpu_count", {"type": "integer", "minimum": 1, "maximum": 16}, description="GPUs per machine."
    ),
    OpenApiParameter(
        "memory_class_gb", {"type": "integer", "minimum": 1, "maximum": 9999},
        description="Datasheet memory per GPU in GB, at least.",
    ),
    OpenApiParameter(
        "min_memory_gib", {"type": "string", "pattern": r"^[0-9]{1,6}(\.[0-9]{1,3})?$"},
        description="Memory counted per GPU, at least.",
    ),
    OpenApiParameter(
        "max_usd", {"type": "string", "pattern": r"^(?!0+(\.0+)?$)[0-9]{1,10}(\.[0-9]{1,2})?$"},
        description="Package price for the term, at most.",
    ),
    OpenApiParameter(
        "term_days", {"type": "integer", "enum": list(TERMS_DAYS)},
        description="Machines sold for this term; 7 by default.",
    ),
    OpenApiParameter("available", enum=["true", "false"], description="Only what can be had now."),
    OpenApiParameter(
        "countries", {"type": "array", "items": {"type": "string", "enum": [countries.EU, *sorted(countries.names())]}},
        description="Country codes, or EU.",
    ),
    OpenApiParameter("sort", enum=["price", "-price", "-memory", "name"], description="The order."),
]  # fmt: skip

# --- The catalog --------------------------------------------------------------------------------------------------


class Gpu(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    vendor = serializers.CharField()
    architecture = serializers.CharField(allow_null=True)
    form_factor = serializers.CharField(allow_null=True)
    devices_per_card = serializers.IntegerField()
    memory_type = serializers.CharField(allow_null=True)
    memory_gb_nominal = serializers.IntegerField(allow_null=True)
    memory_mib_reported = serializers.IntegerField(allow_null=True)
    memory_bandwidth_gb_s = serializers.CharField(allow_null=True)
    compute_capability = serializers.CharField(allow_null=True)
    bf16 = serializers.BooleanField(allow_null=True)
    fp8 = serializers.BooleanField(allow_null=True)
    sources = serializers.ListField(child=serializers.CharField())
    html_url = serializers.URLField()


class Sentence(serializers.Serializer[Any]):
    """A stable code and its words."""

    code = serializers.CharField()
    text = serializers.CharField()


class Option(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    price_per_lot_day_usd = serializers.RegexField(r"^\d+\.\d{2,6}$")
    max_quantity = serializers.IntegerField()
    html_url = serializers.URLField()


class TermPrices(serializers.Serializer[Any]):
    """USD for one lot, by the days of the term; null where the machine is not sold for it."""

    def get_fields(self) -> dict[str, Any]:
        return {str(days): money(allow_null=True) for days in TERMS_DAYS}


class HourlyPrices(serializers.Serializer[Any]):
    """The package prices divided by their hours."""

    def get_fields(self) -> dict[str, Any]:
        return {str(days): hourly(allow_null=True) for days in TERMS_DAYS}


class MachineFacts(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    provider = serializers.CharField()
    tier = serializers.ChoiceField(Tier.choices)
    country = serializers.CharField(allow_null=True, help_text="ISO 3166-1 alpha-2; null when unknown.")
    gpu = serializers.CharField(help_text="Slug of the GPU.")
    gpu_count = serializers.IntegerField()
    memory_bytes_per_gpu = serializers.IntegerField(allow_null=True)
    memory_source = serializers.ChoiceField(MemorySource.choices, allow_null=True)
    free_lots = serializers.IntegerField()
    interruptible = serializers.BooleanField()
    max_term_days = serializers.IntegerField(allow_null=True)
    prices_usd = TermPrices()
    html_url = serializers.URLField()


class Machine(MachineFacts):
    provider_invented = serializers.BooleanField(help_text="A demo provider: the machine does not exist.")
    memory_gib_per_gpu = serializers.CharField(allow_null=True)
    lots = serializers.IntegerField()
    cards = serializers.IntegerField()
    availability = serializers.ChoiceField(Availability.choices)
    checked_at = serializers.DateTimeField(
        allow_null=True, help_text="Its provider's last list that was read with success; null: set by the operator."
    )
    package_hourly_usd = HourlyPrices()


GpuList, OptionList, MachineList = page_of(Gpu), page_of(Option), page_of(Machine)
