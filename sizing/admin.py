"""Staff keep the models' published figures. What a figure leads to is shown beside it before anybody relies on it."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from simple_history.admin import SimpleHistoryAdmin

from catalog.admin.preview import PreviewsForm, computed_from
from sizing import explain
from sizing.engine.estimate import estimate
from sizing.engine.workloads import FineTune, GenerateImages, RunModel, Transcribe, Workload
from sizing.models import AiModel, AiModelQuerySet
from sizing.publishing import ImportForm
from sizing.workload_form import DEFAULT_SEQUENCE_LENGTH

EXAMPLE_CONTEXT = 4096
# What an example is computed from.
FIGURES = (
    "kind", "parameters", "active_parameters", "layers", "hidden_size", "intermediate_size", "expert_intermediate_size",
    "attention_heads", "kv_heads", "head_dim", "vocab_size", "max_context", "cache_groups", "state_bytes_per_sequence",
    "projections", "networks", "decoder_layers", "max_source_positions", "max_target_positions", "__all__",
)  # fmt: skip


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
    """A model's figures, which nobody can rely on without knowing whose they are and under which license."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        missing = [name for name in ("license", "revision") if name not in self.errors and not cleaned.get(name)]
        if missing and "not_published" not in self.errors and not cleaned.get("not_published"):
            for name in missing:
                self.add_error(name, f"Give the {name}, or write below why there is none.")
        return cleaned

    # The admin adds model and fields.
    class Meta:
        help_texts = {
            "cache_groups": (
                'A list such as [{"layers": 32, "elements_per_token": 2048, "kv_heads": 8, "window": null}]. '
                "Elements per token are 2 × KV heads × head dimension, or for latent attention (MLA) kv_lora_rank + "
                "qk_rope_head_dim with kv_heads null. Empty means that the layout is unknown: the model is "
                "then not sized."
            ),
            "projections": (
                'A list such as [{"module": "q_proj", "serves": ["q"], "in_features": 4096, "out_features": 4096, '
                '"layers": 32}]. A fused module serves several of q, k, v, o, gate, up and down. Empty means that they '
                "are unknown: fine-tuning is then not sized."
            ),
            "networks": (
                'A list such as [{"role": "denoiser", "name": "UNet2DConditionModel", "parameters": 2567463684}]; the '
                "roles are denoiser, text_encoder, vae and safety_checker. Their sum is the number of parameters."
            ),
        }
        error_messages = {
            "cache_groups": {"invalid": 'This is not JSON. Write a list such as [{"layers": 32, …}].'},
            "projections": {"invalid": 'This is not JSON. Write a list such as [{"module": "q_proj", …}].'},
            "networks": {"invalid": 'This is not JSON. Write a list such as [{"role": "denoiser", …}].'},
            "sources": {"invalid": 'This is not JSON. Write a list such as ["https://…"].'},
        }


@admin.register(AiModel)
class AiModelAdmin(PreviewsForm, SimpleHistoryAdmin):
    form = AiModelForm
    preview_buttons = (("_preview", "Show the worked example of these figures"),)
    previewed_parts = ("worked_example", "training_example")
    list_display = (
        "name", "slug", "family", "parameters_shown", "max_context", "license_shown", "example_total", "problem",
    )  # fmt: skip
    list_filter = (SizableFilter, "kind", "family", "accepts_images", "release_year")
    list_per_page = 100
    search_fields = ("name", "slug", "family", "license")
    readonly_fields = ("worked_example", "training_example")
    fieldsets = (
        (None, {"fields": ("name", "slug", "family", "kind", "accepts_images", "release_year")}),
        ("Worked example", {"fields": ("worked_example", "training_example")}),
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
        ("Fine-tuning", {"fields": ("projections",)}),
        ("Image pipelines", {"fields": ("networks",)}),
        ("Speech recognition", {"fields": (("decoder_layers", "max_source_positions", "max_target_positions"),)}),
        ("Where this was read", {"fields": ("source_url", "license", "revision", "not_published", "sources")}),
    )  # fmt: skip

    def get_urls(self) -> list[Any]:
        own = path("import/", self.admin_site.admin_view(self.import_view), name="sizing_aimodel_import")
        return [own, *super().get_urls()]

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """A model of the catalog from its config.json; its figures are then looked at on its own page."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
        if request.method == "POST" and form.is_valid():
            model = form.publish(form.reading.model, form.reading.document)
            if model is not None:
                self.log_addition(request, model, f"Imported from config.json ({form.reading.model.architecture}).")
                messages.success(request, f"{model} is in the catalog. Check its figures and its worked example.")
                return redirect("admin:sizing_aimodel_change", model.pk)
        context = {
            **self.admin_site.each_context(request),
            "title": "Import from config.json",
            "opts": self.opts,
            "form": form,
            "back": reverse("admin:sizing_aimodel_changelist"),
            "explanation": "Each figure is derived from the file, and its origin is kept in the model's history. What "
            "is not understood is refused by the name of its field.",
        }
        return render(request, "admin/sizing/aimodel/import.html", context)

    @admin.display(description="parameters", ordering="parameters")
    def parameters_shown(self, model: AiModel) -> str:
        return "unknown" if model.parameters is None else f"{model.parameters:,}"

    @admin.display(description="license", ordering="license")
    def license_shown(self, model: AiModel) -> str:
        return model.license_text

    @admin.display(description="example")
    def example_total(self, model: AiModel) -> str:
        if model.missing_figure:
            return "not sized"
        workload = example(model)
        return f"{explain.gib(estimate(workload).total_bytes)} ({example_words(workload)})"

    @admin.display(description="problem")
    def problem(self, model: AiModel) -> str:
        return model.unsizable_reason or model.untrainable_reason or "none"

    @admin.display(description="what it needs at 16 bits")
    @computed_from(*FIGURES)
    def worked_example(self, model: AiModel) -> SafeString | str:
        """The lines as saved or as the form has them, or which figure is missing for them."""
        if model.pk is None and not model.parameters and not model.networks:
            return "Fill in the figures and press the button below the form."
        if model.missing_figure:
            return model.unsizable_reason
        return _table(example(model))

    @admin.display(description="what fine-tuning it needs")
    @computed_from(*FIGURES)
    def training_example(self, model: AiModel) -> SafeString | str:
        """The lines of LoRA with its defaults, or which figure is missing for them."""
        if "fine_tune" not in model.tasks:
            return "Only language models are fine-tuned."
        if model.missing_for("fine_tune"):
            return model.untrainable_reason or model.unsizable_reason
        shape = model.trainable_shape()
        return _table(FineTune(shape, sequence_length=min(DEFAULT_SEQUENCE_LENGTH, shape.max_context)))


def _table(workload: Workload) -> SafeString:
    need = estimate(workload)
    rows = [(explain.label(term.code), explain.formula(term), explain.gib(term.bytes)) for term in need.terms]
    rows.append(("Total", f"{example_words(workload)}, on one GPU", explain.gib(need.total_bytes)))
    body = format_html_join("", "<tr><th scope='row'>{}</th><td>{}</td><td>{}</td></tr>", rows)
    return format_html("<table><tbody>{}</tbody></table>", body)


def example(model: AiModel) -> Workload:
    """The example's workload, shorter for a language model whose longest context is shorter."""
    if model.kind == AiModel.Kind.IMAGE:
        return GenerateImages(model.image_pipeline())
    if model.kind == AiModel.Kind.SPEECH:
        return Transcribe(model.speech_model())
    shape = model.shape()
    return RunModel(shape, context=min(EXAMPLE_CONTEXT, shape.max_context))


def example_words(workload: Workload) -> str:
    """What an example assumes: "4,096 tokens × 1 request"."""
    if isinstance(workload, RunModel):
        return f"{workload.context:,} tokens × 1 request"
    if isinstance(workload, FineTune):
        return f"{workload.sequence_length:,} tokens × 1 sequence, rank {workload.rank}"
    return "1 audio stream" if isinstance(workload, Transcribe) else "one image"
