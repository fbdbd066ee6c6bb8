"""Addresses that somebody gives and pages show as links: of the web alone, so that a click runs nothing."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator

_of_the_web = URLValidator(schemes=["https", "http"])


def web_address(address: str) -> None:
    """Raises: ValidationError for anything else, such as javascript:, data: or ftp:."""
    try:
        _of_the_web(address)
    except ValidationError:
        raise ValidationError(
            "“%(address)s” is no address of the web. Write it whole: it begins with https:// or http://.",
            "no_web_address",
            {"address": str(address)[:80]},
        ) from None


def web_addresses(value: Any) -> None:
    """Raises: ValidationError for what is no list of them, and for the first that is none."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValidationError('Give a list of addresses, such as ["https://…"].', "no_list")
    for one in value:
        web_address(one)


class WebAddressField(forms.URLField):
    """A field for one; without its beginning it is https."""

    default_validators = [web_address]
    default_error_messages = {"invalid": "This is no address. Write it whole: it begins with https://."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"assume_scheme": "https", **kwargs})
