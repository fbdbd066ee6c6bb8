"""The shapes of the calculator's questions and answers for the OpenAPI document; they describe and do nothing."""

from typing import Any

from rest_framework import serializers

from catalog.api_schemas import MachineFacts, Sentence, money
from sizing.api_schemas import amount_gib, choice, gib, line
from sizing.calculator.forms import MAX_NAME_LENGTH
from sizing.calculator.words import FORMATS, LOADS, PURPOSES, STATES
from sizing.engine.envelope import MAX_ENTRIES, MAX_PARAMETERS
from sizing.engine.stages import MAX_STAGES
from sizing.forms import MAX_REASON_LENGTH


class ReserveEntry(serializers.Serializer[Any]):
    name = line(MAX_NAME_LENGTH, help_text="What the memory is for.")
    gib = amount_gib(help_text="Not for an entry that is still `unknown`, needed for every other.")
    reason = line(MAX_REASON_LENGTH)
    state = choice(STATES, help_text="How the figure is known; `estimated` by default.")


class CalculatorRequest(serializers.Serializer[Any]):
    parameters = serializers.IntegerField(min_value=1, max_value=MAX_PARAMETERS)
    bits = choice(FORMATS, help_text="Theoretical bits per parameter; 16 by default.")
    purpose = choice(PURPOSES, help_text="`inference` by default.")
    reserve = serializers.ListField(child=ReserveEntry(), max_length=MAX_ENTRIES, required=False, allow_null=True)


class Size(serializers.Serializer[Any]):
    bytes = serializers.IntegerField()
    gib = gib()


class WeightsOnly(Size):
    label = serializers.CharField()  # type: ignore[assignment]  # the name is an attribute of fields
    formula = serializers.CharField()


class CountedEntry(serializers.Serializer[Any]):
    name = serializers.CharField()
    reason = serializers.CharField()
    state = serializers.ChoiceField(list(STATES))
    state_label = serializers.CharField()
    formula = serializers.CharField()
    bytes = serializers.IntegerField(allow_null=True)
    gib = gib(allow_null=True)


class EnvelopeSum(WeightsOnly):
    complete = serializers.BooleanField()
    unknown = serializers.ListField(child=serializers.CharField(), help_text="Names of the entries without a figure.")
    text = serializers.CharField(allow_null=True)
    rounding_note = serializers.CharField(allow_null=True)


class Format(serializers.Serializer[Any]):
    bits = serializers.IntegerField()
    label = serializers.CharField()  # type: ignore[assignment]
    theoretical = serializers.BooleanField()
    formula = serializers.CharField()
    weights_only_bytes = serializers.IntegerField()
    weights_only_gib = gib()
    envelope_bytes = serializers.IntegerField()
    envelope_gib = gib()


class NamedSentence(Sentence):
    name = serializers.CharField()


class CalculatorCandidate(serializers.Serializer[Any]):
    """A candidate to examine, to confirm; never a recommendation."""

    gpu = serializers.CharField()
    gpu_name = serializers.CharField()
    state = serializers.CharField()
    state_label = serializers.CharField()
    nominal_gb = serializers.IntegerField(allow_null=True)
    nominal_text = serializers.CharField()
    counted_bytes = serializers.IntegerField()
    counted_gib = gib()
    counted_text = serializers.CharField()
    headroom_bytes = serializers.IntegerField()
    headroom_gib = gib()
    machines = serializers.IntegerField()
    machines_text = serializers.CharField()
    package_usd = money()
    package_text = serializers.CharField()
    term_days = serializers.IntegerField()
    machine = MachineFacts()


class Envelope(serializers.Serializer[Any]):
    """Weights only, the indicative envelope, every format, what is left out, and candidates to examine."""

    parameters = serializers.IntegerField()
    bits = serializers.IntegerField()
    purpose = serializers.CharField()
    purpose_label = serializers.CharField()
    weights_only = WeightsOnly()
    reserve = CountedEntry(many=True)
    envelope = EnvelopeSum()
    formats = Format(many=True)
    to_document = NamedSentence(many=True)
    left_out = Sentence(many=True)
    notes = Sentence(many=True)
    candidates_count = serializers.IntegerField()
    candidates_text = serializers.CharField()
    candidates_note = serializers.CharField()
    reading_decides = serializers.CharField(allow_null=True)
    candidates = CalculatorCandidate(many=True)
    html_url = serializers.URLField()


class StageInput(serializers.Serializer[Any]):
    name = line(MAX_NAME_LENGTH)
    weights_gib = amount_gib(required=True, allow_null=False)
    working_memory_gib = amount_gib(required=True, allow_null=False)
    load = choice(LOADS, help_text="Whether it stays loaded; `kept` by default.")


class StagesRequest(serializers.Serializer[Any]):
    stages = serializers.ListField(child=StageInput(), min_length=1, max_length=MAX_STAGES)


class Stage(serializers.Serializer[Any]):
    name = serializers.CharField()
    load = serializers.ChoiceField(list(LOADS))
    load_label = serializers.CharField()
    weights_bytes = serializers.IntegerField()
    weights_gib = gib()
    weights_formula = serializers.CharField()
    working_memory_bytes = serializers.IntegerField()
    working_memory_gib = gib()
    working_memory_formula = serializers.CharField()


class Resident(WeightsOnly):
    largest_working_memory = serializers.CharField()


class Step(Size):
    stage = serializers.CharField()
    formula = serializers.CharField()
    kept_bytes = serializers.IntegerField()
    own_weights_bytes = serializers.IntegerField()
    working_memory_bytes = serializers.IntegerField()
    decides = serializers.BooleanField()


class StepByStep(WeightsOnly):
    largest_step = serializers.CharField()
    steps = Step(many=True)


class Stages(serializers.Serializer[Any]):
    """A chain of stages with everything resident, and loaded step by step."""

    stages = Stage(many=True)
    resident = Resident()
    step_by_step = StepByStep()
    saved_bytes = serializers.IntegerField()
    text = serializers.CharField()
    assumptions = Sentence(many=True)
    remarks = Sentence(many=True)
    html_url = serializers.URLField()
