"""The public pages of the catalog."""

from django.urls import path

from catalog import views

urlpatterns = [
    path("catalog/", views.catalog, name="catalog"),
    path("catalog/machines/<int:machine_id>/", views.machine, name="machine"),
    path("help/secure-and-community/", views.help_tiers, name="help-tiers"),
    path("glossary/", views.glossary, name="glossary"),
]
