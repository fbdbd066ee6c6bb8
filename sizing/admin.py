"""Staff keep the models' published figures. What a figure leads to is shown beside it before anybody relies on it."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from simple_history.admin import SimpleHistoryAdmin

from sizing import explain
from sizing.engine.estimate import estimate
from sizing.engine.workloads import RunModel
from sizing.models import AiModel, AiModelQuerySet

EXAMPLE_CONTEXT = 4096


class SizableFilter(admin.SimpleListFilter):
    """Models with every needed figure, or those that lack one."""

    title = "can be sized"
    parameter_name = "sizable"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No, a figure is missing")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AiModel]) -> QuerySet[AiModel]:
        assert isinstance(queryset, AiModelQuerySet)
        return {"yes": queryset.sizable, "no": queryset.unsizable}.get(self.value() or "", queryset.all)()


class AiModelForm(forms.ModelForm):
    # The admin adds model and fields.
    class Meta:
        help_texts = {
            "cache_groups": (
                'A list such as [{"layers": 32, "elements_per_token": 2048, "kv_heads": 8, "window": null}]. '
                "Elements per token are 2 × KV heads × head dimension, or for latent attention (MLA) kv_lora_rank + "
                "qk_rope_head_dim with kv_heads null. Empty means that the layout is unknown: the model is "
                "then not sized."
            ),
        }
        error_messages = {
            "cache_groups": {"invalid": 'This is not JSON. Write a list such as [{"layers": 32, …}].'},
            "sources": {"invalid": 'This is not JSON. Write a list such as ["https://…"].'},
        }


@admin.register(AiModel)
class AiModelAdmin(SimpleHistoryAdmin):
    form = AiModelForm
    formfield_overrides: ClassVar = {models.URLField: {"assume_scheme": "https"}}
    list_display = (
        "name", "slug", "family", "parameters_shown", "max_context", "license_shown", "example_total", "problem",
    )  # fmt: skip
    list_filter = (SizableFilter, "family", "accepts_images", "release_year")
    list_per_page = 100
    search_fields = ("name", "slug", "family", "license")
    readonly_fields = ("worked_example",)
    fieldsets = (
        (None, {"fields": ("name", "slug", "family", "kind", "accepts_images", "release_year")}),
        ("Worked example", {"fields": ("worked_example",)}),
        ("Size", {"fields": ("parameters", "active_parameters")}),
        (
            "Shape",
            {
                "fields": (
                    ("layers", "hidden_size"), ("intermediate_size", "expert_intermediate_size"),
                    ("attention_heads", "kv_heads", "head_dim"), ("vocab_size", "max_context"),
                ),
            },
        ),
        ("Cache", {"fields": ("cache_groups", "state_bytes_per_sequence", "cache_note")}),
        ("Where this was read", {"fields": ("license", "source_url", "revision", "sources")}),
    )  # fmt: skip

    @admin.display(description="parameters", ordering="parameters")
    def parameters_shown(self, model: AiModel) -> str:
        return "unknown" if model.parameters is None else f"{model.parameters:,}"

    @admin.display(description="license", ordering="license")
    def license_shown(self, model: AiModel) -> str:
        return model.license_text

    @admin.display(description=f"16 bits, {EXAMPLE_CONTEXT:,} × 1")
    def example_total(self, model: AiModel) -> str:
        return (
            "not sized"
            if model.missing_figure or model.kind != AiModel.Kind.LANGUAGE
            else explain.gib(estimate(example(model)).total_bytes)
        )

    @admin.display(description="problem")
    def problem(self, model: AiModel) -> str:
        return model.unsizable_reason or "none"

    @admin.display(description="what it needs at 16 bits")
    def worked_example(self, model: AiModel) -> SafeString | str:
        """The lines as saved, or which figure is missing for them."""
        if model.pk is None:
            return "Shown once the model is saved."
        if model.missing_figure:
            return model.unsizable_reason
        if model.kind != AiModel.Kind.LANGUAGE:
            return "Not sized yet."
        workload = example(model)
        need = estimate(workload)
        rows = [(explain.LABELS[term.code], explain.formula(term), explain.gib(term.bytes)) for term in need.terms]
        context = f"{workload.context:,} tokens × 1 request, on one GPU"
        rows.append(("Total", context, explain.gib(need.total_bytes)))
        body = format_html_join("", "<tr><th scope='row'>{}</th><td>{}</td><td>{}</td></tr>", rows)
        return format_html("<table><tbody>{}</tbody></table>", body)


def example(model: AiModel) -> RunModel:
    """The example's workload, shorter for a model whose longest context is shorter."""
    shape = model.shape()
    return RunModel(shape, context=min(EXAMPLE_CONTEXT, shape.max_context))
