"""Shapes of input around a running order: SSH keys, and staff's forms for handing over and cancelling."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms

from rentals.cancellations import MAX_REASON
from rentals.deliveries import MAX_NOTES, Details
from rentals.models import Connection
from rentals.ssh_keys import MAX_COMMENT, MAX_TEXT


class SshKeyForm(forms.Form):
    key = forms.CharField(
        label="Public key",
        max_length=MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
        help_text="The one line of a file that ends in .pub, such as ~/.ssh/id_ed25519.pub. Never the private key.",
        error_messages={"max_length": "Paste one public key: a single line such as ssh-ed25519 AAAA… name."},
    )
    name = forms.CharField(
        label="Name", max_length=MAX_COMMENT, required=False, help_text="Empty: the comment at the end of the key."
    )

    def without_private_key(self) -> SshKeyForm:
        """The form to show again. What may be a private key is not written into a page."""
        if "PRIVATE KEY" in self.data.get("key", ""):
            self.data = {**{name: self.data.get(name, "") for name in self.fields}, "key": ""}
        return self


class ConnectionForm(forms.Form):
    host = forms.CharField(max_length=253, help_text="Host name or IP address.")
    port = forms.IntegerField(min_value=1, max_value=65535, initial=22)
    login = forms.CharField(label="User", max_length=32)
    notes = forms.CharField(
        required=False, max_length=MAX_NOTES, strip=True, widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What the organization's members need to know to get in. No passwords.",
    )  # fmt: skip

    @classmethod
    def filled(cls, connection: Connection | None) -> dict[str, Any]:
        return {name: getattr(connection, name) for name in cls.base_fields} if connection else {}

    def details(self) -> Details:
        """Raises: InvalidConnection."""
        cleaned = self.cleaned_data
        notes = cleaned["notes"].replace("\r\n", "\n")
        return Details(cleaned["host"], cleaned["login"], cleaned["port"], notes)


class CancelOrderForm(forms.Form):
    reason = forms.CharField(
        max_length=MAX_REASON, widget=forms.Textarea(attrs={"rows": 3}), help_text="The organization reads it."
    )
    credit_usd = forms.DecimalField(label="Credit (USD)", max_digits=12, decimal_places=2, min_value=Decimal(0))
