"""Tables as files in the administration: upload, look at what would change, confirm; and take a table away."""

import csv
import json
from collections.abc import Iterator
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone

from catalog.importing.drafts import Prepared, confirm, draft_of, prepare
from catalog.importing.reading import MAX_BYTES, MAX_ROWS, marked
from catalog.importing.tables import Importable, Plan
from catalog.importing.writing import Unapplicable
from catalog.visible import name_to_see

# A page is read by a person: beyond these the numbers say it.
MOST_SHOWN = 200
READ_AT_ONCE = 2000


class UploadForm(forms.Form):
    file = forms.FileField(
        label="CSV or JSON file",
        help_text=f"UTF-8; at most {MAX_BYTES // 2**20} MiB and {MAX_ROWS:,} rows. Nothing is changed by uploading it.",
    )
    reason = forms.CharField(
        max_length=90,
        validators=[name_to_see],
        help_text="Kept in the history of every row that is created or changed.",
    )

    def clean_file(self) -> Any:
        if self.cleaned_data["file"].size > MAX_BYTES:
            raise forms.ValidationError(f"The file has more than {MAX_BYTES // 2**20} MiB. Divide it.")
        return self.cleaned_data["file"]


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


class KeepsFiles(admin.ModelAdmin):
    """A list with Import and Export. `table` says what the columns are and what may be in them."""

    table: type[Importable]
    change_list_template = "admin/catalog/change_list.html"

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("import/", wrap(self.import_view), name=self._url_name("import")),
            path("export.<slug:kind>", wrap(self.export_view), name=self._url_name("export")),
            *super().get_urls(),
        ]

    def has_import_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request) and self.has_change_permission(request)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        context: dict[str, Any] = {
            "exports": [(kind.upper(), self._url("export", kind)) for kind in ("csv", "json")],
        }
        if self.has_import_permission(request):
            context["import_url"] = self._url("import")
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def _url_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    def _url(self, page: str, *arguments: str) -> str:
        return reverse(f"admin:{self._url_name(page)}", args=arguments)

    # --- In -----------------------------------------------------------------------------------------------------------

    def import_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_import_permission(request):
            raise PermissionDenied
        if request.method == "POST" and "key" in request.POST:
            return self._confirm(request)
        form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
        if not (request.method == "POST" and form.is_valid()):
            return self._page(request, form)
        file = form.cleaned_data["file"]
        prepared = prepare(
            self.table,
            file.read(),
            user=cast(User, request.user),
            file_name=file.name,
            reason=form.cleaned_data["reason"],
            now=timezone.now(),
        )
        return self._page(request, form, prepared)

    def _confirm(self, request: HttpRequest) -> HttpResponse:
        now, user = timezone.now(), cast(User, request.user)
        draft = draft_of(self.table, request.POST["key"], user=user, now=now)
        try:
            prepared = confirm(self.table, draft, now=now) if draft else None
        except Unapplicable as refused:
            prepared = Prepared(Plan(faults=[refused.fault]))
        if draft is None or prepared is None:
            messages.error(request, "This file was imported already, or waited for too long. Upload it again.")
            return redirect(request.path)
        reason, file_name = draft.reason, draft.file_name
        if prepared.plan.faults or prepared.draft is not None:
            messages.warning(request, "The catalog was changed meanwhile. Nothing was imported; look at it again.")
            return self._page(request, UploadForm(initial={"reason": reason}), prepared)
        said = f"{prepared.plan.new:,} new, {prepared.plan.changed:,} changed, {prepared.plan.unchanged:,} unchanged"
        LogEntry.objects.create(
            user=user,
            content_type=ContentType.objects.get_for_model(self.model),
            object_repr=file_name,
            action_flag=CHANGE,
            change_message=f"Imported: {said}. {reason}",
        )
        messages.success(request, f"Imported {file_name}: {said}.")
        return redirect(self._url("changelist"))

    def _page(self, request: HttpRequest, form: UploadForm, prepared: Prepared | None = None) -> HttpResponse:
        table = self.table()
        context = {
            **self.admin_site.each_context(request),
            "title": f"Import {self.opts.verbose_name_plural}",
            "opts": self.opts,
            "form": form,
            "columns": table.columns(),
            "required": table.required,
            "most": MOST_SHOWN,
            "prepared": prepared,
            "faults": prepared.plan.faults[:MOST_SHOWN] if prepared else [],
            "changes": prepared.plan.changes[:MOST_SHOWN] if prepared else [],
        }
        return render(request, "admin/catalog/import.html", context)

    # --- Out ----------------------------------------------------------------------------------------------------------

    def export_view(self, request: HttpRequest, kind: str) -> HttpResponseBase:
        """The rows that the list shows, all pages of them, in the columns that an import reads."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        written = {"csv": (self._csv, "text/csv"), "json": (self._json, "application/json")}.get(kind)
        if written is None:
            return redirect(self._url("changelist"))
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters:
            return redirect(self._url("changelist"))
        write, media_type = written
        name = f"{self.opts.model_name}-{timezone.now():%Y-%m-%d}.{kind}"
        return StreamingHttpResponse(
            write(rows.order_by("pk").iterator(chunk_size=READ_AT_ONCE)),
            content_type=f"{media_type}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    def _csv(self, rows: Iterator[Any]) -> Iterator[str]:
        table, writer = self.table(), csv.writer(_Echo())
        yield writer.writerow(table.columns())
        for row in rows:
            yield writer.writerow([marked(text) for text in table.texts(row)])

    def _json(self, rows: Iterator[Any]) -> Iterator[str]:
        table, before = self.table(), "[\n"
        for row in rows:
            yield before + json.dumps(table.values(row), ensure_ascii=False)
            before = ",\n"
        yield "\n]\n" if before == ",\n" else "[]\n"
