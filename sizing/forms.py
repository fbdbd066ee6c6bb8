"""Input for pages, API and command: one set of names, codes and sentences, and either a question or its errors."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from catalog.models import Tier
from catalog.pricing import TERMS_DAYS
from catalog.quoting import shown
from sizing.answers import ANY_TIER, Preferences, Question
from sizing.engine.workloads import Workload
from sizing.fields import AmountField, CountriesField, NumberChoiceField, WholeNumberField, WordField
from sizing.inputs import Data, InputError, InputForm, InvalidInput, unknown_names
from sizing.own_shape import OwnShape
from sizing.task_fields import TASKS, SizedModel, figure_label
from sizing.workload_form import MAX_REASON_LENGTH, MAX_RESERVE_GIB, WORKLOAD_NAMES, WorkloadForm

__all__ = [
    "MAX_REASON_LENGTH",
    "MAX_RESERVE_GIB",
    "NAMES",
    "PREFERENCE_NAMES",
    "TASKS",
    "WORKLOAD_NAMES",
    "Data",
    "InputError",
    "InputForm",
    "InvalidInput",
    "PreferencesForm",
    "WorkloadForm",
    "figure_label",
    "nested_question_from",
    "question_from",
    "shown",
    "unknown_names",
    "workload_from",
]

OwnModels = Mapping[str, OwnShape]
"""A caller's own models, by the slug that `model` names as `own:<slug>`."""

MAX_LOTS = 1000
MAX_BUDGET_USD = Decimal("9999999999.99")
MAX_HOURLY_USD = Decimal("999999.9999")
TIERS = {ANY_TIER: "Any", Tier.SECURE.value: Tier.SECURE.label, Tier.COMMUNITY.value: Tier.COMMUNITY.label}


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


PREFERENCE_NAMES = tuple(PreferencesForm.base_fields)
NAMES = WORKLOAD_NAMES + PREFERENCE_NAMES


# --- From values to a question ------------------------------------------------------------------------------------


def question_from(data: Data, *, own_models: OwnModels | None = None) -> Question:
    """The question in flat values: a page's query string, or a plain mapping (`countries` is a list).

    Raises: InvalidInput.
    """
    workload, preferences = WorkloadForm(data, own_models=own_models), PreferencesForm(data)
    errors = unknown_names(data, NAMES) + workload.input_errors + preferences.input_errors
    if errors:
        raise InvalidInput(errors)
    return Question(workload.ai_model, workload.workload, preferences.preferences)


def nested_question_from(
    workload: Data, preferences: Data, *, own_models: OwnModels | None = None, brought: OwnShape | None = None
) -> Question:
    """The question in two objects, as the API has it; errors are at `workload.…` and `preferences.…`.

    Raises: InvalidInput.
    """
    first = WorkloadForm(workload, own_models=own_models, brought=brought)
    second = PreferencesForm(preferences)
    parts = {
        "workload": unknown_names(workload, WORKLOAD_NAMES) + first.input_errors,
        "preferences": unknown_names(preferences, PREFERENCE_NAMES) + second.input_errors,
    }
    errors = [InputError(f"{part}.{error.field}", error.code, error.detail) for part in parts for error in parts[part]]
    if errors:
        raise InvalidInput(errors)
    return Question(first.ai_model, first.workload, second.preferences)


def workload_from(
    data: Data, *, own_models: OwnModels | None = None, brought: OwnShape | None = None
) -> tuple[SizedModel | None, Workload]:
    """The model and the workload alone.

    Raises: InvalidInput.
    """
    form = WorkloadForm(data, own_models=own_models, brought=brought)
    if errors := unknown_names(data, WORKLOAD_NAMES) + form.input_errors:
        raise InvalidInput(errors)
    return form.ai_model, form.workload
