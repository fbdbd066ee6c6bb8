"""Input for pages, API and command alike: one set of names, codes and sentences, and either a question or its errors.

Absent means the default; given but empty does not, except for money, which may be left empty. Nothing is rounded,
clipped or guessed: what cannot be read exactly is an error that names the limit and the fix.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.datastructures import MultiValueDict

from catalog import countries, units
from catalog.models import Tier, slug_validator
from catalog.pricing import TERMS_DAYS
from sizing.answers import ANY_TIER, Preferences, Question
from sizing.engine.workloads import MAX_REQUESTS, PRECISIONS_BITS, RunModel
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
_COUNTRY_HABITS = {"UK": "GB", "ENGLAND": "GB", "EL": "GR", "USA": "US", "EUROPE": countries.EU}

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


# --- Fields -------------------------------------------------------------------------------------------------------


def shown(value: object) -> str:
    """What was given, fit to be repeated in a sentence: short, one line, only characters that can be sent."""
    text = str(value)[:60].encode("utf-8", "replace").decode()
    text = "".join(letter if letter.isprintable() else "�" for letter in text)
    return text if len(text) <= 40 else f"{text[:40]}…"


class TextField(forms.CharField):
    """Text whose own rule decides which characters are allowed, so that its sentence can say so."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # CharField's own refusal of NUL bytes names neither field nor fix; every field here refuses them itself.
        self.validators = []


class WholeNumberField(TextField):
    """A whole number in the digits 0 to 9, with its least and greatest value."""

    def __init__(self, *, label: str, least: int = 1, most: int | None = None, example: int, why: str = "") -> None:
        super().__init__(
            label=label, error_messages={"required": f"{label} is empty: give a whole number, such as {example}."}
        )
        self.least, self.most, self.example, self.why = least, most, example, why

    def clean(self, value: Any) -> int:
        text = super().clean(value)
        if not re.fullmatch(r"-?[0-9]+", text):
            raise ValidationError(
                f"{self.label} must be a whole number in plain digits, such as {self.example}; “{shown(text)}” is not.",
                "invalid",
            )
        # Beyond 40 digits only the sign matters, and turning them into a number is work without use.
        number = int(text) if len(text) <= 40 else int(f"{text[:1]}{'9' * 40}")
        if number < self.least:
            raise ValidationError(f"{self.label} must be {self.least:,} or more.", "min_value")
        if self.most is not None and number > self.most:
            raise ValidationError(f"{self.label} must be {self.most:,} or less{self.why}.", "max_value")
        return number


class AmountField(TextField):
    """A decimal amount of a unit, exactly as written: a comma may stand for the point, thousands are not separated."""

    def __init__(self, *, label: str, unit: str, least: Decimal, most: Decimal, places: int, example: str) -> None:
        super().__init__(label=label, required=False)
        self.unit, self.least, self.most, self.places, self.example = unit, least, most, places, example

    def clean(self, value: Any) -> Decimal | None:  # type: ignore[override]  # CharField gives text, this an amount
        text = super().clean(value)
        if text == "":
            return None
        written = re.fullmatch(r"(-?)([0-9]{1,40})(?:([.,])([0-9]{1,40}))?", text)
        if not written:
            raise ValidationError(self._unreadable(text), "invalid")
        sign, whole, point, fraction = written.groups(default="")
        if point == "," and len(fraction) == 3 and whole.strip("0"):
            raise ValidationError(
                f"{self.label} “{shown(text)}” can be read in two ways: write {whole}{fraction} or {whole}.{fraction}.",
                "invalid",
            )
        if len(fraction.rstrip("0")) > self.places:
            raise ValidationError(
                f"{self.label} may have at most {self.places} decimals, such as {self.example}.", "max_decimal_places"
            )
        amount = Decimal(f"{sign}{whole}.{fraction or '0'}")
        if amount < self.least:
            raise ValidationError(f"{self.label} must be {self.least:f} {self.unit} or more.", "min_value")
        if amount > self.most:
            raise ValidationError(f"{self.label} must be {self.most:,f} {self.unit} or less.", "max_value")
        return amount.quantize(Decimal(1).scaleb(-self.places))

    def _unreadable(self, text: str) -> str:
        return (
            f"{self.label} must be an amount in {self.unit} in plain digits, such as {self.example}; "
            f"“{shown(text)}” is not."
        )


class WordField(TextField):
    """One of a few known words."""

    def __init__(self, *, label: str, words: Mapping[str, str], required_message: str) -> None:
        super().__init__(label=label, error_messages={"required": required_message})
        self.words = words

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        if text not in self.words:
            raise ValidationError(
                f"{self.label} must be {_either(self.words)}; “{shown(text)}” is not.", "invalid_choice"
            )
        return text


class NumberChoiceField(WholeNumberField):
    """One of a few known numbers."""

    def __init__(self, *, label: str, numbers: Iterable[int], unit: str) -> None:
        self.numbers, self.unit = tuple(numbers), unit
        super().__init__(label=label, least=-(10**40), example=self.numbers[0])

    def clean(self, value: Any) -> int:
        number = super().clean(value)
        if number not in self.numbers:
            raise ValidationError(f"{self.label} must be {_either(self.numbers)} {self.unit}.", "invalid_choice")
        return number


class CountriesField(forms.Field):
    """Country codes and `EU`, each once, `EU` first and then by code."""

    widget = forms.SelectMultiple

    def clean(self, value: Any) -> tuple[str, ...]:
        chosen = {self._code(text) for text in value or [] if text != ""}
        return tuple(sorted(chosen, key=lambda code: (code != countries.EU, code)))

    def _code(self, text: str) -> str:
        code = text.strip().upper() if text.isascii() else ""
        if code == countries.EU or code in countries.names():
            return code
        by_name = {name.upper(): known for known, name in countries.names().items()}
        meant = _COUNTRY_HABITS.get(code) or by_name.get(code)
        fix = f"write {meant}" if meant else "write EU or a code such as DE, each as its own value"
        raise ValidationError(f"“{shown(text)}” is not a country code: {fix}.", "invalid_choice")


def _either(words: Iterable[object]) -> str:
    *most, last = map(str, words)
    return f"{', '.join(most)} or {last}"


# --- Forms --------------------------------------------------------------------------------------------------------


class InputForm(forms.Form):
    """A form over plain values (a query string, a JSON object, a command's arguments) that knows its defaults."""

    defaults: dict[str, str] = {}

    def __init__(self, data: Data) -> None:
        self.wrong: dict[str, ValidationError] = {}
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
    context = WholeNumberField(label="Context", example=DEFAULT_CONTEXT)
    requests = WholeNumberField(
        label="Requests at once", most=MAX_REQUESTS, example=1, why=" (the most that is computed)"
    )
    reserve_gib = AmountField(
        label="Own reserve", unit="GiB", least=Decimal(0), most=MAX_RESERVE_GIB, places=2, example="2.5"
    )
    reserve_reason = TextField(label="Reason for the reserve", required=False)

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
        model = AiModel.objects.filter(slug=slug).first() if slug_validator.regex.match(slug) else None
        if model is None:
            raise ValidationError(
                f"“{shown(slug)}” is not a model of the catalog.{_nearest_model(slug)}", "unknown_model"
            )
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
        label="Budget", unit="USD", least=Decimal("0.01"), most=MAX_BUDGET_USD, places=2, example="300.00"
    )
    max_hourly_usd = AmountField(
        label="Maximum price per hour",
        unit="USD",
        least=Decimal("0.0001"),
        most=MAX_HOURLY_USD,
        places=4,
        example="0.70",
    )
    term_days = NumberChoiceField(label="Term", numbers=TERMS_DAYS, unit="days")
    lots = WholeNumberField(label="Lots", most=MAX_LOTS, example=1)
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
