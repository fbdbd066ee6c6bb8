"""The question that a machine was chosen from, as the review page carries it: read again, shown where it is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.utils.datastructures import MultiValueDict

from sizing.answers import Preferences
from sizing.explain import miss_text
from sizing.forms import PREFERENCE_NAMES, PreferencesForm, WorkloadForm
from sizing.inputs import InputError
from sizing.matching import misses

if TYPE_CHECKING:
    from rentals.quotes import Quote

# Term and lots are the order's own fields.
WISHES = tuple(name for name in PREFERENCE_NAMES if name not in ("term_days", "lots"))
_LABELS = {**PreferencesForm.base_fields, **WorkloadForm.base_fields}


@dataclass(frozen=True)
class WrongAnswer:
    """A part of the question that cannot be read, with what is wrong with it, to be mended on the page."""

    name: str
    values: tuple[str, ...]
    problem: str

    @property
    def label(self) -> str:
        return label_of(self.name)

    @property
    def anchor(self) -> str:
        return f"id_{self.name}"


def label_of(name: str) -> str:
    field = _LABELS.get(name)
    return str(field.label) if field is not None and field.label else name.replace("_", " ").capitalize()


def wishes_in(data: MultiValueDict) -> tuple[Preferences | None, list[InputError]]:
    """Budget, hourly maximum, tier and countries of the question, or what is wrong with them."""
    given = MultiValueDict({name: data.getlist(name) for name in WISHES if name in data})
    # Left empty is not wished for; only money may be left empty in a question.
    for name in [name for name in given if not any(given.getlist(name))]:
        del given[name]
    form = PreferencesForm(given)
    errors = form.input_errors
    return (None if errors else form.preferences), errors


def wrong_answers(data: MultiValueDict, errors: list[InputError]) -> list[WrongAnswer]:
    found: dict[str, WrongAnswer] = {}
    for error in errors:
        found.setdefault(error.field, WrongAnswer(error.field, tuple(data.getlist(error.field)) or ("",), error.detail))
    return list(found.values())


def missed_wishes(wishes: Preferences, offer: Quote) -> list[str]:
    """What of the question this order does not meet, options included in its total."""
    wished = replace(wishes, term_days=offer.basket.term_days, lots=offer.basket.lots)
    missed = misses(wished, offer.machine, offer.unit_usd, offer.total_usd)
    return [miss_text(miss, offer.machine) for miss in missed]
