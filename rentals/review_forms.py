"""The review page's input: the same names in the address of the page and in the form that confirms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.utils.datastructures import MultiValueDict

from catalog.pricing import TERMS_DAYS
from catalog.quoting import shown
from rentals.baskets import MAX_LOTS, MAX_NOTES, Basket, ChosenOption
from rentals.errors import InvalidBasket
from rentals.models.orders import Environment
from sizing.fields import NumberChoiceField, WholeNumberField, WordField
from sizing.forms import NAMES as QUESTION_NAMES

OWN_NAMES = (
    "machine",
    "term_days",
    "lots",
    "option",
    "environment",
    "notes",
    "community_acknowledged",
    "misfit_acknowledged",
    "expected_total_usd",
    "idempotency_key",
)
# Names of the answer the machine was chosen from; the page carries them along unread, for the way back and the sizing.
CARRIED_NAMES = tuple(name for name in QUESTION_NAMES if name not in OWN_NAMES)
# What nobody can say for a person: kept out of addresses.
TICKS = ("community_acknowledged", "misfit_acknowledged")
_BUTTONS = ("csrfmiddlewaretoken", "update")


class OptionsInput(forms.SelectMultiple):
    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return data.getlist(name)


class OptionsField(forms.Field):
    """`option=storage-500` or `option=storage-500:2`, repeatable; empty ones count as not chosen."""

    widget = OptionsInput

    def clean(self, value: list[str] | None) -> tuple[ChosenOption, ...]:
        return tuple(self._chosen(text) for text in value or [] if text)

    @staticmethod
    def _chosen(text: str) -> ChosenOption:
        slug, colon, quantity = text.partition(":")
        if colon and not re.fullmatch("[0-9]{1,6}", quantity):
            raise ValidationError(f"“{shown(text)}” needs a whole number after the colon, such as {shown(slug)}:2.")
        try:
            return ChosenOption(slug, int(quantity) if colon else 1)
        except InvalidBasket as error:
            raise ValidationError(error.message) from error


class NotesField(forms.CharField):
    """Plain text of a few lines; a browser's line ends are not a difference."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self.validators = []

    def clean(self, value: Any) -> str:
        text = super().clean(value).replace("\r\n", "\n")
        if len(text) > MAX_NOTES or "\x00" in text:
            raise ValidationError(f"Write at most {MAX_NOTES} characters of plain text.")
        return text


class TickField(forms.BooleanField):
    """An acknowledgement: the value that the page's own box sends, or nothing. Anything else was not a tick."""

    TICKED = "on"

    def __init__(self, **kwargs: Any) -> None:
        # The box itself takes every text for a tick, and shows itself ticked again.
        super().__init__(required=False, widget=forms.CheckboxInput(check_test=self._is_ticked), **kwargs)
        self.widget.value_from_datadict = lambda data, files, name: data.get(name, "")

    def _is_ticked(self, value: object) -> bool:
        return value == self.TICKED

    def to_python(self, value: object) -> bool:
        if value not in ("", None, self.TICKED):
            raise ValidationError(f"{self.label}: tick the box to say so; “{shown(value)}” is no tick.", "invalid")
        return value == self.TICKED


class ReviewForm(forms.Form):
    """What the order will be. When valid, `basket` can be built; prices and stock are looked at elsewhere."""

    machine = WholeNumberField(label="Machine", most=2**63 - 1, example=1)
    term_days = NumberChoiceField(label="Term", numbers=TERMS_DAYS, unit="days")
    lots = WholeNumberField(label="Lots", most=MAX_LOTS, example=1)
    option = OptionsField(label="Options", required=False)
    environment = WordField(
        label="Requested environment", words=dict(Environment.choices), required_message="Choose an environment."
    )
    notes = NotesField(
        label="Notes for the environment",
        widget=forms.Textarea(attrs={"rows": 2, "maxlength": MAX_NOTES}),
        help_text="Versions or images you would like prepared.",
    )
    community_acknowledged = TickField(label="I understand the provider can read the session's memory")
    misfit_acknowledged = TickField(label="I order this machine although the workload does not fit it.")

    defaults = {"term_days": "7", "lots": "1", "environment": "vllm"}

    def __init__(self, data: MultiValueDict) -> None:
        filled = MultiValueDict({name: data.getlist(name) for name in data})
        for name, value in self.defaults.items():
            if name not in filled:
                filled[name] = value
        super().__init__(filled)
        self.fields["machine"].widget = forms.HiddenInput()
        self.fields["lots"].widget.attrs["inputmode"] = "numeric"
        self.fields["environment"].widget = forms.Select(choices=Environment.choices)

    def basket(self, workload: dict[str, Any] | None) -> Basket:
        """Raises: InvalidBasket."""
        cleaned = self.cleaned_data
        return Basket(
            machine_id=cleaned["machine"],
            term_days=cleaned["term_days"],
            lots=cleaned["lots"],
            options=cleaned["option"],
            environment=cleaned["environment"],
            environment_notes=cleaned["notes"],
            community_acknowledged=cleaned["community_acknowledged"],
            workload=workload,
            misfit_acknowledged=cleaned["misfit_acknowledged"],
        )


def unknown_names(data: Mapping[str, Any]) -> list[str]:
    """Names in the address that neither this page nor the answer it came from has."""
    known = {*OWN_NAMES, *CARRIED_NAMES, *_BUTTONS}
    return [shown(name) for name in data if name not in known]


def carried(data: MultiValueDict) -> list[tuple[str, str]]:
    return [(name, value) for name in CARRIED_NAMES for value in data.getlist(name)]


def review_query(data: MultiValueDict, **changes: object) -> str:
    """The page's own address again: its choices, without what belongs to one confirmation."""
    names = ("machine", "term_days", "lots", "option", "environment", "notes")
    pairs = [
        (name, value)
        for name in names
        if name not in changes
        for value in data.getlist(name)
        if value or name == "lots"
    ]
    pairs += [(name, str(value)) for name, value in changes.items()]
    return urlencode(pairs + carried(data), errors="replace")


def expected_total(text: str) -> Decimal:
    """The total the person saw, from the page's hidden field.

    Raises: ValidationError when it was tampered with beyond reading.
    """
    if not re.fullmatch(r"[0-9]{1,10}\.[0-9]{2}", text):
        raise ValidationError("The total on the page could not be read. Check the total below and confirm again.")
    return Decimal(text)
