"""Staff's form for an order on behalf of an organization."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

from django import forms
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.utils.functional import cached_property

from catalog.admin.completing import complete
from catalog.models import Machine, Option
from catalog.pricing import TERMS_DAYS
from rentals.baskets import MAX_LOTS, MAX_NOTES, Basket, ChosenOption
from rentals.leaving import Fate, LeftBehind, Undecided, check_decided, left_behind
from rentals.models import Membership, Order, Organization
from rentals.models.orders import Environment
from rentals.models.organizations import Role
from rentals.quotes import listed_options
from rentals.review_forms import NotesField


class PlaceOrderForm(forms.Form):
    """What to order for whom. The key and the total travel with the form, as on the customers' own page."""

    organization = forms.ModelChoiceField(Organization.objects.all())
    asked_by = forms.EmailField(
        required=False,
        label="Asked for by",
        help_text="Address of the member who asked; it is written in the organization's activity. Needed where its "
        "policy leaves ordering to admins or owners.",
    )
    machine = forms.ModelChoiceField(
        Machine.objects.listed().select_related("gpu", "provider"), help_text="Listed machines."
    )
    term_days = forms.TypedChoiceField(
        label="Term", coerce=int, choices=[(days, f"{days} days") for days in TERMS_DAYS], initial=7
    )
    lots = forms.IntegerField(min_value=1, max_value=MAX_LOTS, initial=1)
    environment = forms.ChoiceField(choices=Environment.choices)
    notes = NotesField(widget=forms.Textarea(attrs={"rows": 2, "maxlength": MAX_NOTES}))
    community_acknowledged = forms.BooleanField(
        required=False,
        label="The organization knows that the provider can read the session's memory",
        help_text="Needed for a Community machine.",
    )
    idempotency_key = forms.CharField(widget=forms.HiddenInput, required=False)
    expected_total_usd = forms.DecimalField(widget=forms.HiddenInput, required=False, max_digits=12, decimal_places=2)

    asked_user: User | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A select would list every machine and every organization.
        for name in ("organization", "machine"):
            complete(self.fields[name], Order._meta.get_field(name), site)
        for option in self.options:
            self.fields[f"option-{option.slug}"] = forms.IntegerField(
                label=option.name, required=False, min_value=0, max_value=option.max_quantity, initial=0,
                help_text="Quantity for each lot.",
            )  # fmt: skip

    @cached_property
    def options(self) -> list[Option]:
        return listed_options()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        organization, address = cleaned.get("organization"), cleaned.get("asked_by")
        if organization and address:
            members = Membership.objects.for_organization(organization).select_related("user")
            member = members.filter(user__email__iexact=address).first()
            if member is None:
                self.add_error("asked_by", f"{address} is no member of {organization.name}.")
            else:
                self.asked_user = member.user
        return cleaned

    def basket(self) -> Basket:
        """Raises: InvalidBasket."""
        cleaned = self.cleaned_data
        quantities = {option.slug: cleaned.get(f"option-{option.slug}") or 0 for option in self.options}
        return Basket(
            machine_id=cleaned["machine"].pk,
            term_days=cleaned["term_days"],
            lots=cleaned["lots"],
            options=tuple(ChosenOption(slug, number) for slug, number in quantities.items() if number),
            environment=cleaned["environment"],
            environment_notes=cleaned["notes"],
            community_acknowledged=cleaned["community_acknowledged"],
        )

    def show_total(self, total_usd: Decimal | None) -> None:
        """Put the total that staff now see into the form, for the next sending."""
        shown = "" if total_usd is None else str(total_usd)
        self.data = MultiValueDict({**dict(cast(QueryDict, self.data).lists()), "expected_total_usd": [shown]})


class MembershipForm(forms.ModelForm):
    """A member's role, and what becomes of what they made when they lose it."""

    made = forms.ChoiceField(
        label="keys and webhooks they made",
        choices=[("", "nothing chosen"), (Fate.KEEP.value, "keep"), (Fate.REVOKE.value, "revoke")],
        required=False,
    )

    def left(self) -> LeftBehind:
        """What would work on after the change that is asked for."""
        member, cleaned = self.instance, self.cleaned_data
        role = None if cleaned.get("DELETE") else cleaned.get("role")
        if member.pk is None or (role is not None and "role" not in self.changed_data):
            return LeftBehind()
        return left_behind(member.organization, member.user, now=timezone.now(), role=role)

    @property
    def fates(self) -> dict[str, str]:
        return dict.fromkeys(self.left().kinds, self.cleaned_data["made"])


class MembershipFormSet(forms.BaseInlineFormSet):
    """Memberships of one organization, of whom one stays an owner."""

    forms: list[MembershipForm]  # type: ignore[assignment]  # those of the inline

    def clean(self) -> None:
        super().clean()
        for form in self.forms:
            if form.cleaned_data and not form.errors and form.instance.pk:
                try:
                    check_decided(form.left(), form.fates)
                except Undecided as undecided:
                    raise forms.ValidationError(f"{form.instance.user}: {undecided.message}") from undecided
        kept = [form.cleaned_data for form in self.forms if form.cleaned_data and not form.cleaned_data.get("DELETE")]
        if not any(self.errors) and not any(row.get("role") == Role.OWNER for row in kept):
            raise forms.ValidationError("An organization keeps at least one owner.")
