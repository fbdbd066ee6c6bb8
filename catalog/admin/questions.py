"""The queue of names that feeds use and nobody has explained: each is answered once, with a reason, for all of them."""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from catalog import countries
from catalog.admin.bulk import ReasonForm
from catalog.admin.completing import complete
from catalog.models import FeedQuestion, Gpu, GpuAlias
from catalog.questions import REASON_LENGTH, alike, resolve_questions

Kind = FeedQuestion.Kind
# Chosen, not left empty: that a place names no country is an answer too.
NO_COUNTRY = "none"
MOST_AT_ONCE = 500


class AnswerForm(forms.Form):
    """What the name means; the field that does not belong to the kind of question is not there."""

    gpu = forms.ModelChoiceField(
        Gpu.objects.all(),
        label="GPU",
        help_text="Offers that say this name become machines of this GPU. One name may belong to several GPUs that "
        "their memory tells apart: answer with one of them now, and add the name to the other GPU's aliases.",
    )
    country = forms.ChoiceField(help_text="As the provider claims it. A continent or a joke names no country.")
    reason = forms.CharField(max_length=REASON_LENGTH, help_text="How you know. It is kept with the answer.")

    def __init__(self, question: FeedQuestion, site: admin.AdminSite, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.question = question
        if question.kind == Kind.GPU:
            del self.fields["country"]
            complete(self.fields["gpu"], GpuAlias._meta.get_field("gpu"), site)
        else:
            del self.fields["gpu"]
            named = [(code, f"{name} ({code})") for code, name in countries.names().items()]
            cast(forms.ChoiceField, self.fields["country"]).choices = [
                ("", "Choose"), (NO_COUNTRY, "It names no country"), *named,
            ]  # fmt: skip

    def resolve(self, user: User) -> bool:
        """Whether the answer was taken; otherwise the form says why not."""
        country = self.cleaned_data.get("country")
        try:
            resolve_questions(
                [self.question],
                by=user,
                reason=self.cleaned_data["reason"],
                now=timezone.now(),
                gpu=self.cleaned_data.get("gpu"),
                country=None if country == NO_COUNTRY else country,
            )
        except ValidationError as error:
            field = {"reason_missing": "reason", "reason_long": "reason"}.get(getattr(error, "code", "") or "")
            self.add_error(field, error.messages)
            return False
        return True


class OpenFilter(admin.SimpleListFilter):
    """Questions that wait, unless one asks for others."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("answered", "Answered"), ("all", "All")]

    def choices(self, changelist: Any) -> Any:
        first, *others = super().choices(changelist)
        first["display"] = "Open"
        return [first, *others]

    def queryset(self, request: HttpRequest, queryset: QuerySet[FeedQuestion]) -> QuerySet[FeedQuestion]:
        if self.value() == "all":
            return queryset
        return queryset.filter(resolved_at__isnull=self.value() != "answered")


@admin.register(FeedQuestion)
class FeedQuestionAdmin(admin.ModelAdmin):
    list_display = ("raw", "kind", "provider", "count", "example", "last_seen_at", "reason", "resolved_by")
    list_filter = (OpenFilter, "kind")
    list_select_related = ("provider", "resolved_by")
    list_per_page = 50
    search_fields = ("raw", "provider__name", "provider__slug")
    show_full_result_count = False
    action_form = ReasonForm
    actions = ("name_no_country",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> Any:
        """The question with its answer, or the form for one."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        question = self.get_object(request, unquote(object_id))
        if question is None:
            raise Http404("There is no such question.")
        may_answer = self.has_change_permission(request)
        if request.method == "POST" and not may_answer:
            raise PermissionDenied
        form = AnswerForm(question, self.admin_site, request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid() and form.resolve(cast(User, request.user)):
            self.log_change(request, question, f"Answered: {form.cleaned_data['reason']}")
            messages.success(request, f"“{question.raw}” has a meaning now; the lists are fetched again at once.")
            return redirect(reverse("admin:catalog_feedquestion_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": str(question),
            "opts": self.opts,
            "question": question,
            "same": alike([question]).select_related("provider").order_by("-count", "provider__name")[:100],
            "form": form if may_answer else None,
            "media": self.media + form.media,
        }
        return render(request, "admin/catalog/question.html", context)

    @admin.action(description="They name no country (places alone)", permissions=["change"])
    def name_no_country(self, request: HttpRequest, queryset: QuerySet[FeedQuestion]) -> None:
        places = queryset.filter(kind=Kind.PLACE, resolved_at=None)
        reason = request.POST.get("reason", "")
        if places.count() > MOST_AT_ONCE:
            messages.error(request, f"At most {MOST_AT_ONCE} at once.")
            return
        chosen = list(places)
        try:
            resolve_questions(chosen, by=request.user, reason=reason, now=timezone.now())
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        else:
            messages.info(request, f"Places that name no country: {len(chosen)}.")
