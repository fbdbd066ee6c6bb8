"""Shapes of input of the pages of webhooks; the rules are with the acts."""

from __future__ import annotations

from typing import Any

from django import forms

from rentals.models import WebhookEndpoint
from rentals.models.webhooks import MAX_DESCRIPTION, MAX_URL, EventKind
from rentals.webhooks_endpoints import Wish


class NewEndpointForm(forms.Form):
    """A new endpoint is turned on."""

    url = forms.CharField(
        label="Address",
        max_length=MAX_URL,
        help_text="Begins with https:// and is reached from the internet. It answers with 2xx within 10 seconds.",
        widget=forms.URLInput(attrs={"placeholder": "https://example.com/berth", "inputmode": "url"}),
    )
    description = forms.CharField(
        label="Description",
        max_length=MAX_DESCRIPTION,
        required=False,
        help_text="For you, such as “billing”. May stay empty.",
    )
    events = forms.MultipleChoiceField(
        label="Events",
        choices=[(kind.value, f"{kind.value}: {kind.label.lower()}") for kind in EventKind],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one event."},
    )

    def wish(self) -> Wish:
        """Raises: InvalidWebhook."""
        given = self.cleaned_data
        enabled = given.get("enabled", True)
        return Wish(given["url"], tuple(given["events"]), given["description"], enabled)


class EndpointForm(NewEndpointForm):
    enabled = forms.BooleanField(
        label="Turned on", required=False, help_text="Turned off, it is told nothing, then or later."
    )

    @classmethod
    def of(cls, endpoint: WebhookEndpoint, data: Any = None) -> EndpointForm:
        """The form with what the endpoint has."""
        fields = ("url", "description", "events", "enabled")
        return cls(data, initial={name: getattr(endpoint, name) for name in fields})
