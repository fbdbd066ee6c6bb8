"""A provider with its feed, whose secret goes in and never comes out."""

from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

from django import forms

from catalog.feeds import ADAPTERS
from catalog.models import DEMO_FEED, Provider
from catalog.outgoing import shown_address
from catalog.refresh.sources import Mismatch, check_demo
from catalog.web_addresses import WebAddressField


class ProviderForm(forms.ModelForm):
    website = WebAddressField(required=False, max_length=200)
    feed_format = forms.ChoiceField(required=False)
    new_secret = forms.CharField(
        label="Secret of the feed",
        required=False,
        max_length=500,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    forget_secret = forms.BooleanField(label="Forget the secret", required=False)

    class Meta:
        model = Provider
        # The address tells a form of its kind only by its validator; a browser's own check would refuse demo feeds.
        fields = ("name", "slug", "website", "invented", "feed_url", "feed_format", "feed_interval_seconds")
        widgets: ClassVar = {"feed_url": forms.TextInput(attrs={"class": "vLargeTextField", "inputmode": "url"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "feed_format" in self.fields:
            known = [(slug, adapter.label) for slug, adapter in ADAPTERS.items()]
            stored = self.instance.feed_format
            if stored and stored not in ADAPTERS:
                known.append((stored, f"{stored} (not known any more)"))
            cast(forms.ChoiceField, self.fields["feed_format"]).choices = [("", "No feed"), *known]
        self._address = self.instance.feed_url
        self._shown = shown_address(self._address) if urlsplit(self._address).query else self._address
        if "feed_url" in self.fields and self._shown != self._address:
            self.initial["feed_url"] = self._shown
            self.fields["feed_url"].help_text = "What follows “?” is kept and not shown. Write the whole to change it."
        if "new_secret" in self.fields:
            there = "One is kept; write another to replace it." if self.instance.sealed_secret else "None is kept."
            self.fields["new_secret"].help_text = f"Sent to the feed with each request, never shown again. {there}"

    def clean_feed_url(self) -> str:
        address: str = self.cleaned_data["feed_url"]
        if address == self._shown:
            return self._address
        if address.endswith("?…"):
            raise forms.ValidationError("Write the whole address: what is not shown is kept for its own address alone.")
        return address.strip()

    def clean_new_secret(self) -> str:
        secret: str = self.cleaned_data["new_secret"]
        if secret and not (secret.isascii() and secret.isprintable()):
            raise forms.ValidationError("A secret has letters, digits and signs of ASCII alone, on one line.")
        return secret

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self._check_feed(cleaned)
        secret, forget = cleaned.get("new_secret"), cleaned.get("forget_secret")
        if secret and forget:
            self.add_error("forget_secret", "Write a new secret or forget the one that is there, not both.")
        elif secret:
            self.instance.feed_secret = secret
        elif forget:
            self.instance.feed_secret = ""
        elif self.instance.sealed_secret and self._moves(cleaned.get("feed_url")):
            self.add_error(
                "new_secret", "The feed moves to another server: write its secret, or forget the one of the old server."
            )
        return cleaned

    def _check_feed(self, cleaned: dict[str, Any]) -> None:
        """Whether address and format can be read together; the address alone is the model's to check."""
        if not {"feed_url", "feed_format"} <= cleaned.keys():
            return
        address, feed_format = cleaned["feed_url"], cleaned["feed_format"]
        if address and not feed_format:
            self.add_error("feed_format", "Choose the format of the list at this address, or empty the address.")
        elif feed_format and not address:
            self.add_error("feed_url", "Write where the list of this format is, or choose “No feed”.")
        elif address.startswith(DEMO_FEED):
            try:
                check_demo(address, feed_format, invented=cleaned.get("invented", False))
            except Mismatch as mismatch:
                self.add_error(mismatch.field, mismatch.detail)

    def _moves(self, address: str | None) -> bool:
        """Whether the secret would go to somebody else; who may not read it must not be able to send it to himself."""
        before, after = _server(self.initial.get("feed_url")), _server(address)
        return bool(after[1]) and before != after


def _server(address: str | None) -> tuple[str, str]:
    parts = urlsplit(address or "")
    return parts.scheme, parts.netloc.rpartition("@")[2].lower()
