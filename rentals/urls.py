"""The tenant's pages. Each URL below /o/<organization>/ is scoped by `rentals.scoping`; a test walks them all."""

from django.urls import path

urlpatterns: list[path] = []
