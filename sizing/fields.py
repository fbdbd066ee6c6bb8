"""Fields that read a value exactly or say what is wrong with it, naming the limit and the fix."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from catalog import countries
from catalog.quoting import shown

_COUNTRY_HABITS = {"UK": "GB", "ENGLAND": "GB", "EL": "GR", "USA": "US", "EUROPE": countries.EU}


class TextField(forms.CharField):
    """Text whose own rule decides which characters are allowed, so that its sentence can say so."""

    def __init__(self, *, hint: str = "", **kwargs: Any) -> None:
        super().__init__(help_text=hint, **kwargs)
        # CharField's own refusal of NUL bytes names neither field nor fix; every field here refuses them itself.
        self.validators = []


class WholeNumberField(TextField):
    """A whole number in the digits 0 to 9, with its least and greatest value."""

    def __init__(
        self, *, label: str, least: int = 1, most: int | None = None, example: int, why: str = "", hint: str = ""
    ) -> None:
        super().__init__(
            label=label,
            hint=hint,
            error_messages={"required": f"{label} is empty: give a whole number, such as {example}."},
            # Not type=number: browsers hand over text they cannot read as nothing at all, and nothing has no sentence.
            widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
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
    """A decimal amount of a unit, exactly as written: a comma may stand for the point, thousands are not separated.

    `by_hand` is for pages alone: 1.500 is fifteen hundred to half of the world, so it is asked which is meant.
    """

    def __init__(
        self,
        *,
        label: str,
        unit: str,
        least: Decimal,
        most: Decimal,
        places: int,
        example: str,
        hint: str = "",
        by_hand: bool = False,
    ) -> None:
        widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
        super().__init__(label=label, required=False, hint=hint, widget=widget)
        self.unit, self.least, self.most, self.places, self.example = unit, least, most, places, example
        self.by_hand = by_hand

    def clean(self, value: Any) -> Decimal | None:  # CharField gives text, this an amount
        text = super().clean(value)
        if text == "":
            return None
        written = re.fullmatch(r"(-?)([0-9]{1,40})(?:([.,])([0-9]{1,40}))?", text)
        if not written:
            raise ValidationError(self._unreadable(text), "invalid")
        sign, whole, point, fraction = written.groups(default="")
        if len(fraction) == 3 and whole.strip("0") and (point == "," or self.by_hand):
            raise ValidationError(f"{self.label} “{shown(text)}” {self._readings(whole, point, fraction)}", "invalid")
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

    def _readings(self, whole: str, point: str, fraction: str) -> str:
        """What a figure such as 1,500 may mean; only readings that the field takes, each as exactly that amount."""
        thousands, decimals = f"{whole}{fraction}", fraction.rstrip("0")
        if len(decimals) > self.places:
            sign = "comma" if point == "," else "point"
            return f"can be read in two ways: write {thousands}, without the {sign}."
        amount = f"{whole}.{decimals}" if decimals else whole
        return f"can be read in two ways: write {thousands} or {amount}."

    def _unreadable(self, text: str) -> str:
        return (
            f"{self.label} must be an amount in {self.unit} in plain digits, such as {self.example}; "
            f"“{shown(text)}” is not."
        )


class WordField(TextField):
    """One of a few known words."""

    def __init__(self, *, label: str, words: Mapping[str, str], required_message: str) -> None:
        super().__init__(
            label=label,
            error_messages={"required": required_message},
            widget=forms.RadioSelect(choices=list(words.items())),
        )
        self.words = words

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        if text not in self.words:
            raise ValidationError(
                f"{self.label} must be {either(self.words)}; “{shown(text)}” is not.", "invalid_choice"
            )
        return text


class NumberChoiceField(WholeNumberField):
    """One of a few known numbers."""

    def __init__(self, *, label: str, numbers: Iterable[int], unit: str) -> None:
        self.numbers, self.unit = tuple(numbers), unit
        super().__init__(label=label, least=-(10**40), example=self.numbers[0])
        self.widget = forms.RadioSelect(choices=[(str(number), f"{number} {unit}") for number in self.numbers])

    def clean(self, value: Any) -> int:
        number = super().clean(value)
        if number not in self.numbers:
            raise ValidationError(f"{self.label} must be {either(self.numbers)} {self.unit}.", "invalid_choice")
        return number


class SeveralField(forms.Field):
    """Any number of values, in JSON a list. `example` is such a list."""

    widget = forms.CheckboxSelectMultiple
    example = "[]"


class CountriesField(SeveralField):
    """Country codes and `EU`, each once, `EU` first and then by code."""

    example = '["EU", "US"]'

    def clean(self, value: Any) -> tuple[str, ...]:
        if any(text.strip() == "" for text in value or []):
            # No list at all means anywhere; a filter that was meant must not vanish with its value.
            raise ValidationError("Countries has an empty value: give codes, or leave it out for anywhere.", "invalid")
        chosen = {self._code(text) for text in value or []}
        return tuple(sorted(chosen, key=lambda code: (code != countries.EU, code)))

    def _code(self, text: str) -> str:
        code = text.strip().upper() if text.isascii() else ""
        if code == countries.EU or code in countries.names():
            return code
        by_name = {name.upper(): known for known, name in countries.names().items()}
        meant = _COUNTRY_HABITS.get(code) or by_name.get(code)
        fix = f"write {meant}" if meant else "write EU or a code such as DE, each as its own value"
        raise ValidationError(f"“{shown(text)}” is not a country code: {fix}.", "invalid_choice")


class WordsField(SeveralField):
    """One or more of a few known words, each once and in their own order; a text may hold several between commas."""

    def __init__(self, *, label: str, words: Iterable[str], hint: str = "") -> None:
        self.words = tuple(words)
        super().__init__(
            label=label,
            help_text=hint,
            widget=forms.CheckboxSelectMultiple(choices=[(word, word) for word in self.words]),
        )
        self.example = '["q", "v"]'

    def clean(self, value: Any) -> tuple[str, ...]:
        chosen = {word.strip() for text in value or [] for word in text.split(",")} - {""}
        if not chosen:
            raise ValidationError(f"{self.label} are empty: give one or more of {', '.join(self.words)}.", "required")
        if unknown := sorted(chosen - set(self.words)):
            raise ValidationError(
                f"{self.label} must be one or more of {either(self.words)}; “{shown(unknown[0])}” is not.",
                "invalid_choice",
            )
        return tuple(word for word in self.words if word in chosen)


def either(words: Iterable[object], joined: str = "or") -> str:
    """Words as one sentence has them: "a", "a or b", "a, b or c"."""
    *most, last = map(str, words)
    return f"{', '.join(most)} {joined} {last}" if most else last
