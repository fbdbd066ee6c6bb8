"""A field for one row of many, which completes what one types instead of listing them all."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import ForeignKey
from django.forms import ModelChoiceField


class Completing(AutocompleteSelect):
    """Django's own, which asks the database for whatever was sent: what is no key is left to the field to refuse."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        return super().optgroups(name, [one for one in value if is_key(str(one))], attr)


def complete(field: Any, reference: Any, site: admin.AdminSite) -> None:
    """Let a form's field complete rows as the admin's field of the `reference` does."""
    field.widget = Completing(reference, site)
    field.widget.choices = field.choices


class CompletesReferences(admin.ModelAdmin):
    """`autocomplete_fields` that take any nonsense."""

    def formfield_for_foreignkey(self, db_field: ForeignKey, request: Any, **kwargs: Any) -> ModelChoiceField | None:
        if db_field.name in self.get_autocomplete_fields(request) and "widget" not in kwargs:
            kwargs["widget"] = Completing(db_field, self.admin_site, using=kwargs.get("using"))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


def is_key(text: str) -> bool:
    """Whether a text that somebody sent may name a row by its number."""
    return text.isascii() and text.isdigit() and len(text) < 19
