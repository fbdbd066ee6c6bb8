"""Providers and their feeds."""

from typing import ClassVar

from django.contrib import admin
from django.db import models
from simple_history.admin import SimpleHistoryAdmin

from catalog.admin.counted import CountsMachines
from catalog.models import Provider


@admin.register(Provider)
class ProviderAdmin(CountsMachines, SimpleHistoryAdmin):
    machine_field = "provider"
    formfield_overrides: ClassVar = {models.URLField: {"assume_scheme": "https"}}
    list_display = ("name", "slug", "invented", "feed_format", "refreshed_at", "machine_count")
    list_filter = ("invented", "feed_format")
    search_fields = ("name", "slug")
    show_full_result_count = False
    # The form would show it.
    exclude = ("feed_secret",)
    readonly_fields = ("refreshed_at",)
