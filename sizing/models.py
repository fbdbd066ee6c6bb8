"""AI models and their published figures. They belong to nobody; a tenant's own models are elsewhere."""

from dataclasses import replace

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords

from catalog.models import slug_validator
from catalog.web_addresses import web_address, web_addresses
from sizing.engine.errors import UnsizableModel
from sizing.engine.shapes import ImagePipeline, LanguageModel, SpeechModel, TrainingShape
from sizing.figures import (
    cache_group_problems,
    cache_groups,
    network_problems,
    networks,
    projection_problems,
    projections,
)

MISSING_FIGURES = {
    "parameters": "number of parameters",
    "attention_heads": "number of attention heads",
    "max_context": "maximum context",
    "cache_groups": "cache layout",
    "layers": "number of layers",
    "hidden_size": "hidden size",
    "vocab_size": "vocabulary",
    "projections": "list of projections",
    "networks": "list of networks",
    "decoder_layers": "number of decoder layers",
    "max_source_positions": "number of encoder positions",
    "max_target_positions": "number of decoder positions",
}


_AT_LEAST_ONE = [MinValueValidator(1, "Give 1 or more, or leave it empty when it is unknown.")]


class AiModelQuerySet(models.QuerySet):
    def sizable(self) -> "AiModelQuerySet":
        """Models with every figure that the arithmetic needs; other faults are refused when a row is saved."""
        return self.exclude(_FIGURE_MISSING)

    def unsizable(self) -> "AiModelQuerySet":
        return self.filter(_FIGURE_MISSING)


_FIGURE_MISSING = (
    Q(kind="language")
    & (Q(parameters__isnull=True) | Q(attention_heads__isnull=True) | Q(max_context__isnull=True) | Q(cache_groups=[]))
    | Q(kind="image", networks=[])
    | Q(kind="speech")
    & (
        Q(parameters__isnull=True)
        | Q(decoder_layers__isnull=True)
        | Q(hidden_size__isnull=True)
        | Q(max_source_positions__isnull=True)
        | Q(max_target_positions__isnull=True)
    )
)


class AiModel(models.Model):
    """One model with the published figures that decide its memory. Staff keep it; every figure has its source.

    Null means that the figure is not published or could not be established. A model with an unknown needed figure is
    listed, but cannot be sized: `missing_figure` names it. A language model that lacks what fine-tuning needs can still
    be run: `missing_for` names the figure for one task.
    """

    class Kind(models.TextChoices):
        LANGUAGE = "language", "Language"
        IMAGE = "image", "Image pipeline"
        SPEECH = "speech", "Speech recognition"

    slug = models.CharField(max_length=64, unique=True, validators=[slug_validator])
    name = models.CharField(max_length=120, unique=True)
    family = models.CharField(max_length=60)
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.LANGUAGE)
    accepts_images = models.BooleanField(default=False, help_text="Image tokens count towards the context.")
    parameters = models.PositiveBigIntegerField(
        null=True, blank=True, validators=_AT_LEAST_ONE, help_text="All of them, every expert included."
    )
    active_parameters = models.PositiveBigIntegerField(
        null=True, blank=True, validators=_AT_LEAST_ONE, help_text="Mixtures only; never sized by."
    )
    layers = models.PositiveIntegerField(null=True, blank=True, validators=_AT_LEAST_ONE)
    hidden_size = models.PositiveIntegerField(null=True, blank=True, validators=_AT_LEAST_ONE)
    intermediate_size = models.PositiveIntegerField("MLP width", null=True, blank=True, validators=_AT_LEAST_ONE)
    expert_intermediate_size = models.PositiveIntegerField(
        "expert width", null=True, blank=True, validators=_AT_LEAST_ONE
    )
    attention_heads = models.PositiveIntegerField(null=True, blank=True, validators=_AT_LEAST_ONE)
    kv_heads = models.PositiveIntegerField("KV heads", null=True, blank=True, validators=_AT_LEAST_ONE)
    head_dim = models.PositiveIntegerField("head dimension", null=True, blank=True, validators=_AT_LEAST_ONE)
    vocab_size = models.PositiveIntegerField("vocabulary", null=True, blank=True, validators=_AT_LEAST_ONE)
    max_context = models.PositiveIntegerField("maximum context", null=True, blank=True, validators=_AT_LEAST_ONE)
    cache_groups = models.JSONField(
        default=list,
        blank=True,
        help_text="Groups of layers with the same cache: layers, elements_per_token, kv_heads or null, window or null.",
    )
    state_bytes_per_sequence = models.PositiveBigIntegerField(default=0, help_text="Linear and state-space layers.")
    cache_note = models.CharField(
        max_length=300, blank=True, help_text="An assumption about the cache, shown beside it."
    )
    projections = models.JSONField(
        default=list,
        blank=True,
        help_text="Modules that LoRA can adapt: module, serves, in_features, out_features, layers.",
    )
    networks = models.JSONField(
        default=list, blank=True, help_text="Image pipelines: every network with its role, name and parameters."
    )
    decoder_layers = models.PositiveIntegerField(null=True, blank=True, validators=_AT_LEAST_ONE)
    max_source_positions = models.PositiveIntegerField(
        "encoder positions", null=True, blank=True, validators=_AT_LEAST_ONE, help_text="Of one 30-second window."
    )
    max_target_positions = models.PositiveIntegerField(
        "decoder positions", null=True, blank=True, validators=_AT_LEAST_ONE
    )
    license = models.CharField(max_length=160, blank=True)
    source_url = models.URLField("model card", max_length=300, validators=[web_address])
    revision = models.CharField(max_length=80, blank=True, help_text="Of the configuration read, where one is known.")
    not_published = models.CharField(
        "why not",
        max_length=200,
        blank=True,
        help_text="The reason why a license or a revision is not given. Needed when one of them is empty.",
    )
    sources = models.JSONField(
        default=list, blank=True, validators=[web_addresses], help_text="Addresses where the figures were read."
    )
    release_year = models.PositiveSmallIntegerField(null=True, blank=True)

    objects = AiModelQuerySet.as_manager()
    # Long enough for the origin of every figure of a model that was imported.
    history = HistoricalRecords(history_change_reason_field=models.TextField(null=True))

    class Meta:
        verbose_name = "AI model"
        ordering = ["family", "parameters", "name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(parameters__isnull=True) | Q(parameters__gte=1),
                name="ai_model_parameters_positive",
                violation_error_message="Parameters must be 1 or more; leave them empty when they are unknown.",
            ),
            models.CheckConstraint(
                condition=Q(max_context__isnull=True) | Q(max_context__gte=1),
                name="ai_model_max_context_positive",
                violation_error_message="The maximum context must be 1 or more; leave it empty when it is unknown.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        problems = {
            "cache_groups": self._cache_problems(),
            "projections": projection_problems(self.projections, self.layers),
            "networks": self._network_problems(),
        }
        if found := {field: sentences for field, sentences in problems.items() if sentences}:
            raise ValidationError(found)

    def _cache_problems(self) -> list[str]:
        problems = cache_group_problems(self.cache_groups)
        if not problems and self.layers:
            described = sum(group["layers"] for group in self.cache_groups)
            if self.cache_groups and described > self.layers:
                return [f"The groups have {described} layers together, the model has {self.layers}."]
        return problems

    def _network_problems(self) -> list[str]:
        problems = network_problems(self.networks)
        if not problems and self.networks and self.parameters:
            together = sum(network["parameters"] for network in self.networks)
            if together != self.parameters:
                return [f"The networks have {together:,} parameters together, the model has {self.parameters:,}."]
        return problems

    # --- As the engine takes them -------------------------------------------------------------------------------------

    def shape(self) -> LanguageModel:
        """The figures for running a language model.

        Raises: UnsizableModel naming the figure that is missing, or `kind`.
        """
        self._require_kind(self.Kind.LANGUAGE)
        return LanguageModel(
            name=self.name,
            parameters=self.parameters,  # type: ignore[arg-type]  # the engine refuses None by name
            attention_heads=self.attention_heads,  # type: ignore[arg-type]
            cache_groups=cache_groups(self.cache_groups),
            max_context=self.max_context,  # type: ignore[arg-type]
            split_width=self.expert_intermediate_size or self.intermediate_size,
            state_bytes_per_sequence=self.state_bytes_per_sequence,
        )

    def trainable_shape(self) -> LanguageModel:
        """The figures for fine-tuning a language model.

        Raises: UnsizableModel naming the figure that is missing, or `kind`.
        """
        training = TrainingShape(
            layers=self.layers,  # type: ignore[arg-type]  # the engine refuses None by name
            hidden_size=self.hidden_size,  # type: ignore[arg-type]
            vocab_size=self.vocab_size,  # type: ignore[arg-type]
            projections=projections(self.projections),
        )
        return replace(self.shape(), training=training)

    def image_pipeline(self) -> ImagePipeline:
        """The networks of an image pipeline.

        Raises: UnsizableModel naming the figure that is missing, or `kind`.
        """
        self._require_kind(self.Kind.IMAGE)
        return ImagePipeline(self.name, networks(self.networks))

    def speech_model(self) -> SpeechModel:
        """The figures of a speech recognition model.

        Raises: UnsizableModel naming the figure that is missing, or `kind`.
        """
        self._require_kind(self.Kind.SPEECH)
        return SpeechModel(
            name=self.name,
            parameters=self.parameters,  # type: ignore[arg-type]  # the engine refuses None by name
            decoder_layers=self.decoder_layers,  # type: ignore[arg-type]
            hidden_size=self.hidden_size,  # type: ignore[arg-type]
            max_source_positions=self.max_source_positions,  # type: ignore[arg-type]
            max_target_positions=self.max_target_positions,  # type: ignore[arg-type]
        )

    def _require_kind(self, kind: str) -> None:
        if self.kind != kind:
            raise UnsizableModel(f"{self.name} is not of the kind {kind}", field="kind")

    # --- What can be done with it -------------------------------------------------------------------------------------

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that a model of this kind is for; none for a kind that nobody knows."""
        return TASKS_OF_KIND.get(self.kind, ())

    def missing_for(self, task: str) -> str | None:
        """The name of the figure for want of which the model cannot be sized for `task`, or None; `kind` when the task
        is for other kinds of models."""
        if task not in self.tasks:
            return "kind"
        sized = {
            (self.Kind.LANGUAGE, "run"): self.shape,
            (self.Kind.LANGUAGE, "fine_tune"): self.trainable_shape,
            (self.Kind.IMAGE, "image"): self.image_pipeline,
            (self.Kind.SPEECH, "run"): self.speech_model,
        }[self.Kind(self.kind), task]
        try:
            sized()
        except UnsizableModel as error:
            return error.field
        return None

    @property
    def missing_figure(self) -> str | None:
        """The name of the figure for want of which the model cannot be sized at all, or None."""
        return self.missing_for(self.tasks[0]) if self.tasks else "kind"

    @property
    def unsizable_reason(self) -> str:
        """Why the model cannot be sized, in words; empty when it can."""
        return _reason(self.missing_figure, "it cannot be sized")

    @property
    def untrainable_reason(self) -> str:
        """Why a language model that can be run cannot be fine-tuned, in words; empty when it can or is none."""
        if "fine_tune" not in self.tasks or self.missing_figure:
            return ""
        return _reason(self.missing_for("fine_tune"), "fine-tuning it cannot be sized")

    @property
    def read_at(self) -> tuple[str, str]:
        """Where the figures were read, in words and as an address: "ai-dynamo/aiconfigurator, commit 095f58a51c4c"."""
        repository, at, commit = self.revision.partition("@")
        if not at:
            return self.revision, self.source_url
        blob = f"https://github.com/{repository}/blob/{commit}"
        address = next((source for source in self.sources if source.startswith(blob)), "")
        return f"{repository}, commit {commit}", address or f"https://github.com/{repository}/tree/{commit}"

    @property
    def license_text(self) -> str:
        """The license in words: an unknown one is said to be unknown, never left blank."""
        return self.license or "License not established"


TASKS_OF_KIND = {
    AiModel.Kind.LANGUAGE.value: ("run", "fine_tune"),
    AiModel.Kind.IMAGE.value: ("image",),
    AiModel.Kind.SPEECH.value: ("run",),
}


def _reason(missing: str | None, consequence: str) -> str:
    return f"Its {MISSING_FIGURES.get(missing, missing)} is not published: {consequence}" if missing else ""
