"""Input for pages, API and command alike: one set of names, codes and sentences, and either a question or its errors.

Absent means the default; given but empty does not, except for money, which may be left empty. Nothing is rounded,
clipped or guessed: what cannot be read exactly is an error that names the limit and the fix.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import ErrorDict
from django.utils.datastructures import MultiValueDict

from catalog import units
from catalog.models import SLUG, Tier
from catalog.pricing import TERMS_DAYS
from sizing.answers import ANY_TIER, Preferences, Question
from sizing.engine.workloads import MAX_REQUESTS, PRECISIONS_BITS, RunModel
from sizing.fields import AmountField, CountriesField, NumberChoiceField, TextField, WholeNumberField, WordField, shown
from sizing.models import AiModel

DEFAULT_CONTEXT = 4096
MAX_LOTS = 1000
MAX_BUDGET_USD = Decimal("9999999999.99")
MAX_HOURLY_USD = Decimal("999999.9999")
MAX_RESERVE_GIB = Decimal("100000.00")
MAX_REASON_LENGTH = 200

TASKS = {
    "run": "Run a model",
    "fine_tune": "Fine-tune a model",
    "image": "Generate images",
    "notebook": "Open a notebook",
}
COMING_TASKS = frozenset(TASKS) - {"run"}
# Known names of tasks that are not sized yet: asking for one says so instead of calling its fields unknown.
COMING_FIELDS = frozenset(
    ["sequence_length", "batch_size", "rank", "target_modules", "method", "gpu_memory_gib", "gpu_memory_gb"]
)
TIERS = {ANY_TIER: "Any", Tier.SECURE.value: Tier.SECURE.label, Tier.COMMUNITY.value: Tier.COMMUNITY.label}
_FIGURES = {
    "parameters": "number of parameters",
    "attention_heads": "number of attention heads",
    "cache_groups": "cache layout",
    "max_context": "maximum context",
    "layers": "number of layers",
    "kv_heads": "number of KV heads",
    "head_dim": "head dimension",
    "elements_per_token": "cache size per token",
    "window": "attention window",
    "split_width": "MLP width",
    "state_bytes_per_sequence": "state per sequence",
}

Data = Mapping[str, Any]


@dataclass(frozen=True)
class InputError:
    """One thing to put right: the input's name, a stable code, and a sentence naming limit and fix."""

    field: str
    code: str
    detail: str


class InvalidInput(Exception):
    """What was asked cannot be read as a question. `errors` has at least one entry, in the order of the fields."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(error.detail for error in self.errors))

    @property
    def by_field(self) -> dict[str, str]:
        """The first sentence for each field."""
        return {error.field: error.detail for error in reversed(self.errors)}

    @property
    def unknown_names(self) -> tuple[InputError, ...]:
        return tuple(error for error in self.errors if error.code == "unknown_field")


# --- Forms --------------------------------------------------------------------------------------------------------


class InputForm(forms.Form):
    """A form over plain values (a query string, a JSON object, a command's arguments) that knows its defaults."""

    defaults: dict[str, str] = {}

    def __init__(self, data: Data) -> None:
        self.wrong: dict[str, ValidationError] = {}
        self.use_required_attribute = False
        super().__init__(MultiValueDict({name: self._values(data, name) for name in self.base_fields}))

    def _values(self, data: Data, name: str) -> list[str]:
        if name not in data:
            return [self.defaults[name]] if name in self.defaults else []
        given = data.getlist(name) if isinstance(data, MultiValueDict) else data[name]
        several = isinstance(self.base_fields[name], CountriesField)
        values = given if isinstance(given, (list, tuple)) else [given]
        label = self.base_fields[name].label
        if isinstance(given, (list, tuple)) and not several and len(values) != 1:
            self.wrong[name] = ValidationError(f"{label} must be given once.", "repeated")
            return [str(value) for value in values[-1:]]
        if several and not isinstance(given, (list, tuple)) and given is not None:
            self.wrong[name] = ValidationError(f'{label} must be a list, such as ["EU", "US"].', "invalid")
        texts = [_text(value) for value in values]
        if None in texts:
            self.wrong[name] = ValidationError(f"{label} must be plain text or a plain number.", "invalid")
        return [text or "" for text in texts]

    def quietly(self) -> "InputForm":
        """The same form before it is sent: answers are shown, nothing is judged yet."""
        self._errors = ErrorDict()
        return self

    def clean(self) -> dict[str, Any]:
        for name, error in self.wrong.items():
            if name in self._errors:
                del self._errors[name]
            self.add_error(name, error)
        return self.cleaned_data

    @property
    def input_errors(self) -> list[InputError]:
        found = self.errors.as_data()
        return [
            InputError(name, str(error.code or "invalid"), str(error.messages[0]))
            for name in [*self.fields, "__all__"]
            for error in found.get(name, [])
        ]


def _text(value: object) -> str | None:
    """A scalar as the text a person would have typed; None for what is no scalar."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        return None
    if isinstance(value, int) and abs(value) >= 10**40:
        return "-" * (value < 0) + "9" * 41
    return str(value)


class WorkloadForm(InputForm):
    """What a person wants to do, with which model. When valid, `ai_model` and `workload` are set."""

    defaults = {"precision_bits": "16", "context": str(DEFAULT_CONTEXT), "requests": "1"}
    ai_model: AiModel
    workload: RunModel

    task = WordField(label="Task", words=TASKS, required_message="Choose what you want to do.")
    model = TextField(label="Model", error_messages={"required": "Choose a model."})
    precision_bits = NumberChoiceField(label="Precision", numbers=PRECISIONS_BITS, unit="bits")
    context = WholeNumberField(
        label="Context", example=DEFAULT_CONTEXT, hint="Tokens per request. Set it to what your requests really use."
    )
    requests = WholeNumberField(
        label="Requests at once",
        most=MAX_REQUESTS,
        example=1,
        why=" (the most that is computed)",
        hint="How many requests run at the same time. Each keeps its own KV cache.",
    )
    reserve_gib = AmountField(
        label="Own reserve",
        unit="GiB",
        least=Decimal(0),
        most=MAX_RESERVE_GIB,
        places=2,
        example="2.5",
        hint="Added on each GPU as its own line; no margin is put on it.",
    )
    reserve_reason = TextField(
        label="Reason for the reserve",
        required=False,
        hint="A margin without a reason is no more reliable than none. Printed beside the line.",
        widget=forms.TextInput(attrs={"maxlength": MAX_REASON_LENGTH, "autocomplete": "off"}),
    )

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self._context_given = "context" in data

    def clean_task(self) -> str:
        task = self.cleaned_data["task"]
        if task in COMING_TASKS:
            raise ValidationError(
                f"“{TASKS[task]}” is coming: its memory is not computed yet. Choose “{TASKS['run']}”.", "coming"
            )
        return task

    def clean_model(self) -> AiModel:
        slug = self.cleaned_data["model"]
        model = AiModel.objects.filter(slug=slug).first() if SLUG.match(slug) else None
        if model is None:
            raise ValidationError(
                f"“{shown(slug)}” is not a model of the catalog.{_nearest_model(slug)}", "unknown_model"
            )
        if model.kind != AiModel.Kind.LANGUAGE:
            raise ValidationError(f"{model.name} is not a language model: it is not sized yet.", "wrong_kind")
        if missing := model.missing_figure:
            raise ValidationError(
                f"{model.name} cannot be sized: its {figure_label(missing)} is not published.", "not_sizable"
            )
        return model

    def clean_reserve_reason(self) -> str:
        reason = self.cleaned_data["reserve_reason"]
        if len(reason) > MAX_REASON_LENGTH:
            raise ValidationError(
                f"The reason for the reserve must be {MAX_REASON_LENGTH} characters or less.", "max_length"
            )
        if reason and not reason.isprintable():
            raise ValidationError("The reason for the reserve must be plain text on one line.", "invalid")
        return reason

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.has_error("task", "coming"):
            # The other fields belong to another task's workload; judging them would send the person astray.
            for name in [name for name in self.errors if name != "task"]:
                del self._errors[name]
            return cleaned
        self._check_context()
        self._check_reserve()
        if not self.errors:
            self._build()
        return cleaned

    def _check_context(self) -> None:
        model, context = self.cleaned_data.get("model"), self.cleaned_data.get("context")
        if model is None or context is None or context <= model.max_context:
            return
        if not self._context_given:
            self.cleaned_data["context"] = model.max_context
            return
        self.add_error(
            "context",
            ValidationError(
                f"Context must be {model.max_context:,} or less (published maximum of {model.name}).", "max_value"
            ),
        )

    def _check_reserve(self) -> None:
        if self.has_error("reserve_gib") or self.has_error("reserve_reason"):
            return
        reserve, reason = self.cleaned_data.get("reserve_gib"), self.cleaned_data.get("reserve_reason")
        if reserve and not reason:
            self.add_error("reserve_reason", ValidationError("A reserve needs its reason: write one.", "required"))
        if reason and not reserve:
            self.add_error("reserve_gib", ValidationError("Give the reserve in GiB, or empty its reason.", "required"))

    def _build(self) -> None:
        cleaned = self.cleaned_data
        self.ai_model = cleaned["model"]
        self.workload = RunModel(
            model=self.ai_model.shape(),
            precision_bits=cleaned["precision_bits"],
            context=cleaned["context"],
            requests=cleaned["requests"],
            reserve_bytes=units.gib_to_bytes(cleaned["reserve_gib"] or Decimal(0)),
            reserve_reason=cleaned["reserve_reason"],
        )


class PreferencesForm(InputForm):
    """Budget and preferences. When valid, `preferences` is set."""

    defaults = {"tier": ANY_TIER, "term_days": "7", "lots": "1"}
    preferences: Preferences

    budget_usd = AmountField(
        label="Budget",
        unit="USD",
        least=Decimal("0.01"),
        most=MAX_BUDGET_USD,
        places=2,
        example="300.00",
        hint="For the whole order: all lots, one term.",
    )
    max_hourly_usd = AmountField(
        label="Maximum price per hour",
        unit="USD",
        least=Decimal("0.0001"),
        most=MAX_HOURLY_USD,
        places=4,
        example="0.70",
        hint="Per lot. Compared with the package price divided by its hours.",
    )
    term_days = NumberChoiceField(label="Term", numbers=TERMS_DAYS, unit="days")
    lots = WholeNumberField(
        label="Lots", most=MAX_LOTS, example=1, hint="A lot is one whole machine; the workload runs on each by itself."
    )
    tier = WordField(label="Tier", words=TIERS, required_message="Tier is empty: choose any, secure or community.")
    countries = CountriesField(label="Countries", required=False)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.errors:
            self.preferences = Preferences(**cleaned)
        return cleaned


WORKLOAD_NAMES = tuple(WorkloadForm.base_fields)
PREFERENCE_NAMES = tuple(PreferencesForm.base_fields)
NAMES = WORKLOAD_NAMES + PREFERENCE_NAMES


# --- From values to a question ------------------------------------------------------------------------------------


def question_from(data: Data) -> Question:
    """The question in flat values: a page's query string, or a plain mapping (`countries` is a list).

    Raises: InvalidInput.
    """
    workload, preferences = WorkloadForm(data), PreferencesForm(data)
    errors = unknown_names(data, NAMES) + workload.input_errors + preferences.input_errors
    if errors:
        raise InvalidInput(errors)
    return Question(workload.ai_model, workload.workload, preferences.preferences)


def nested_question_from(workload: Data, preferences: Data) -> Question:
    """The question in two objects, as the API has it; errors are at `workload.…` and `preferences.…`.

    Raises: InvalidInput.
    """
    first, second = WorkloadForm(workload), PreferencesForm(preferences)
    parts = {
        "workload": unknown_names(workload, WORKLOAD_NAMES) + first.input_errors,
        "preferences": unknown_names(preferences, PREFERENCE_NAMES) + second.input_errors,
    }
    errors = [InputError(f"{part}.{error.field}", error.code, error.detail) for part in parts for error in parts[part]]
    if errors:
        raise InvalidInput(errors)
    return Question(first.ai_model, first.workload, second.preferences)


def workload_from(data: Data) -> tuple[AiModel, RunModel]:
    """The catalog model and the workload alone.

    Raises: InvalidInput.
    """
    form = WorkloadForm(data)
    if errors := unknown_names(data, WORKLOAD_NAMES) + form.input_errors:
        raise InvalidInput(errors)
    return form.ai_model, form.workload


def unknown_names(data: Data, known: Iterable[str]) -> list[InputError]:
    """An error for every name that no field has, with the nearest that one has."""
    allowed = set(known)
    task = data.get("task")
    if isinstance(task, str) and task in COMING_TASKS:
        allowed |= COMING_FIELDS
    return [
        InputError(shown(name), "unknown_field", f"“{shown(name)}” is not known.{_nearest(str(name), known)}")
        for name in data
        if name not in allowed
    ]


def figure_label(field: str) -> str:
    """The name of a model's figure in words."""
    return _FIGURES.get(field, field.replace("_", " "))


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word[:64].lower(), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]}?" if near else ""


def _nearest_model(slug: str) -> str:
    return _nearest(slug, AiModel.objects.values_list("slug", flat=True))
