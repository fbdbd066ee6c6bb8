"""Pages of the administration that answer nonsense in words: `RefusesNonsense` is mixed into every one of them.

Django looks at what it is sent when the database does, which then ends the request.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import BaseModelAdmin, IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import FieldError, PermissionDenied, ValidationError
from django.db import DataError, IntegrityError, ProgrammingError, models
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse

from catalog.json_text import JSONText
from catalog.quoting import shown
from catalog.web_addresses import WebAddressField

logger = logging.getLogger(__name__)

LONGEST_SEARCH, MOST_WORDS = 200, 20
_WRONG = (
    IncorrectLookupParameters, ArithmeticError, DataError, FieldError, ProgrammingError, TypeError, ValidationError,
    ValueError,
)  # fmt: skip


class Unanswerable(Exception):
    """A list was asked for what it cannot have. It leaves the transaction, which may be spoiled, before it is told."""

    def __init__(self, message: str, back: str) -> None:
        super().__init__(message)
        self.message, self.back = message, back

    def told(self, request: HttpRequest) -> HttpResponse:
        """The whole list, and why it is that."""
        messages.error(request, self.message)
        return redirect(self.back)


class ManyRows(forms.ModelMultipleChoiceField):
    """Rows that a form names: a key that no row can have is an error at the field."""

    def clean(self, value: Any) -> Any:
        for one in value if isinstance(value, list | tuple) else ():
            if not may_be_key_of(self.queryset.model._meta.pk, str(one)):  # type: ignore[union-attr]
                raise ValidationError(
                    self.error_messages["invalid_pk_value"], code="invalid_pk_value", params={"pk": shown(one)}
                )
        return super().clean(value)


class Completing(AutocompleteSelect):
    """Django's own, which asks the database for whatever was sent: what is no key is left to the field to refuse."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        return super().optgroups(name, [one for one in value if is_row_number(str(one))], attr)


class SoundFields(BaseModelAdmin):
    """Fields of forms, and of rows inside of forms, that refuse what Django's own let through."""

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if isinstance(db_field, models.JSONField):
            kwargs.setdefault("form_class", JSONText)
        if isinstance(db_field, models.URLField):
            kwargs.setdefault("form_class", WebAddressField)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        return super().formfield_for_manytomany(db_field, request, **{"form_class": ManyRows, **kwargs})

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request) and "widget" not in kwargs:
            kwargs["widget"] = Completing(db_field, self.admin_site, using=kwargs.get("using"))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


class ChecksConstraints(forms.BaseInlineFormSet):
    """Rows inside of a form: Django leaves out whatever constraint speaks of the row that they belong to."""

    def clean(self) -> None:
        super().clean()
        if self.instance.pk is None:
            return
        for form in self.forms:
            if form.errors or not form.has_changed() or (self.can_delete and self._should_delete_form(form)):  # type: ignore[attr-defined]
                continue
            setattr(form.instance, self.fk.attname, self.instance.pk)
            try:
                form.instance.validate_constraints()
            except ValidationError as error:
                form.add_error(None, error)


class RefusesNonsense(SoundFields, admin.ModelAdmin):
    """First of the bases of every class that is registered."""

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return [_with_sound_fields(one) for one in super().get_inlines(request, obj)]

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        with self._together(request.path):
            return super().changeform_view(request, object_id, form_url, extra_context)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        with self._together(request.path):
            return super().delete_view(request, object_id, extra_context)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        with self._together(request.get_full_path()):
            return super().changelist_view(request, extra_context)

    @contextmanager
    def _together(self, back: str) -> Iterator[None]:
        """Between a form's check and its saving somebody else may save: then the database is who refuses."""
        try:
            yield
        except IntegrityError as error:
            logger.warning("Two changes of %s met.", self.opts.label, exc_info=error)
            said = "Nothing was saved: somebody else changed the same at this moment. Load the page again, then repeat."
            raise Unanswerable(said, back) from error

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        try:
            return super().get_changelist_instance(request)
        except _WRONG as error:
            # A list that nobody asked for anything in particular is wrong by itself.
            if not request.GET:
                raise
            names = ", ".join(f"“{shown(name)}”" for name in list(request.GET)[:5])
            said = f"What the address asks for in {names} is nothing that a row can have: here is the whole list."
            raise Unanswerable(said, self._list_url()) from error

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        # Each word is a condition of its own, and a database takes so many.
        if len(search_term) > LONGEST_SEARCH or len(search_term.split()) > MOST_WORDS:
            said = f"Search for at most {MOST_WORDS} words of {LONGEST_SEARCH} characters together."
            raise Unanswerable(said, self._list_url())
        if "\0" in search_term:
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any) -> Any:
        for one in request.POST.getlist(ACTION_CHECKBOX_NAME):
            if not may_be_key_of(self.opts.pk, one):
                said = f"“{shown(one)}” names no row of this list. Nothing was changed: choose rows and try again."
                self.message_user(request, said, messages.ERROR)
                return None
        return super().response_action(request, queryset, *args, **kwargs)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        if not may_be_key_of(self.opts.pk, unquote(object_id)):
            return self._missing(request, object_id)
        return super().history_view(request, object_id, extra_context)

    def history_form_view(
        self, request: HttpRequest, object_id: str, version_id: str, extra_context: Any = None
    ) -> Any:
        """Reached in classes that keep versions alone, which have it."""
        for named in (unquote(object_id), unquote(version_id)):
            if not is_row_number(named):
                return self._missing(request, named)
        return super().history_form_view(  # type: ignore[misc]
            request, object_id, version_id, extra_context
        )

    def get_historical_record_context_helper(self, request: HttpRequest, historical_record: Any) -> Any:
        helper = super().get_historical_record_context_helper(request, historical_record)  # type: ignore[misc]
        prepare = helper.prepare_delta_change_value
        helper.prepare_delta_change_value = lambda change, value: _in_words(prepare(change, value))
        return helper

    def _missing(self, request: HttpRequest, named: str) -> Any:
        return self._get_obj_does_not_exist_redirect(request, self.opts, shown(named))  # type: ignore[attr-defined]

    def _list_url(self) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")


class Autocomplete(AutocompleteJsonView):
    """Django's own, which takes a relation seen from its other end for a field, and any number of words."""

    def process_request(self, request: HttpRequest) -> Any:
        found = super().process_request(request)
        if not hasattr(found[2], "get_limit_choices_to"):
            raise PermissionDenied
        return found

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().get(request, *args, **kwargs)
        except Unanswerable:
            return JsonResponse({"results": [], "pagination": {"more": False}})


def refusing(admin_class: type[admin.ModelAdmin]) -> type[admin.ModelAdmin]:
    """The class with the mixin before it, also when it is of a library."""
    return _mixed(RefusesNonsense, admin_class)


@cache
def _with_sound_fields(inline_class: Any) -> Any:
    return _mixed(SoundFields, inline_class, formset=_mixed(ChecksConstraints, inline_class.formset))


def _mixed(first: type, other: Any, **names: Any) -> Any:
    names = {"__module__": other.__module__, "__doc__": other.__doc__, **names}
    return type(other)(other.__name__, (first, other), names)


def _in_words(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "(empty)" if value is None or value in ("", [], {}) else value


def may_be_key_of(key: Any, text: str) -> bool:
    """Whether a text that somebody sent may be the key of a row."""
    while key.remote_field:
        key = key.target_field
    if isinstance(key, models.IntegerField):
        return is_row_number(text)
    try:
        key.to_python(text)
    except ValidationError:
        return False
    return "\0" not in text


def is_row_number(text: str) -> bool:
    """Whether a text that somebody sent may name a row by its number."""
    return text.isascii() and text.isdigit() and len(text) < 19
