"""The planner's page: what is asked, at today's prices of one machine, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from catalog.models import Machine
from rentals import planner
from rentals.baskets import MAX_LOTS
from rentals.planner import MAX_DAYS, Plan
from rentals.quotes import terms_offered
from sizing.explain.words import usd
from sizing.fields import AmountField, WholeNumberField

NAMES = ("machine", "lots", "days", "until", "budget_usd")
GOALS = ("days", "until", "budget_usd")


class DaysField(WholeNumberField):
    """Of the three goals one is given: an empty one is no mistake."""

    def clean(self, value: Any) -> Any:
        return None if value in (None, "") else super().clean(value)


class DayField(forms.DateField):
    """A day in the digits 0 to 9; the framework reads those of every script."""

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and not value.isascii():
            raise ValidationError(self.error_messages["invalid"], "invalid")
        return super().to_python(value)


class PlannerForm(forms.Form):
    """A machine and lots, and one of: days, a last day, a budget."""

    machine = forms.ModelChoiceField(
        Machine.objects.none(),
        empty_label="Choose a machine",
        error_messages={
            "required": "Choose a machine.",
            "invalid_choice": "This machine is not offered at the moment. Choose another.",
        },
    )
    lots = WholeNumberField(label="Lots", most=MAX_LOTS, example=1)
    days = DaysField(label="Days", most=MAX_DAYS, example=45)
    until = DayField(
        label="Last day",
        required=False,
        input_formats=["%Y-%m-%d"],
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text="To the end of that day in UTC.",
        error_messages={"invalid": "Write the day as year-month-day, such as 2026-09-30."},
    )
    budget_usd = AmountField(
        label="Budget", unit="USD", least=Decimal("0.01"), most=Decimal("9999999999.99"), places=2,
        example="600.00",
    )  # fmt: skip

    def __init__(self, *args: Any, machines: QuerySet[Machine], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["machine"]
        field.queryset = machines  # type: ignore[attr-defined]
        field.label_from_instance = _label  # type: ignore[attr-defined]

    def clean_until(self) -> Any:
        until = self.cleaned_data["until"]
        if until is not None and not 2000 <= until.year <= 9998:
            raise ValidationError("Choose a day within the next ten years.", "max_value")
        return until

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        given = [name for name in GOALS if self.data.get(name, "").strip()]
        if len(given) != 1:
            message = "Give one of the three: days, a day, or a budget."
            raise ValidationError(message, "repeated" if given else "required")
        return cleaned


@dataclass(frozen=True)
class Planned:
    """A plan in words: `wanted_days` is None where a budget was the goal; `fewest` where fewer orders cost more."""

    machine: Machine
    lots: int
    starts_at: datetime
    plan: Plan
    prices_usd: Mapping[int, Decimal]
    wanted_days: int | None = None
    wanted_until: datetime | None = None
    budget_usd: Decimal | None = None
    fewest: Plan | None = None

    @property
    def ends_at(self) -> datetime:
        return self.plan.ends_at(self.starts_at)

    @property
    def overshoot(self) -> timedelta:
        wanted = self.wanted_until or self.starts_at + timedelta(days=self.wanted_days or self.plan.days)
        return self.ends_at - wanted

    @property
    def overshoot_text(self) -> str:
        days, hours = self.overshoot.days, self.overshoot.seconds // 3600
        words = [f"{number} {unit}{'s' * (number != 1)}" for number, unit in ((days, "day"), (hours, "hour")) if number]
        return " and ".join(words) or "less than an hour"

    @property
    def longer_text(self) -> str:
        """By how much it lasts longer than what was asked."""
        return self.overshoot_text if self.overshoot else "Not at all"

    @property
    def chosen_text(self) -> str:
        """Why these terms."""
        what = "longest the budget pays for" if self.budget_usd is not None else "cheapest that covers it"
        return f"The {what}, at today's prices, longest terms first."

    @property
    def fewest_text(self) -> str:
        if self.fewest is None or self.extra_usd is None:
            return ""
        terms = " + ".join(f"{number} × {days} days" for days, number in self.fewest.counts())
        return (
            f"With fewer orders: {terms} for {usd(self.fewest.total_usd)}, which is {usd(self.extra_usd)} more and "
            f"lasts {self.fewest.days} days."
        )

    @property
    def reserves_text(self) -> str:
        return "Nothing is reserved, neither the first term nor a later one."

    @property
    def stock_text(self) -> str:
        """What may come in between."""
        free = self.machine.lots_to_sell
        each = "Each term is an order of its own, at the price and with the stock of the moment it is placed;"
        if free >= self.lots:
            return f"{each} the lots may be gone by then."
        lots = "lot of this machine is" if free == 1 else "lots of this machine are"
        return f"{each} at the moment only {free} {lots} free."

    @property
    def left_usd(self) -> Decimal | None:
        return None if self.budget_usd is None else self.budget_usd - self.plan.total_usd

    @property
    def extra_usd(self) -> Decimal | None:
        return self.fewest.total_usd - self.plan.total_usd if self.fewest else None

    @property
    def steps(self) -> list[tuple[int, int, Decimal, Decimal]]:
        """(days, how many orders, price of each, amount)."""
        return [
            (days, number, self.prices_usd[days], self.prices_usd[days] * number) for days, number in self.plan.counts()
        ]

    @property
    def asked(self) -> dict[str, Any]:
        """The question, by the names of its fields."""
        goal: dict[str, Any] = {"days": self.wanted_days}
        if self.budget_usd is not None:
            goal = {"budget_usd": str(self.budget_usd)}
        elif self.wanted_until is not None:
            goal = {"until": f"{self.wanted_until - timedelta(days=1):%Y-%m-%d}"}
        return {"machine": self.machine.pk, "lots": self.lots, **goal}

    @property
    def review_query(self) -> str:
        """The review of the first term."""
        return urlencode({"machine": self.machine.pk, "term_days": self.plan.terms[0], "lots": self.lots})


def machines_to_plan() -> QuerySet[Machine]:
    return Machine.objects.listed().with_facts().order_by("name", "pk")


def plan(cleaned: Mapping[str, Any], *, now: datetime) -> Planned:
    """The plan for a valid form.

    Raises: ValidationError when nothing can be planned, with the field that can mend it.
    """
    machine, lots = cleaned["machine"], cleaned["lots"]
    prices = {days: machine.package_usd(days) * lots for days in terms_offered(machine)}
    if not prices:
        raise ValidationError({"machine": "This machine has no term on offer. Choose another."})
    if cleaned["budget_usd"] is not None:
        budget = cleaned["budget_usd"]
        longest = planner.longest_within(prices, budget)
        if longest is None:
            least = min(prices.items(), key=lambda pair: pair[1])
            said = f"The least term costs {least[1]} USD, for {least[0]} days."
            raise ValidationError({"budget_usd": ValidationError(said, "min_value")})
        return Planned(machine, lots, now, longest, prices, budget_usd=budget)
    until = None
    days = cleaned["days"]
    if days is None:
        day = cleaned["until"]
        until = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
        days = planner.covered_days(now, until)
        if not 1 <= days <= MAX_DAYS:
            said = "Choose today or a later day, within the next ten years."
            raise ValidationError({"until": ValidationError(said, "min_value" if days < 1 else "max_value")})
    best, few = planner.cheapest_cover(prices, days), planner.fewest_cover(prices, days)
    fewest = few if len(few.terms) < len(best.terms) else None
    return Planned(machine, lots, now, best, prices, wanted_days=days, wanted_until=until, fewest=fewest)


def _label(machine: Machine) -> str:
    """Nothing twice: many names are the GPUs and the place already. A narrow list cuts off the end."""
    gpus = f"{machine.gpu.name} × {machine.gpu_count}"
    words = machine.name if gpus in machine.name else f"{gpus}, {machine.name}"
    return f"{words}, {machine.provider.name}"
