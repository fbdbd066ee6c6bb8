"""The policy's page as a form: kinds and ranges; what a rule means is `rentals.policies`' to say."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from catalog.models import Tier
from rentals.models import OrganizationPolicy
from rentals.models.organizations import ORDERING_ROLES
from rentals.policies import RULES
from rentals.review_forms import TickField
from sizing.explain.words import usd
from sizing.fields import AmountField, CountriesField, TextField

ORDER_ROLES = [
    ("member", "Members, admins and owners"),
    ("admin", "Admins and owners"),
    ("owner", "Owners only"),
]
_MOST_USD = Decimal("9999999999.99")


class CountriesTextField(TextField):
    """Country codes and EU between commas; empty is every country."""

    def clean(self, value: Any) -> list[str] | None:  # CharField gives text, this a list
        text = super().clean(value)
        codes = CountriesField(required=False).clean([part.strip() for part in text.split(",") if part.strip()])
        return list(codes) or None

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value


class PolicyForm(forms.Form):
    """When valid, `rules` has every rule of a policy by its name."""

    tiers = forms.MultipleChoiceField(
        label="Allowed tiers",
        choices=Tier.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Allowed tiers: choose at least one.", "invalid_choice": "Choose known tiers."},
    )
    community_acknowledged = TickField(
        label="We know that the provider of a Community machine can read the session's memory",
        help_text="Needed to allow Community by a rule about tiers. Whoever orders one says so too, each time.",
    )
    countries = CountriesTextField(
        label="Allowed countries",
        required=False,
        hint="EU or codes such as DE, separated by commas. Empty: every country, unknown locations included.",
    )
    max_order_usd = AmountField(
        label="Limit per order", unit="USD", least=Decimal(0), most=_MOST_USD, places=2, by_hand=True,
        example="500.00",
        hint="The total of one order, in USD. Empty: no limit.",
    )  # fmt: skip
    max_month_usd = AmountField(
        label="Limit per month", unit="USD", least=Decimal(0), most=_MOST_USD, places=2, by_hand=True,
        example="2000.00",
        hint="All orders placed in a calendar month (UTC), in USD. Empty: no limit.",
    )  # fmt: skip
    order_role = forms.ChoiceField(
        label="Who may order",
        choices=ORDER_ROLES,
        help_text="An API key counts as an admin: only owners and admins make keys.",
    )

    def __init__(self, data: Any, *, policy: OrganizationPolicy | None) -> None:
        super().__init__(data, initial=_initial(policy))
        self.stored_tiers = policy.tiers if policy else None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not {"tiers", "community_acknowledged"} <= cleaned.keys():
            return cleaned
        acknowledged, before = cleaned["community_acknowledged"], self.initial.get("community_acknowledged", False)
        same_tiers = set(cleaned["tiers"]) == set(self.initial["tiers"])
        if same_tiers:
            # Left as it was: no rule about tiers stays none, though the page shows all of them ticked.
            cleaned["tiers"] = self.stored_tiers
        untouched = same_tiers and acknowledged == before
        if Tier.COMMUNITY in (cleaned["tiers"] or ()) and not acknowledged and not untouched:
            self.add_error(
                "community_acknowledged",
                ValidationError("Tick that the organization knows this, or do not allow Community.", "required"),
            )
        return cleaned

    @property
    def rules(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in RULES}

    def add_what_stands(self, policy: OrganizationPolicy | None) -> None:
        """Name what the policy says now, rule by rule, where this form says something else."""
        rules = self.rules
        stored = {name: getattr(policy, name) for name in RULES} if policy else {}
        for name, value in stored.items():
            if value != rules[name]:
                self.add_error(name, ValidationError(f"Now stored: {_in_words(name, value)}.", "changed_meanwhile"))


def _in_words(name: str, value: Any) -> str:
    if name.endswith("_usd"):
        return "no limit" if value is None else usd(value)
    if name == "community_acknowledged":
        return "ticked" if value else "not ticked"
    if name == "order_role":
        return dict(ORDER_ROLES)[value]
    return ", ".join(value) if value else "no rule"


def _initial(policy: OrganizationPolicy | None) -> dict[str, Any]:
    if policy is None:
        return {"tiers": Tier.values, "order_role": ORDERING_ROLES[-1].value}
    rules = {name: getattr(policy, name) for name in RULES}
    return rules | {"tiers": Tier.values if policy.tiers is None else policy.tiers}
