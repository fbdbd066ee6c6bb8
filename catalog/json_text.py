"""JSON typed into a form of the administration: what cannot be read or kept is an error at its field."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput

from catalog.storable import storable

DEEPEST = 64


class JSONText(forms.JSONField):
    """Django's own field ends the request for what is nested too deeply, and takes texts that no database keeps."""

    def to_python(self, value: Any) -> Any:
        try:
            found = super().to_python(value)
        # Python reads no number of thousands of digits.
        except (RecursionError, ValueError):
            raise ValidationError(self.error_messages["invalid"], code="invalid", params={"value": value}) from None
        if problem := unkeepable(found):
            raise ValidationError(problem, code="unkeepable")
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            found = super().bound_data(data, initial)
        except (RecursionError, ValueError):
            return InvalidJSONInput(data)
        return InvalidJSONInput(data) if unkeepable(found) else found

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return super().has_changed(initial, data)
        except (RecursionError, ValueError):
            return True


def unkeepable(value: Any) -> str:
    """Why a value that was read cannot be kept; empty when it can."""
    rest, depth = [value], 0
    while rest:
        depth += 1
        if depth > DEEPEST:
            return f"This is nested more than {DEEPEST} deep: write it flatter."
        inner = [one for one in rest if isinstance(one, dict | list)]
        rest = [each for one in inner for each in (one.values() if isinstance(one, dict) else one)]
        names = [name for one in inner if isinstance(one, dict) for name in one]
        for each in (*rest, *names, value):
            if isinstance(each, str) and not storable(each):
                return (
                    "A text has a character that cannot be kept (NUL, or half of a pair such as \\ud800): leave it out."
                )
            if isinstance(each, float) and not (-1e308 < each < 1e308):
                return "A number in it is not a number (NaN) or too large: write a plain number."
    return ""
