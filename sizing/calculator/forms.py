"""What a person or a program may give the calculator: one set of names, codes and sentences for page and API.

A list is rows: `reserve_1_gib` in an address and `reserve[0].gib` in JSON are the same field of the same form.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.datastructures import MultiValueDict

from catalog import units
from catalog.visible import is_plain_line
from sizing.calculator.words import FORMATS, LOADS, PURPOSES, STATES
from sizing.engine.envelope import ESTIMATED, MAX_ENTRIES, MAX_PARAMETERS, UNKNOWN, Envelope, ReserveEntry
from sizing.engine.stages import KEPT, MAX_STAGES, Chain, Stage
from sizing.fields import AmountField, NumberChoiceField, TextField, WholeNumberField, WordField
from sizing.forms import MAX_REASON_LENGTH, MAX_RESERVE_GIB, Data, InputError, InputForm, InvalidInput, unknown_names

MAX_NAME_LENGTH = 80
SHOWN_ROWS = 3
PARAMETER_UNITS = {"ones": "parameters", "millions": "million parameters", "billions": "billion parameters"}
# Digits after the point that a unit has before parameters would be split.
_PLACES = {"millions": 6, "billions": 9}


class LineField(TextField):
    """A short text on one line, which must be given."""

    def __init__(self, *, label: str, most: int, missing: str, hint: str = "") -> None:
        super().__init__(
            label=label,
            hint=hint,
            error_messages={"required": missing},
            widget=forms.TextInput(attrs={"maxlength": most, "autocomplete": "off"}),
        )
        self.most = most

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        if len(text) > self.most:
            raise ValidationError(f"{self.label} must be {self.most} characters or less.", "max_length")
        if text and not is_plain_line(text):
            raise ValidationError(f"{self.label} must be plain text on one line.", "invalid")
        return text


class SelectField(WordField):
    """One of a few known words, in a list that opens."""

    def __init__(self, *, label: str, words: dict[str, str], required_message: str) -> None:
        super().__init__(label=label, words=words, required_message=required_message)
        self.widget = forms.Select(choices=list(words.items()))


def _gib(label: str, hint: str = "") -> AmountField:
    return AmountField(
        label=label, unit="GiB", least=Decimal(0), most=MAX_RESERVE_GIB, places=2, example="2.5", hint=hint
    )


# --- The forms ----------------------------------------------------------------------------------------------------


class WeightsForm(InputForm):
    """How many parameters in which format, and what for. Without parameters yet, billions are preselected."""

    defaults = {"parameter_unit": "ones", "bits": "16", "purpose": "inference"}

    parameters = TextField(
        label="Parameters",
        error_messages={"required": "Parameters is empty: give the number of values, such as 7000000000 or 7 billion."},
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
        hint="Values of the dense calculation; all experts of a mixture count.",
    )
    parameter_unit = SelectField(
        label="Counted in", words=PARAMETER_UNITS, required_message="Choose parameters, millions or billions."
    )
    bits = NumberChoiceField(label="Format", numbers=FORMATS, unit="bits")
    purpose = WordField(
        label="Purpose", words=PURPOSES, required_message="Purpose is empty: choose inference or training."
    )

    def __init__(self, data: Data) -> None:
        super().__init__(data if "parameters" in data else {"parameter_unit": "billions", **_lists(data)})
        self.fields["bits"].widget.choices = [(str(bits), label) for bits, label in FORMATS.items()]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        text, unit = cleaned.get("parameters"), cleaned.get("parameter_unit")
        if text and unit and not self.has_error("parameters"):
            try:
                cleaned["count"] = parameter_count(text, unit)
            except ValidationError as error:
                self.add_error("parameters", error)
        return cleaned


def parameter_count(text: str, unit: str) -> int:
    """The exact number of parameters in a figure of a unit: "7.5" billions are 7,500,000,000.

    Raises: ValidationError.
    """
    if unit == "ones":
        return WholeNumberField(
            label="Parameters",
            most=MAX_PARAMETERS,
            example=7_000_000_000,
            why=" (the most that is computed; a comma or a point needs millions or billions as the unit)",
        ).clean(text)
    places = _PLACES[unit]
    amount = AmountField(
        label="Parameters",
        unit=unit.removesuffix("s"),
        least=Decimal(1).scaleb(-places),
        most=Decimal(MAX_PARAMETERS // 10**places),
        places=places,
        example="7.5",
    ).clean(text)
    return int((amount or Decimal(0)).scaleb(places))


class RowForm(InputForm):
    """One row of a list. In a page its fields are named after the list and its place in it, counted from 1."""

    list_name: ClassVar[str]
    row_label: ClassVar[str]
    most_rows: ClassVar[int]

    def __init__(self, data: Data, number: int = 1) -> None:
        super().__init__(data)
        self.number = number
        self.data = MultiValueDict({self.add_prefix(name): values for name, values in self.data.lists()})  # type: ignore[attr-defined]

    def add_prefix(self, field_name: str) -> str:
        return f"{self.list_name}_{self.number}_{field_name}" if hasattr(self, "number") else field_name

    @property
    def label(self) -> str:
        return f"{self.row_label} {self.number}"

    @property
    def is_empty(self) -> bool:
        """Nothing was written into it: a row of the page that is not used."""
        given = ((name, self.data.get(self.add_prefix(name)) or "") for name in self.base_fields)
        return not self.wrong and all(text.strip() in ("", self.defaults.get(name)) for name, text in given)

    def errors_at(self, place: str) -> list[InputError]:
        return [replace(error, field=f"{place}.{error.field}") for error in self.input_errors]


class EntryForm(RowForm):
    """A reserve entry: what for, how much, why, and how the figure is known."""

    list_name, row_label, most_rows = "reserve", "Entry", MAX_ENTRIES
    defaults = {"state": ESTIMATED}

    name = LineField(
        label="Name", most=MAX_NAME_LENGTH, missing="Name is empty: say what the memory is for, such as KV cache."
    )
    gib = _gib("Amount")
    reason = LineField(
        label="Reason",
        most=MAX_REASON_LENGTH,
        missing="Reason is empty: a reserve without a reason is no more reliable than none.",
    )
    state = SelectField(
        label="State", words=STATES, required_message="State is empty: choose estimated, measured or unknown."
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.has_error("gib") or self.has_error("state"):
            return cleaned
        given, unknown = cleaned["gib"] is not None, cleaned["state"] == UNKNOWN
        if given and unknown:
            self.add_error(
                "gib",
                ValidationError(
                    "Amount must be empty while the entry is still unknown: choose estimated or measured to count it.",
                    "unknown_has_figure",
                ),
            )
        elif not given and not unknown:
            self.add_error(
                "gib",
                ValidationError("Amount is empty: give it in GiB, or choose still unknown as the state.", "required"),
            )
        return cleaned

    @property
    def entry(self) -> ReserveEntry:
        cleaned = self.cleaned_data
        figure = None if cleaned["gib"] is None else units.gib_to_bytes(cleaned["gib"])
        return ReserveEntry(cleaned["name"], cleaned["reason"], cleaned["state"], figure)


class StageForm(RowForm):
    """A stage of a chain: its weights, its working memory, and whether it stays loaded."""

    list_name, row_label, most_rows = "stage", "Stage", MAX_STAGES
    defaults = {"load": KEPT}

    name = LineField(
        label="Name", most=MAX_NAME_LENGTH, missing="Name is empty: say what the stage does, such as Encode images."
    )
    weights_gib = _gib("Weights")
    working_memory_gib = _gib("Working memory")
    load = SelectField(label="Loading", words=LOADS, required_message="Loading is empty: choose kept or step.")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        for name in ("weights_gib", "working_memory_gib"):
            if cleaned.get(name) is None and not self.has_error(name):
                label = self.fields[name].label
                self.add_error(
                    name, ValidationError(f"{label} is empty: give it in GiB, 0 when there is none.", "required")
                )
        return cleaned

    @property
    def stage(self) -> Stage:
        cleaned = self.cleaned_data
        weights, working = (units.gib_to_bytes(cleaned[name]) for name in ("weights_gib", "working_memory_gib"))
        return Stage(cleaned["name"], weights, working, cleaned["load"])


# --- From an address ----------------------------------------------------------------------------------------------


class _ShownForm(InputForm):
    defaults = {"rows": str(SHOWN_ROWS)}

    rows = WholeNumberField(label="Rows", most=min(MAX_ENTRIES, MAX_STAGES), example=SHOWN_ROWS, why=" (the most)")


@dataclass(frozen=True)
class Rows:
    """The rows of a page: as many as asked for, and at least those that are filled in and one more place."""

    forms: tuple[RowForm, ...]
    problems: tuple[InputError, ...]

    @property
    def filled(self) -> tuple[RowForm, ...]:
        return tuple(form for form in self.forms if not form.is_empty)

    @property
    def next_rows(self) -> int | None:
        """How many rows a press on the button asks for; None when there are as many as can be."""
        return len(self.forms) + 1 if len(self.forms) < self.forms[0].most_rows else None

    @property
    def errors(self) -> list[InputError]:
        rows = [error for form in self.filled for error in form.errors_at(f"{form.list_name}_{form.number}")]
        return [*self.problems, *rows]


def rows_from(data: Data, form: type[RowForm]) -> Rows:
    """The rows in an address: `reserve_1_name` and so on. An empty row is no entry, wherever it stands."""
    given = _lists(data)
    shown_form = _ShownForm({name: values for name, values in given.items() if name == "rows"})
    asked = shown_form.cleaned_data["rows"] if shown_form.is_valid() else SHOWN_ROWS
    numbered = [
        form(
            {name: given[f"{form.list_name}_{number}_{name}"] for name in form.base_fields
             if f"{form.list_name}_{number}_{name}" in given},
            number,
        )
        for number in range(1, form.most_rows + 1)
    ]  # fmt: skip
    last = max((row.number for row in numbered if not row.is_empty), default=0)
    return Rows(tuple(numbered[: max(asked, last)]), tuple(shown_form.input_errors))


def row_names(form: type[RowForm], number: int | str) -> list[str]:
    return [f"{form.list_name}_{number}_{name}" for name in form.base_fields]


def known_names(form: type[RowForm], others: Iterable[str] = ()) -> list[str]:
    """The names of an address, for people: the place in the list is `N`."""
    return [*others, "rows", *row_names(form, "N")]


def unknown_in_address(data: Data, form: type[RowForm], others: Iterable[str] = ()) -> list[InputError]:
    """An error for every name that neither a field nor a row has."""
    every = [name for number in range(1, form.most_rows + 1) for name in row_names(form, number)]
    found = unknown_names(data, [*others, "rows", *every])
    return [_beyond(error, form) for error in found]


def _beyond(error: InputError, form: type[RowForm]) -> InputError:
    fields = "|".join(form.base_fields)
    if not re.fullmatch(rf"{form.list_name}_[0-9]+_({fields})", error.field):
        return error
    return replace(error, detail=f"“{error.field}” is not known: rows are counted from 1 to {form.most_rows}.")


def _lists(data: Data) -> dict[str, Any]:
    return dict(data.lists()) if isinstance(data, MultiValueDict) else dict(data)


# --- From JSON ----------------------------------------------------------------------------------------------------


def rows_of(value: object, name: str, form: type[RowForm], *, least: int = 0) -> tuple[list[RowForm], list[InputError]]:
    """The rows of a JSON list and what is wrong with it as a list; the rows' own errors are theirs."""
    if value is None and not least:
        return [], []
    if not isinstance(value, list):
        example = ", ".join(f'"{field}": …' for field in form.base_fields)
        return [], [
            InputError(name, "required" if value is None else "invalid", f"“{name}” must be a list of {{{example}}}.")
        ]
    if not least <= len(value) <= form.most_rows:
        few = len(value) < least
        return [], [
            InputError(
                name,
                "min_length" if few else "max_length",
                f"“{name}” is empty: give at least {least}." if few
                else f"“{name}” has {len(value):,} entries: {form.most_rows} or less are computed.",
            )
        ]  # fmt: skip
    errors, rows = [], []
    for number, row in enumerate(value):
        if not isinstance(row, dict):
            errors.append(InputError(f"{name}[{number}]", "invalid", f"Each of “{name}” must be an object."))
            continue
        unknown = unknown_names(row, form.base_fields)
        errors += [replace(error, field=f"{name}[{number}].{error.field}") for error in unknown]
        rows.append(form(row, number + 1))
    return rows, errors


# --- Questions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EnvelopeQuestion:
    """An envelope and what it is for. `typed` and `unit` are the parameters as they were given."""

    envelope: Envelope
    purpose: str
    typed: str
    unit: str


def envelope_question(weights: WeightsForm, rows: Iterable[RowForm], errors: Iterable[InputError]) -> EnvelopeQuestion:
    """The question in the forms.

    Raises: InvalidInput with `errors` and those of the weights.
    """
    found = [*weights.input_errors, *errors]
    if found:
        raise InvalidInput(found)
    cleaned = weights.cleaned_data
    entries = tuple(row.entry for row in rows if isinstance(row, EntryForm))
    envelope = Envelope(cleaned["count"], cleaned["bits"], entries)
    return EnvelopeQuestion(envelope, cleaned["purpose"], _plain(cleaned), cleaned["parameter_unit"])


def _plain(cleaned: dict[str, Any]) -> str:
    """The figure as its address has it: no zeros in front or behind."""
    scale = _PLACES.get(cleaned["parameter_unit"], 0)
    return plain(Decimal(cleaned["count"]).scaleb(-scale))


def plain(amount: Decimal) -> str:
    """An amount in plain digits, without zeros that say nothing."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def chain_of(rows: Iterable[RowForm], errors: Iterable[InputError]) -> Chain:
    """The chain in the forms.

    Raises: InvalidInput with `errors`.
    """
    found = list(errors)
    stages = tuple(row.stage for row in rows if isinstance(row, StageForm)) if not found else ()
    if not found and not stages:
        found.append(InputError("stage_1.name", "required", "Give at least one stage."))
    if found:
        raise InvalidInput(found)
    return Chain(stages)
