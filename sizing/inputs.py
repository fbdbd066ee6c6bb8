"""How values become input: a form over plain values, its errors, and names that no field has.

Absent means the default; given but empty does not, except for money, which may be left empty. Nothing is rounded,
clipped or guessed: what cannot be read exactly is an error that names the limit and the fix.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import ErrorDict
from django.utils.datastructures import MultiValueDict

from catalog.quoting import did_you_mean, shown
from sizing.fields import SeveralField

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
    def unknown_names(self) -> tuple[InputError, ...]:
        return tuple(error for error in self.errors if error.code == "unknown_field")


class InputForm(forms.Form):
    """A form over plain values (a query string, a JSON object, a command's arguments) that knows its defaults."""

    defaults: Mapping[str, str | tuple[str, ...]] = {}

    def __init__(self, data: Data) -> None:
        self.wrong: dict[str, ValidationError] = {}
        self.use_required_attribute = False
        super().__init__(MultiValueDict({name: self._values(data, name) for name in self.base_fields}))

    def _values(self, data: Data, name: str) -> list[str]:
        if name not in data:
            default = self.defaults.get(name, ())
            return [default] if isinstance(default, str) else list(default)
        given = data.getlist(name) if isinstance(data, MultiValueDict) else data[name]
        field = self.base_fields[name]
        several = isinstance(field, SeveralField)
        values = given if isinstance(given, (list, tuple)) else [given]
        label = field.label
        if isinstance(given, (list, tuple)) and not several and len(values) != 1:
            self.wrong[name] = ValidationError(f"{label} must be given once.", "repeated")
            return [str(value) for value in values[-1:]]
        if isinstance(field, SeveralField) and not isinstance(given, (list, tuple)) and given is not None:
            self.wrong[name] = ValidationError(f"{label} must be a list, such as {field.example}.", "invalid")
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


def unknown_names(data: Data, known: Iterable[str]) -> list[InputError]:
    """An error for every name that no field has, with the nearest that one has."""
    allowed = set(known)
    return [
        InputError(shown(name), "unknown_field", f"“{shown(name)}” is not known.{did_you_mean(name, known)}")
        for name in data
        if name not in allowed
    ]
