"""Addresses of the REST API. The apps own their resources."""

from django.urls import include, path, re_path

from config.api_errors import Errors, Nowhere

urlpatterns = [
    path("v1/", include("sizing.api_urls")),
    path("v1/errors", Errors.as_view(), name="api-errors"),
    re_path(r"", Nowhere.as_view(), name="api-nowhere"),
]
