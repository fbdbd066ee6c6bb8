"""The shapes of the tenant's requests and answers for the OpenAPI document.

These serializers describe; bodies are read by `rentals.api.bodies`, documents are made by `rentals.documents`.
"""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from catalog.api_schemas import Sentence, money, page_of
from catalog.models import MemorySource, Tier
from catalog.pricing import TERMS_DAYS
from rentals.baskets import MAX_LOTS, MAX_NOTES
from rentals.models import Allocation as AllocationRow
from rentals.models.api_keys import Scope
from rentals.models.orders import Environment as EnvironmentName
from rentals.models.orders import Status
from rentals.models.organizations import Role
from rentals.planner import MAX_DAYS
from sizing.api_schemas import AnyValue, Confidence, MemoryBlock, Workload

_MAX_ID = 2**63 - 1
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$"},
    OpenApiParameter.HEADER,
    required=True,
    description="A value of your own for each order. Repeating the request with it never orders twice.",
)
MONTH = OpenApiParameter(
    "month", {"type": "string", "pattern": "^(2[0-9]{3})-(0[1-9]|1[0-2])$"},
    description="A calendar month in UTC; the present one by default.",
)  # fmt: skip
ORDER_FILTERS = [
    OpenApiParameter("state", enum=Status.values, description="The state of the order now."),
    OpenApiParameter(
        "machine", {"type": "integer", "minimum": 1, "maximum": _MAX_ID}, description="Id of the machine."
    ),
    OpenApiParameter("created_from", OpenApiTypes.DATETIME, description="Placed at this moment or later."),
    OpenApiParameter("created_before", OpenApiTypes.DATETIME, description="Placed before this moment."),
]


class ChosenOption(serializers.Serializer[Any]):
    option = serializers.CharField(min_length=1, max_length=64, help_text="Slug of the option.")
    quantity = serializers.IntegerField(min_value=1, default=1)


class QuoteRequest(serializers.Serializer[Any]):
    machine = serializers.IntegerField(min_value=1, max_value=_MAX_ID, help_text="Id of the machine.")
    term_days = serializers.ChoiceField(TERMS_DAYS)
    lots = serializers.IntegerField(min_value=1, max_value=MAX_LOTS, default=1)
    options = ChosenOption(many=True, required=False)


class OrderedWorkload(Workload):
    """The workload of an order: a model of the catalog, one of your organization's own, or a shape."""

    config = safetensors_index = name = None  # type: ignore[assignment]


class Environment(serializers.Serializer[Any]):
    """A preparation preference, not a guarantee."""

    preset = serializers.ChoiceField(EnvironmentName.choices, default=EnvironmentName.OTHER.value)
    notes = serializers.CharField(max_length=MAX_NOTES, default="", allow_blank=True)


class WantedEnvironment(Environment):
    """What is to be prepared on the lots: a preference, not a guarantee."""

    preset = serializers.ChoiceField(EnvironmentName.choices, required=False)
    notes = serializers.CharField(max_length=MAX_NOTES, required=False, help_text="For who prepares it; plain text.")


class OrderRequest(QuoteRequest):
    expected_total_usd = serializers.RegexField(
        r"^\d{1,10}(\.\d{1,2})?$", help_text="The total you expect; another total now is `price_changed`."
    )
    environment = WantedEnvironment(required=False, allow_null=True)
    community_acknowledged = serializers.BooleanField(
        default=False, help_text="For Community machines: you know that the provider can read the session's memory."
    )
    misfit_acknowledged = serializers.BooleanField(
        default=False, help_text="Needed where the workload does not fit the machine."
    )
    workload = OrderedWorkload(
        required=False,
        allow_null=True,
        help_text="As for POST /sizing; its sizing answer for this machine is kept with the order.",
    )


class Line(serializers.Serializer[Any]):
    code = serializers.ChoiceField(["package", "option"])
    description = serializers.CharField()
    option = serializers.CharField(required=False)
    quantity = serializers.IntegerField(required=False)
    unit_usd = money(help_text="For one lot and the whole term.")
    lots = serializers.IntegerField()
    amount_usd = money()


class Quote(serializers.Serializer[Any]):
    machine = serializers.IntegerField()
    term_days = serializers.IntegerField()
    lots = serializers.IntegerField()
    cards = serializers.IntegerField()
    lines = Line(many=True)
    total_usd = money()
    html_url = serializers.URLField()


class PlanRequest(serializers.Serializer[Any]):
    """One of `days`, `until` and `budget_usd`."""

    machine = serializers.IntegerField(min_value=1, max_value=_MAX_ID, help_text="Id of the machine.")
    lots = serializers.IntegerField(min_value=1, max_value=MAX_LOTS, required=False, help_text="1 by default.")
    days = serializers.IntegerField(min_value=1, max_value=MAX_DAYS, required=False, help_text="For so many days.")
    until = serializers.DateField(required=False, help_text="To the end of that day in UTC, within ten years.")
    budget_usd = serializers.RegexField(
        r"^(?!0+(\.0+)?$)[0-9]{1,10}(\.[0-9]{1,2})?$", required=False, help_text="The longest it pays for."
    )


class PlannedTerms(serializers.Serializer[Any]):
    term_days = serializers.IntegerField()
    orders = serializers.IntegerField(help_text="How many orders of this term.")
    price_usd = money(help_text="Of each order: all lots, one term.")
    amount_usd = money()


class CountedTerms(serializers.Serializer[Any]):
    term_days = serializers.IntegerField()
    orders = serializers.IntegerField()


class FewestOrders(serializers.Serializer[Any]):
    """The plan with the fewest orders, where that one costs more."""

    terms = CountedTerms(many=True)
    days = serializers.IntegerField()
    total_usd = money()
    extra_usd = money(help_text="How much more it costs.")
    text = serializers.CharField()


class Plan(serializers.Serializer[Any]):
    """Fixed terms one after the other, at today's prices. Nothing is ordered, stored or reserved."""

    machine = serializers.IntegerField()
    lots = serializers.IntegerField()
    days = serializers.IntegerField(help_text="How long all terms last together.")
    total_usd = money()
    orders = serializers.IntegerField(help_text="Each term is an order of its own.")
    terms = PlannedTerms(many=True, help_text="The longest first.")
    starts_at = serializers.DateTimeField(help_text="Now.")
    ends_at = serializers.DateTimeField(help_text="If started now, without gaps.")
    longer_text = serializers.CharField(
        allow_null=True, help_text="By how much it is longer than asked; null for a budget."
    )
    left_usd = money(allow_null=True, help_text="What is left of the budget; null without one.")
    fewest = FewestOrders(allow_null=True)
    notes = serializers.ListField(child=serializers.CharField())
    html_url = serializers.URLField()


class SoldMachine(serializers.Serializer[Any]):
    """The machine as it was sold; never read again from the catalog."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    provider = serializers.CharField()
    provider_invented = serializers.BooleanField()
    tier = serializers.ChoiceField(Tier.choices)
    country = serializers.CharField(allow_null=True)
    gpu = serializers.CharField()
    gpu_name = serializers.CharField()
    gpu_count = serializers.IntegerField()
    memory_bytes_per_gpu = serializers.IntegerField(allow_null=True)
    memory_source = serializers.ChoiceField(MemorySource.choices, allow_null=True)
    memory_text = serializers.CharField()
    interruptible = serializers.BooleanField()
    html_url = serializers.URLField(help_text="Its page in the catalog, while it is listed.")


class LotConnection(serializers.Serializer[Any]):
    """How a lot is reached."""

    host = serializers.CharField(help_text="A name or an IP address.")
    port = serializers.IntegerField(min_value=1, max_value=65535)
    user = serializers.CharField()
    notes = serializers.CharField(allow_blank=True, help_text="From who prepared it.")
    changed_at = serializers.DateTimeField(help_text="When it was handed over, or last corrected.")


class Lot(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    state = serializers.ChoiceField(
        AllocationRow.State.choices,
        help_text="What was asked of it: to run, or to be stopped. Until `delivered_at` it is being prepared.",
    )
    status_text = serializers.CharField(help_text="In the page's words: Preparing, Running or Stopped.")
    delivered_at = serializers.DateTimeField(allow_null=True, help_text="Null until staff hand it over.")
    connection = LotConnection(
        allow_null=True,
        required=False,
        help_text="In `GET /orders/{id}` alone. Null before the handing-over, after the order's end, and for a key "
        "without the scope `order` or where owners alone order.",
    )


class Allocation(Lot):
    """One lot of an order."""

    order = serializers.UUIDField()
    html_url = serializers.URLField()


class SizedModel(serializers.Serializer[Any]):
    slug = serializers.CharField(allow_blank=True)
    name = serializers.CharField()
    url = serializers.CharField(allow_blank=True)


class OrderSizing(serializers.Serializer[Any]):
    """The sizing answer that an order was bought for, as it was then."""

    headline = serializers.CharField()
    workload = serializers.DictField(child=AnyValue())
    model = SizedModel(allow_null=True)
    memory = MemoryBlock()
    fits = serializers.BooleanField()
    engine_version = serializers.CharField()
    why_not = serializers.CharField(required=False, help_text="Where it does not fit.")
    gpus_used = serializers.IntegerField(required=False)
    need_bytes_per_gpu = serializers.IntegerField(required=False)
    headroom_bytes = serializers.IntegerField(required=False)
    why_it_fits = serializers.CharField(required=False)
    limits = Sentence(many=True, required=False)
    confidence = Confidence(required=False)
    html_url = serializers.URLField(help_text="The order's page, which shows it.")


class Cancellation(serializers.Serializer[Any]):
    """Why the operator cancelled the order, and what was credited of its total."""

    cancelled_at = serializers.DateTimeField()
    reason = serializers.CharField()
    credit_usd = money()


class Order(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(Status.choices)
    machine = SoldMachine()
    term_days = serializers.IntegerField()
    lots = serializers.IntegerField()
    cards = serializers.IntegerField()
    lines = Line(many=True)
    total_usd = money()
    environment = Environment()
    community_acknowledged = serializers.BooleanField()
    misfit_acknowledged = serializers.BooleanField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    cancellation = Cancellation(allow_null=True)
    allocations = Lot(many=True)
    sizing = OrderSizing(allow_null=True)
    idempotency_key = serializers.CharField()
    html_url = serializers.URLField()


class Key(serializers.Serializer[Any]):
    prefix = serializers.CharField()
    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.choices))
    organization = serializers.CharField(help_text="Slug of the organization.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    html_url = serializers.URLField()


class Organization(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    html_url = serializers.URLField()


class Policy(serializers.Serializer[Any]):
    """What the organization lets its members order; null allows everything."""

    tiers = serializers.ListField(child=serializers.ChoiceField(Tier.choices), allow_null=True)
    countries = serializers.ListField(child=serializers.CharField(), allow_null=True, help_text="Codes and EU.")
    max_order_usd = money(allow_null=True)
    max_month_usd = money(allow_null=True, help_text="For a calendar month in UTC.")
    month_usd = money(help_text="What is ordered this month, less what was credited of it.")
    order_role = serializers.ChoiceField(
        Role.choices, help_text="The least role that may order. A key counts as an admin."
    )
    community_acknowledged = serializers.BooleanField(
        allow_null=True, help_text="A rule about tiers allows Community only where this is true; null: no rule."
    )
    changed_at = serializers.DateTimeField(allow_null=True)
    html_url = serializers.URLField()


class UsageEntry(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    what = serializers.ChoiceField(["order", "credit"])
    order = serializers.UUIDField()
    machine = serializers.CharField()
    lots = serializers.IntegerField()
    term_days = serializers.IntegerField()
    amount_usd = serializers.RegexField(r"^-?\d+\.\d{2}$", help_text="Negative for a credit.")
    html_url = serializers.URLField()


class Usage(serializers.Serializer[Any]):
    month = serializers.CharField()
    complete = serializers.BooleanField(help_text="The month is over.")
    ordered_usd = money()
    credited_usd = money()
    total_usd = serializers.RegexField(r"^-?\d+\.\d{2}$")
    entries = UsageEntry(many=True)
    html_url = serializers.URLField()


class Member(serializers.Serializer[Any]):
    email = serializers.CharField()
    role = serializers.ChoiceField(Role.choices)
    since = serializers.DateTimeField()
    html_url = serializers.URLField()


class AuditEvent(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    action = serializers.CharField()
    actor = serializers.CharField(allow_null=True, help_text="Who did it; null for the system itself.")
    via = serializers.CharField()
    object_id = serializers.CharField()
    data = serializers.DictField(child=AnyValue())  # type: ignore[assignment]  # the name is a property of serializers
    html_url = serializers.URLField()


OrderList, MemberList, AuditEventList = page_of(Order), page_of(Member), page_of(AuditEvent)
