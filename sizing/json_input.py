"""JSON bodies: the kind of each value, checked before the forms read them.

A page gives texts and JSON has kinds, and a client that sends `true` for a number or a float for money has a fault that
no reading should hide. What the values mean is the forms' question.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rest_framework.exceptions import ErrorDetail, ValidationError

from catalog.quoting import shown
from sizing.forms import InputError, PreferencesForm, WorkloadForm, unknown_names

TEXT, WHOLE, AMOUNT, TEXTS = "a text", "a whole number", 'an amount in quotes, such as "2.50"', "a list of texts"
FLAG = "true or false"
WORKLOAD_KINDS = {
    "task": TEXT,
    "model": TEXT,
    "shape": TEXT,
    "precision_bits": WHOLE,
    "context": WHOLE,
    "requests": WHOLE,
    "streams": WHOLE,
    "sequence_length": WHOLE,
    "batch_size": WHOLE,
    "rank": WHOLE,
    "target_modules": TEXTS,
    "method": TEXT,
    "gpu_memory_gib": AMOUNT,
    "gpu_memory_gb": AMOUNT,
    "reserve_gib": AMOUNT,
    "reserve_reason": TEXT,
}
PREFERENCE_KINDS = {
    "budget_usd": AMOUNT,
    "max_hourly_usd": AMOUNT,
    "term_days": WHOLE,
    "lots": WHOLE,
    "tier": TEXT,
    "countries": TEXTS,
}
_LABELS = {
    name: str(field.label) for form in (WorkloadForm, PreferencesForm) for name, field in form.base_fields.items()
}

Body = Mapping[str, Any]


def body_problems(body: object, known: Iterable[str]) -> list[InputError]:
    """What is wrong with the outermost object."""
    if not isinstance(body, Mapping):
        return [InputError("body", "invalid", "The body must be a JSON object.")]
    return unknown_names(dict.fromkeys(body), tuple(known))


def part(body: Body, name: str, *, required: bool) -> tuple[Body, list[InputError]]:
    """An object inside the body, empty when it is not there."""
    value = body.get(name)
    if value is None:
        return {}, [InputError(name, "required", f"Give the object “{name}”.")] if required else []
    if not isinstance(value, Mapping):
        return {}, [InputError(name, "invalid", f"“{name}” must be an object, not {kind_of(value)}.")]
    return value, []


def kind_problems(values: Body, kinds: Mapping[str, str]) -> list[InputError]:
    """Values of the wrong kind, in a list each by its place. Null is no value, and of no kind."""
    found = []
    for name, kind in kinds.items():
        value, label = values.get(name), _LABELS.get(name, name)
        if kind == TEXTS and isinstance(value, list):
            for place, item in enumerate(value):
                if not isinstance(item, str):
                    detail = f"{label}: entry {place} of the list must be a text, not {kind_of(item)}."
                    found.append(InputError(f"{name}[{place}]", "invalid", detail))
        elif value is not None and not _is(kind, value):
            found.append(InputError(name, "invalid", f"{label} must be {kind}, not {kind_of(value)}."))
    return found


def told_by(kinds: Iterable[InputError]) -> set[str]:
    """The fields of which nothing more is said when a value has the wrong kind: its own, and a reserve's other half."""
    fields = {error.field.partition("[")[0] for error in kinds}
    for field in list(fields):
        part_name, dot, name = field.rpartition(".")
        if name in _HALVES:
            fields.add(f"{part_name}{dot}{_HALVES[name]}")
    return fields


_HALVES = {"reserve_gib": "reserve_reason", "reserve_reason": "reserve_gib"}


def _is(kind: str, value: object) -> bool:
    if kind == WHOLE:
        return type(value) is int
    if kind == FLAG:
        return isinstance(value, bool)
    if kind == TEXTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, str)


def kind_of(value: object) -> str:
    """The kind of a JSON value in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "a number"
    if isinstance(value, float):
        return "a number with a point or an exponent"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"


class InvalidBody(ValidationError):
    """A body that is not a question: every error at its dotted field, such as `workload.context`."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.input_errors = tuple(replace(error, field=shown(error.field)) for error in errors)
        super().__init__([ErrorDetail(error.detail, error.code) for error in self.input_errors])
