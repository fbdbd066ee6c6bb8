"""The administration: staff look after every tenant, so its pages are the named way across them."""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.contrib import admin
from django.contrib.admin.apps import AdminConfig
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from catalog.admin_refusing import Autocomplete, Unanswerable, refusing
from rentals.tenants import Across, across_tenants, finished


class BerthAdminConfig(AdminConfig):
    default_site = "rentals.administration.BerthAdminSite"


class BerthAdminSite(admin.AdminSite):
    empty_value_display = "not given"

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Whoever wrote the pages, they answer nonsense in words."""
        super().register(model_or_iterable, refusing(admin_class or admin.ModelAdmin), **options)

    def autocomplete_view(self, request: HttpRequest) -> Any:
        return Autocomplete.as_view(admin_site=self)(request)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Django's own check of who enters comes first; what staff then see is logged as read across tenants."""

        @wraps(view)
        def across(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                if request.method == "POST" and getattr(view, "opens_transactions", False):
                    return view(request, *args, **kwargs)
                with across_tenants(Across.ADMINISTRATION):
                    return finished(view(request, *args, **kwargs))
            except Unanswerable as refused:
                return refused.told(request)

        return super().admin_view(across, cacheable)
