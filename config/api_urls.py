"""Addresses of the REST API. The apps own their resources."""

from django.urls import include, path, re_path

from config.api_docs import DocsView, SchemaView
from config.api_errors import Errors, Nowhere
from rentals.api.sizing import RecommendationsView, SizingView

urlpatterns = [
    path("v1/", include("catalog.api_urls")),
    path("v1/", include("sizing.api_urls")),
    path("v1/", include("rentals.api_urls")),
    # Sizing's questions, which anybody may ask and a key brings its organization to: of no app alone.
    path("v1/sizing", SizingView.as_view(), name="api-sizing"),
    path("v1/recommendations", RecommendationsView.as_view(), name="api-recommendations"),
    path("v1/schema", SchemaView.as_view(), name="api-schema"),
    path("v1/docs", DocsView.as_view(), name="api-docs"),
    path("v1/errors", Errors.as_view(), name="api-errors"),
    re_path(r"", Nowhere.as_view(), name="api-nowhere"),
]
