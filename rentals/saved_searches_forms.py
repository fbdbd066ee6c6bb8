"""The shape of what a result page sends to be kept as a search; the rules are with the acts."""

from __future__ import annotations

from django import forms

from rentals.models.searches import MAX_QUERY, MAX_SEARCH_NAME


class SearchForm(forms.Form):
    name = forms.CharField(label="Name", max_length=MAX_SEARCH_NAME)
    query = forms.CharField(
        max_length=MAX_QUERY,
        widget=forms.HiddenInput,
        error_messages={
            "required": "Open a result page, and save the search there.",
            "max_length": "This question is too long to be kept. Keep its model with the organization first.",
        },
    )
