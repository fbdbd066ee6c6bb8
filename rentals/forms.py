"""Shapes of input of the tenant's pages: types, ranges, known choices. No rule of the business is decided here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from allauth.core import context
from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from catalog.visible import is_plain_line

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

    from rentals.models.organizations import Role


def printable(text: str) -> str:
    """The text, when all of it can be printed on one line.

    Raises: ValidationError naming what to do.
    """
    if not is_plain_line(text):
        raise ValidationError("Use letters, digits, spaces and punctuation only.", code="not_printable")
    return text


class OrganizationNameForm(forms.Form):
    organization_name = forms.CharField(
        label="Organization",
        min_length=2,
        max_length=80,
        help_text="Your company or team. It owns your orders; colleagues can join later.",
        widget=forms.TextInput(attrs={"autocomplete": "organization"}),
    )

    def clean_organization_name(self) -> str:
        name = " ".join(printable(self.cleaned_data["organization_name"]).split())
        if not any(character.isalnum() for character in name):
            raise ValidationError("Use at least one letter or digit.", code="no_letter")
        return name


class OrganizationSignupForm(OrganizationNameForm):
    """The part of the sign-up form that is ours; allauth's own form inherits from it and calls `signup`.

    Who comes with an invitation joins an organization that is there already, and is not made to found another.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # allauth imports this module while it is still being loaded itself: models are imported when they are there.
        from rentals.joining import invitation_of

        self.invitation = invitation_of(context.request, now=timezone.now())
        if self.invitation is not None:
            del self.fields["organization_name"]
            self.initial.setdefault("email", self.invitation.email)

    def signup(self, request: HttpRequest, user: User) -> None:
        from rentals.organizations import create_organization

        if self.invitation is None:
            create_organization(name=self.cleaned_data["organization_name"], owner=user, now=timezone.now())


class InviteForm(forms.Form):
    email = forms.EmailField(
        label="Email",
        max_length=254,
        help_text="A link is sent there. Whoever opens it signs in or up with this address and decides.",
    )
    role = forms.ChoiceField(label="Role")

    def __init__(self, *args: Any, roles: Iterable[Role], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = [(role.value, role.label) for role in roles]  # type: ignore[attr-defined]
        self.fields["role"].initial = "member"


class ApiKeyForm(forms.Form):
    name = forms.CharField(
        label="Name", max_length=80, help_text="What uses the key, such as “nightly batch”. Printed beside its orders."
    )
    scopes = forms.MultipleChoiceField(
        label="Scopes",
        choices=[("read", "Read: orders, members and activity"), ("order", "Order: place orders, stop and start lots")],
        widget=forms.CheckboxSelectMultiple,
        initial=["read"],
        error_messages={"required": "Choose at least one scope.", "invalid_choice": "The scopes are read and order."},
    )
    expires = forms.TypedChoiceField(
        label="Expires",
        choices=[("30", "After 30 days"), ("90", "After 90 days"), ("365", "After 365 days"), ("", "Never")],
        coerce=int,
        empty_value=None,
        initial="90",
        required=False,
    )

    def clean_name(self) -> str:
        return printable(self.cleaned_data["name"])

    def expires_at(self, now: datetime) -> datetime | None:
        """Days of 24 hours from now, as terms are counted."""
        days = self.cleaned_data["expires"]
        return None if days is None else now + timedelta(days=days)


class RoleForm(forms.Form):
    role = forms.ChoiceField(label="Role")

    def __init__(self, *args: Any, roles: Iterable[Role], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = [(role.value, role.label) for role in roles]  # type: ignore[attr-defined]
