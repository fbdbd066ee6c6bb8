"""A field for one row of many, which completes what one types instead of listing them all."""

from typing import Any

from django.contrib import admin

from catalog.admin_refusing import Completing


def complete(field: Any, reference: Any, site: admin.AdminSite) -> None:
    """Let a form's field complete rows as the admin's field of the `reference` does."""
    field.widget = Completing(reference, site)
    field.widget.choices = field.choices
