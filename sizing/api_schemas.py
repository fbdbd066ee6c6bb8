"""The shapes of sizing's questions and answers for the OpenAPI document.

These serializers describe: bodies are read by the forms of the pages, documents are made by `sizing.documents`.
"""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from catalog import countries
from catalog.api_schemas import MachineFacts, Sentence, hourly, money
from catalog.models import Tier
from catalog.pricing import TERMS_DAYS
from sizing.answers import ANY_TIER
from sizing.engine.parallelism import MAX_SPLIT
from sizing.engine.workloads import MAX_RANK, MAX_REQUESTS, PRECISIONS_BITS, TARGET_WORDS
from sizing.forms import MAX_LOTS, MAX_REASON_LENGTH
from sizing.models import AiModel
from sizing.own_shape import MAX_NAME, MAX_TOKEN
from sizing.task_fields import TASKS
from sizing.workload_form import DEFAULT_CONTEXT, DEFAULT_RANK, DEFAULT_SEQUENCE_LENGTH, METHODS

# What the forms take: at most 100,000 GiB, two decimals; nothing at all is no amount.
GIB = r"^(100000(\.0{1,2})?|[0-9]{1,5}(\.[0-9]{1,2})?)?$"
SOME_GIB = rf"^(?!0+(\.0+)?$){GIB[1:]}"
USD = r"^(?!0+(\.0+)?$)([0-9]{1,10}(\.[0-9]{1,2})?)?$"
USD_PER_HOUR = r"^(?!0+(\.0+)?$)([0-9]{1,6}(\.[0-9]{1,4})?)?$"


def gib(**options: Any) -> serializers.RegexField:
    """GiB as text with two decimals."""
    return serializers.RegexField(r"^\d+\.\d{2}$", **options)


def amount_gib(pattern: str = GIB, **options: Any) -> serializers.RegexField:
    """An amount of GiB or GB in a request."""
    return serializers.RegexField(pattern, **{"required": False, "allow_null": True, **options})


def line(most: int, **options: Any) -> serializers.CharField:
    """Plain text on one line."""
    return serializers.CharField(min_length=1, max_length=most, **options)


def choice(values: Any, **options: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField(list(values), **{"required": False, **options})


def whole(most: int | None = None, **options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=1, max_value=most, **{"required": False, **options})


# --- Questions ----------------------------------------------------------------------------------------------------


@extend_schema_field({"type": "object", "additionalProperties": True, "description": "A config.json, as it is."})
class ConfigField(serializers.JSONField):
    pass


@extend_schema_field(
    {"type": "object", "additionalProperties": True, "description": "A model.safetensors.index.json, as it is."}
)
class IndexField(serializers.JSONField):
    pass


class OwnFiles(serializers.Serializer[Any]):
    """A language model of one's own, by its files."""

    config = ConfigField()
    safetensors_index = IndexField(required=False, allow_null=True)
    name = line(MAX_NAME, required=False, allow_null=True, help_text="What the model is called.")


class Workload(serializers.Serializer[Any]):
    """What you want to do. `task` and the kind of model decide which of the other fields there may be:

    - `run` with a language model: `model`, `precision_bits`, `context`, `requests`
    - `run` with a speech recognition model: `model`, `precision_bits`, `streams`
    - `fine_tune`: `model`, `precision_bits`, `sequence_length`, `batch_size`, `rank`, `target_modules`, `method`
    - `image`: `model`
    - `notebook`: `gpu_memory_gib` or `gpu_memory_gb`, one of the two

    All but `notebook` take `reserve_gib` with `reserve_reason`. In place of `model`, a language model of your own:
    `config` (with `safetensors_index` and `name`), or `shape`.
    """

    task = choice(TASKS, required=True)
    model = serializers.CharField(
        required=False, help_text="Slug of a model, or with a key `own:<slug>` for one of your organization's own."
    )
    precision_bits = choice(PRECISIONS_BITS, help_text="16 by default.")
    context = whole(  # type: ignore[assignment]  # the name is an attribute of fields
        help_text=f"Tokens per request; {DEFAULT_CONTEXT} by default, at most the model's maximum."
    )
    requests = whole(MAX_REQUESTS, help_text="Requests at once; 1 by default.")
    streams = whole(MAX_REQUESTS, help_text="Audio streams at once; 1 by default.")
    sequence_length = whole(help_text=f"Tokens of the longest example; {DEFAULT_SEQUENCE_LENGTH} by default.")
    batch_size = whole(MAX_REQUESTS, help_text="1 by default.")
    rank = whole(MAX_RANK, help_text=f"Of the adapters; {DEFAULT_RANK} by default.")
    target_modules = serializers.ListField(
        child=choice(TARGET_WORDS, required=True), min_length=1, required=False, help_text="q, k, v, o by default."
    )
    method = choice(METHODS, help_text="`full` is refused: it is not sized.")
    gpu_memory_gib = amount_gib(SOME_GIB, help_text="GPU memory that a notebook needs, in GiB; 0.01 or more.")
    gpu_memory_gb = amount_gib(SOME_GIB, help_text="The same in GB.")
    reserve_gib = amount_gib(help_text="Your own reserve on every GPU; needs `reserve_reason`.")
    reserve_reason = line(MAX_REASON_LENGTH, required=False, help_text="Why; needs `reserve_gib`.")
    shape = serializers.RegexField(
        r"^[A-Za-z0-9_-]+$", max_length=MAX_TOKEN, required=False, help_text="From POST /models/read."
    )
    config = ConfigField(required=False, allow_null=True)
    safetensors_index = IndexField(required=False, allow_null=True)
    name = line(MAX_NAME, required=False, allow_null=True, help_text="With `config`: its name.")


class Preferences(serializers.Serializer[Any]):
    """Countries, term and lots are hard; budget, hourly maximum and tier are preferences that an alternative misses."""

    budget_usd = serializers.RegexField(
        USD, required=False, allow_null=True, help_text="For the whole order: all lots, one term."
    )
    max_hourly_usd = serializers.RegexField(
        USD_PER_HOUR, required=False, allow_null=True,
        help_text="Per lot, compared with the package price divided by its hours.",
    )  # fmt: skip
    tier = choice([ANY_TIER, *Tier.values], help_text="`any` by default.")
    countries = serializers.ListField(
        child=choice([countries.EU, *sorted(countries.names())], required=True), required=False,
        help_text="ISO 3166-1 alpha-2 codes and EU; none means anywhere.",
    )  # fmt: skip
    term_days = choice(TERMS_DAYS, help_text="7 by default.")
    lots = whole(MAX_LOTS, help_text="1 by default.")


class SizingRequest(serializers.Serializer[Any]):
    workload = Workload()
    gpus = serializers.IntegerField(
        min_value=1, max_value=MAX_SPLIT, required=False, help_text="Split over so many GPUs of one machine."
    )


class RecommendationsRequest(serializers.Serializer[Any]):
    workload = Workload()
    preferences = Preferences(required=False, allow_null=True)


# --- Answers ------------------------------------------------------------------------------------------------------


class MemoryLine(serializers.Serializer[Any]):
    code = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # the name is an attribute of fields
    formula = serializers.CharField(help_text="Filled in.")
    bytes = serializers.IntegerField()
    gib = gib()


class Split(serializers.Serializer[Any]):
    gpus = serializers.IntegerField()
    per_gpu_bytes = serializers.IntegerField()
    per_gpu_gib = gib()


class Source(serializers.Serializer[Any]):
    title = serializers.CharField()
    url = serializers.CharField()


class MemoryBlock(serializers.Serializer[Any]):
    """The memory that a workload needs, line by line, for all `gpus` together."""

    gpus = serializers.IntegerField()
    total_bytes = serializers.IntegerField()
    total_gib = gib()
    rounding_note = serializers.CharField(allow_null=True)
    lines = MemoryLine(many=True)
    splits = Split(many=True)
    assumptions = serializers.ListField(child=serializers.CharField())
    sources = Source(many=True)


class Memory(MemoryBlock):
    """The memory that a workload needs, line by line, for all `gpus` together."""

    html_url = serializers.URLField(help_text="The page of this workload.")


class Confidence(serializers.Serializer[Any]):
    def get_fields(self) -> dict[str, Any]:
        return {
            "level": serializers.ChoiceField(["high", "medium", "low"]),
            "reasons": Sentence(many=True),
            "raise": Sentence(many=True, help_text="What would raise it."),
        }


class BudgetCovers(serializers.Serializer[Any]):
    hours = gib()
    whole_terms = serializers.IntegerField()
    text = serializers.CharField()


class Recommendation(serializers.Serializer[Any]):
    """A machine on which the workload fits, why, and how sure that is."""

    machine = MachineFacts()
    gpus_used = serializers.IntegerField()
    need_bytes_per_gpu = serializers.IntegerField()
    headroom_bytes = serializers.IntegerField()
    package_usd = money(help_text="For one lot and the term.")
    package_hourly_usd = hourly()
    why_it_fits = serializers.CharField()
    limits = Sentence(many=True)
    confidence = Confidence()
    budget_covers = BudgetCovers(allow_null=True)


class Miss(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="The preference that is missed.")
    by = serializers.RegexField(r"^\d+\.\d{2}(\d{2})?$", allow_null=True, help_text="USD.")
    text = serializers.CharField()


class MachineAlternative(Recommendation):
    misses = Miss(many=True)


class PrecisionAlternative(serializers.Serializer[Any]):
    precision_bits = serializers.IntegerField()
    total_gib = gib()
    additional_machines = serializers.IntegerField()
    cheapest_package_usd = money()


class Alternatives(serializers.Serializer[Any]):
    machines = MachineAlternative(many=True)
    precisions = PrecisionAlternative(many=True)


class NotConsidered(Sentence):
    count = serializers.IntegerField()


class NearestMiss(serializers.Serializer[Any]):
    machine = MachineFacts()
    gpus_used = serializers.IntegerField()
    need_bytes_per_gpu = serializers.IntegerField()
    lacking_bytes = serializers.IntegerField()
    text = serializers.CharField()


@extend_schema_field(OpenApiTypes.ANY)
class AnyValue(serializers.JSONField):
    """A value of whatever kind the field has that it is of."""


class Change(serializers.Serializer[Any]):
    """One change of the question that gives at least one machine, verified by asking again."""

    field = serializers.CharField()
    value = AnyValue()
    machines = serializers.IntegerField()
    cheapest_package_usd = money(allow_null=True)
    text = serializers.CharField()


class Constraint(serializers.Serializer[Any]):
    code = serializers.CharField()
    value = AnyValue()
    text = serializers.CharField()


class Recommendations(serializers.Serializer[Any]):
    memory = Memory()
    recommended_count = serializers.IntegerField(help_text="Of all; at most 50 are listed.")
    recommended = Recommendation(many=True)
    alternatives = Alternatives()
    not_considered = NotConsidered(many=True)
    nearest_miss = NearestMiss(allow_null=True)
    changes = Change(many=True)
    constraints = Constraint(many=True)
    limits = Sentence(many=True)
    engine_version = serializers.CharField()
    catalog_version = serializers.CharField()
    fingerprint = serializers.CharField(help_text="Same data, same answer: of inputs, engine and catalog.")
    html_url = serializers.URLField(help_text="The page of this very question.")


# --- Models of one's own ------------------------------------------------------------------------------------------


class FigureOrigin(serializers.Serializer[Any]):
    figure = serializers.CharField()
    value = AnyValue()
    fields = serializers.ListField(child=serializers.CharField())  # type: ignore[assignment]
    rule = serializers.CharField()


class ModelPart(serializers.Serializer[Any]):
    name = serializers.CharField()
    parameters = serializers.IntegerField()
    rule = serializers.CharField()


class Quantization(serializers.Serializer[Any]):
    method = serializers.CharField()
    bits = serializers.IntegerField(allow_null=True)
    fields = serializers.ListField(child=serializers.CharField())  # type: ignore[assignment]


class Stored(serializers.Serializer[Any]):
    document = serializers.CharField()
    total_bytes = serializers.IntegerField()
    tensors = serializers.IntegerField()
    bytes_by_dtype = serializers.ListField(child=serializers.ListField(child=AnyValue()))


class ModelReading(serializers.Serializer[Any]):
    """What was read from the files of a model: each figure with where it came from."""

    architecture = serializers.CharField()
    provenance = FigureOrigin(many=True)
    parts = ModelPart(many=True)
    left_out = serializers.ListField(child=serializers.CharField())
    cache_note = serializers.CharField()
    quantization = Quantization(allow_null=True)
    stored = Stored(allow_null=True)


class ReadModel(ModelReading):
    """The figures of a model of one's own, each with where it came from."""

    name = serializers.CharField()
    figures = serializers.DictField(child=AnyValue(), help_text="By the names of the figures of a model.")
    shape = serializers.CharField(allow_null=True, help_text="Stands in place of `model` in a workload.")
    html_url = serializers.URLField(help_text="Launch by workload with this model; where `shape` is null, to bring it.")


# --- Models of the catalog and vectors ----------------------------------------------------------------------------


class Model(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    family = serializers.CharField()
    kind = serializers.ChoiceField(AiModel.Kind.choices)
    tasks = serializers.ListField(child=serializers.CharField(), help_text="The tasks it can be sized for.")
    parameters = serializers.IntegerField(allow_null=True)
    max_context = serializers.IntegerField(allow_null=True)
    accepts_images = serializers.BooleanField()
    license = serializers.CharField(allow_null=True)
    release_year = serializers.IntegerField(allow_null=True)
    missing_figure = serializers.CharField(
        allow_null=True, help_text="The unpublished figure for want of which it cannot be sized; null when it can."
    )
    source_url = serializers.URLField()
    html_url = serializers.URLField(help_text="Launch by workload with this model.")


class Vector(serializers.Serializer[Any]):
    """One question with its exact answer. What inputs and figures there are depends on `kind`."""

    id = serializers.CharField()
    kind = serializers.CharField()
    origin = serializers.CharField()
    sources = serializers.ListField(child=serializers.CharField())
    inputs = serializers.DictField(child=AnyValue())
    expect = serializers.DictField(child=AnyValue())


class Vectors(serializers.Serializer[Any]):
    format = serializers.CharField()
    digest = serializers.CharField()
    count = serializers.IntegerField()
    vectors = Vector(many=True)
    html_url = serializers.URLField(help_text="The rules that they are of.")
