"""The filters of the catalog page: what may be asked, and which values have something to show."""

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from django import forms
from django.http import QueryDict

from catalog import countries, wording
from catalog.models import SLUG, Gpu, Machine, Tier
from catalog.pricing import TRIAL_TERM_DAYS
from catalog.querysets import MachineQuerySet
from catalog.quoting import did_you_mean, shown
from catalog.units import gib_to_bytes

DEFAULT_TERM_DAYS = 7
TERMS = {"3": "3 days (trial)", "7": "7 days", "30": "30 days"}
SORTS = {
    "price": "Price, lowest first",
    "-price": "Price, highest first",
    "-memory": "Memory per GPU, most first",
    "name": "Name",
}


@dataclass(frozen=True)
class Facets:
    """The values that filters may offer: each belongs to at least one listed machine that is sold for the term."""

    tiers: tuple[str, ...]
    countries: tuple[str, ...]
    gpus: tuple[tuple[str, str], ...]
    gpu_counts: tuple[int, ...]
    memory_classes_gb: tuple[int, ...]

    @classmethod
    def of(cls, machines: MachineQuerySet) -> "Facets":
        """Read in one query, however many machines there are."""
        fields = ("tier", "country", "gpu__slug", "gpu__name", "gpu_count", "gpu__memory_gb_nominal")
        rows = list(machines.order_by().values_list(*fields).distinct())
        places = {row[1] for row in rows} - {None}
        known = countries.names()
        return cls(
            tiers=tuple(tier for tier in Tier.values if any(row[0] == tier for row in rows)),
            countries=tuple(code for code in known if code in places),
            gpus=tuple(sorted({(row[2], row[3]) for row in rows}, key=lambda gpu: gpu[1])),
            gpu_counts=tuple(sorted({row[4] for row in rows})),
            memory_classes_gb=tuple(sorted({row[5] for row in rows} - {None})),
        )


class _OneOf(forms.ChoiceField):
    """A choice of the offered values; whether another one is a value too, the form decides when it cleans."""

    def valid_value(self, value: str) -> bool:
        return True


class _PlainNumber(forms.DecimalField):
    """Digits 0 to 9 and one point; Python would read the digits of every script, and 1e9."""

    def clean(self, value: Any) -> Decimal | None:
        if value not in self.empty_values and not re.fullmatch(r"-?[0-9]{1,40}(\.[0-9]{1,40})?", value.strip()):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        found: Decimal | None = super().clean(value)
        return found


class _PageNumber(forms.IntegerField):
    def clean(self, value: Any) -> int | None:
        if value not in self.empty_values and not re.fullmatch(r"[0-9]{1,40}", value.strip()):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        found: int | None = super().clean(value)
        return found


class _AnyOf(forms.MultipleChoiceField):
    def valid_value(self, value: str) -> bool:
        return value == countries.EU or value in countries.names()


def _decimal_input() -> forms.TextInput:
    # A number input empties itself of what it cannot read; here a person sees again what they wrote.
    return forms.TextInput(attrs={"inputmode": "decimal"})


def _number_messages(name: str) -> dict[str, str]:
    message = f"Enter {name} as a plain number, such as 24 or 0.70."
    return dict.fromkeys(("invalid", "max_digits", "max_decimal_places", "max_whole_digits"), message)


class CatalogFilter(forms.Form):
    """A GET form: its fields are the page's whole state. A bad value is an error at its field, never ignored."""

    tier = forms.ChoiceField(required=False, error_messages={"invalid_choice": "Choose any, secure or community."})
    gpu = _OneOf(label="GPU", required=False)
    gpu_count = _OneOf(label="GPUs per machine", required=False)
    memory_class_gb = _OneOf(
        label="Memory class", required=False, help_text="The round number on the GPU's datasheet, per GPU."
    )
    min_memory_gib = _PlainNumber(
        label="Memory counted, at least",
        required=False,
        min_value=Decimal(0),
        max_digits=9,
        decimal_places=3,
        widget=_decimal_input(),
        help_text="Per GPU, compared exactly: 23.99 GiB is less than 24.",
        error_messages=_number_messages("the memory in GiB"),
    )
    max_usd = _PlainNumber(
        label="Maximum price for the term",
        required=False,
        min_value=Decimal("0.01"),
        max_digits=12,
        decimal_places=2,
        widget=_decimal_input(),
        help_text="USD per lot.",
        error_messages={**_number_messages("the price in USD"), "max_decimal_places": "Use at most two decimals."},
    )
    term_days = forms.ChoiceField(
        label="Term", required=False, error_messages={"invalid_choice": "Choose a term of 3, 7 or 30 days."}
    )
    available = forms.BooleanField(label="Available now only", required=False, widget=forms.CheckboxInput())
    countries = _AnyOf(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Without a choice: anywhere, unknown locations too.",
        error_messages={"invalid_choice": "Choose country codes (ISO 3166-1 alpha-2, such as DE) or EU."},
    )
    sort = forms.ChoiceField(
        label="Order",
        required=False,
        choices=list(SORTS.items()),
        error_messages={"invalid_choice": "Choose an order."},
    )
    page = _PageNumber(
        required=False,
        min_value=1,
        max_value=1_000_000,
        widget=forms.HiddenInput,
        error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), "Pages are counted 1, 2, 3 and so on."),
    )

    def __init__(self, query: QueryDict) -> None:
        data = query.copy()
        for name, value in (("term_days", str(DEFAULT_TERM_DAYS)), ("sort", "price")):
            if not data.get(name):
                data[name] = value
        super().__init__(data)
        self.query = data
        self._offered: dict[str, list[tuple[str, str]]] = {}
        self.unknown_names = [name for name in query if name not in self.fields]
        self.chosen_days = int(data["term_days"]) if data["term_days"] in TERMS else DEFAULT_TERM_DAYS
        self._offer(Facets.of(Machine.objects.listed().sold_for(self.chosen_days)))

    def _offer(self, facets: Facets) -> None:
        """Give each filter the values that have at least one result, and keep what was chosen already."""
        self.facets = facets
        listed = Machine.objects.listed()
        terms = [(days, label) for days, label in TERMS.items() if days == "7" or listed.sold_for(int(days)).exists()]
        self._choices("term_days", terms, placeholder=None)
        self._choices("tier", [(tier, Tier(tier).label) for tier in facets.tiers], placeholder="Any")
        self._choices("gpu", list(facets.gpus), placeholder="Any")
        self._choices("gpu_count", [(str(n), str(n)) for n in facets.gpu_counts], placeholder="Any")
        classes = [(str(gb), f"{gb} GB class or more") for gb in facets.memory_classes_gb]
        self._choices("memory_class_gb", classes, placeholder="Any")
        places = list(facets.countries)
        if countries.eu_members() & set(places):
            places.insert(0, countries.EU)
        chosen = [code for code in self.query.getlist("countries") if code not in places and code in countries.names()]
        self._choices("countries", [(code, wording.country(code)) for code in [*places, *chosen]], placeholder=None)
        if self.query.get("tier") == "any":
            self._add_choice("tier", "any", "Any")

    def _choices(self, name: str, offered: list[tuple[str, str]], *, placeholder: str | None) -> None:
        first = [] if placeholder is None else [("", placeholder)]
        self._offered[name] = [*first, *offered]
        cast(forms.ChoiceField, self.fields[name]).choices = self._offered[name]

    def _add_choice(self, name: str, value: str, label: str) -> None:
        self._choices(name, [*self._offered[name], (value, label)], placeholder=None)

    def _is_offered(self, name: str, value: str) -> bool:
        return any(value == offered for offered, _ in self._offered[name])

    def clean_available(self) -> bool:
        if self.data.get("available", "") not in ("", "on", "true", "false"):
            raise forms.ValidationError("Write on, or leave it out.")
        return bool(self.cleaned_data["available"])

    def clean_term_days(self) -> int:
        return int(self.cleaned_data["term_days"])

    def clean_tier(self) -> str:
        return "" if self.cleaned_data["tier"] == "any" else self.cleaned_data["tier"]

    def clean_gpu(self) -> str:
        slug: str = self.cleaned_data["gpu"]
        if self._is_offered("gpu", slug):
            return slug
        # The pattern first: PostgreSQL refuses a text with a NUL byte outright.
        known = SLUG.match(slug) and Gpu.objects.filter(slug=slug).first()
        if not known:
            raise forms.ValidationError("Choose a GPU from the list: this name is not one the catalog knows.")
        self._add_choice("gpu", known.slug, known.name)
        return slug

    def clean_gpu_count(self) -> int | None:
        return self._whole("gpu_count", 16, "Enter the number of GPUs as a whole number from 1 to 16.")

    def clean_memory_class_gb(self) -> int | None:
        return self._whole("memory_class_gb", 9999, "Enter the class as a whole number of GB, such as 24.")

    def _whole(self, name: str, most: int, message: str) -> int | None:
        text: str = self.cleaned_data[name]
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= most):
            raise forms.ValidationError(message)
        if not self._is_offered(name, text):
            label = f"{text} GB class or more" if name == "memory_class_gb" else text
            self._add_choice(name, text, label)
        return int(text)

    def clean(self) -> dict[str, Any]:
        known = ", ".join(self.fields)
        for name in self.unknown_names:
            instead = did_you_mean(name, self.fields) or f" It knows: {known}."
            self.add_error(None, f"“{shown(name)}” is no filter of this page.{instead}")
        for name in self.fields:
            if name != "countries" and len(self.query.getlist(name)) > 1:
                self.add_error(name, "Give one value only.")
        return self.cleaned_data

    def machines(self, now: datetime) -> MachineQuerySet:
        """The listed machines that the filters let through, in the order asked for. Only for a valid form."""
        asked = self.cleaned_data
        days = asked["term_days"]
        found = Machine.objects.listed().sold_for(days)
        if asked["available"]:
            found = found.available(now=now)
        if asked["tier"]:
            found = found.filter(tier=asked["tier"])
        if asked["gpu"]:
            found = found.filter(gpu__slug=asked["gpu"])
        if asked["gpu_count"] is not None:
            found = found.filter(gpu_count=asked["gpu_count"])
        if asked["memory_class_gb"] is not None:
            found = found.of_memory_class(asked["memory_class_gb"])
        if asked["min_memory_gib"] is not None:
            found = found.with_memory(gib_to_bytes(asked["min_memory_gib"]))
        if asked["max_usd"] is not None:
            found = found.at_most(asked["max_usd"], days=days)
        if asked["countries"]:
            found = found.in_countries(countries.expand(asked["countries"]))
        return self._ordered(found, days)

    def _ordered(self, found: MachineQuerySet, days: int) -> MachineQuerySet:
        match self.cleaned_data["sort"]:
            case "-memory":
                return found.most_memory_first(days)
            case "name":
                return found.order_by("name", "id")
            case order:
                return found.cheapest_first(days, reverse=order == "-price")

    @property
    def offers_trials(self) -> bool:
        return self._is_offered("term_days", str(TRIAL_TERM_DAYS))
