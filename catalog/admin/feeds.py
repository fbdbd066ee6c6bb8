"""What refreshes did: their record, and the rows of a list that were not taken."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from catalog.models import FeedRun

SHOWN_REJECTIONS = 200


def rejected_rows(run: FeedRun) -> SafeString | str:
    """The first rejected rows of a run as a table, each with its number and why."""
    kept = list(run.rejections.order_by("row", "id")[:SHOWN_REJECTIONS])
    if not kept:
        return "none" if not run.rejected else f"{run.rejected:,}; of older runs only the number is kept"
    cells = [(one.row, one.external_id or "not given", one.code, one.detail) for one in kept]
    body = format_html_join("", "<tr><th scope='row'>{}</th><td>{}</td><td>{}</td><td>{}</td></tr>", cells)
    return format_html(
        "<p>The first {} of {}.</p><div class='results'><table><thead><tr><th scope='col'>Row</th>"
        "<th scope='col'>Offer</th><th scope='col'>Code</th><th scope='col'>Why</th></tr></thead>"
        "<tbody>{}</tbody></table></div>",
        len(kept), f"{max(run.rejected, len(kept)):,}", body,
    )  # fmt: skip


def lasted(run: FeedRun) -> str:
    return "not over" if run.duration is None else f"{run.duration.total_seconds():.1f} s"


@admin.register(FeedRun)
class FeedRunAdmin(admin.ModelAdmin):
    """Records: refreshes write them, nobody else does."""

    list_display = (
        "provider", "started_at", "outcome", "seen", "new", "changed", "unchanged", "gone", "rejected", "skipped",
        "rented", "duration_shown",
    )  # fmt: skip
    list_display_links = ("started_at",)
    list_filter = ("outcome",)
    list_select_related = ("provider",)
    list_per_page = 50
    search_fields = ("provider__name", "provider__slug", "code")
    show_full_result_count = False
    date_hierarchy = "started_at"
    fields = (
        "provider", "started_at", "finished_at", "duration_shown", "outcome", "code", "detail", "seen", "new",
        "changed", "unchanged", "gone", "rejected", "skipped", "rented", "wire_bytes", "read_bytes", "rejected_shown",
    )  # fmt: skip
    readonly_fields = ("duration_shown", "rejected_shown")

    @admin.display(description="took")
    def duration_shown(self, run: FeedRun) -> str:
        return lasted(run)

    @admin.display(description="rejected rows")
    def rejected_shown(self, run: FeedRun) -> SafeString | str:
        return rejected_rows(run)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
