"""AI models and their published figures. They belong to nobody; a tenant's own models are elsewhere."""

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords

from catalog.models import slug_validator
from sizing.engine.errors import UnsizableModel
from sizing.engine.shapes import CacheGroup, LanguageModel

GROUP_FIELDS = {"layers", "elements_per_token", "kv_heads", "window"}
REQUIRED_GROUP_FIELDS = ("layers", "elements_per_token")
MISSING_FIGURES = {
    "parameters": "number of parameters",
    "attention_heads": "number of attention heads",
    "max_context": "maximum context",
    "cache_groups": "cache layout",
}


_AT_LEAST_ONE = [MinValueValidator(1, "Give 1 or more, or leave it empty when it is unknown.")]


class AiModelQuerySet(models.QuerySet):
    def sizable(self) -> "AiModelQuerySet":
        """Models with every figure that the arithmetic needs; other faults are refused when a row is saved."""
        return self.exclude(_FIGURE_MISSING)

    def unsizable(self) -> "AiModelQuerySet":
        return self.filter(_FIGURE_MISSING)


_FIGURE_MISSING = (
    Q(parameters__isnull=True) | Q(attention_heads__isnull=True) | Q(max_context__isnull=True) | Q(cache_groups=[])
)


class AiModel(models.Model):
    """One model with the published figures that decide its memory. Staff keep it; every figure has its source.

    Null means that the figure is not published or could not be established. A model with an unknown needed figure is
    listed, but cannot be sized: `missing_figure` names it.
    """

    class Kind(models.TextChoices):
        LANGUAGE = "language", "Language"

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
    license = models.CharField(max_length=160, blank=True)
    source_url = models.URLField("model card", max_length=300)
    revision = models.CharField(max_length=80, blank=True, help_text="Of the configuration read, where one is known.")
    sources = models.JSONField(default=list, blank=True, help_text="Addresses where the figures were read.")
    release_year = models.PositiveSmallIntegerField(null=True, blank=True)

    objects = AiModelQuerySet.as_manager()
    history = HistoricalRecords()

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
        problems = cache_group_problems(self.cache_groups)
        if not problems and self.layers:
            described = sum(group["layers"] for group in self.cache_groups)
            if self.cache_groups and described > self.layers:
                problems = [f"The groups have {described} layers together, the model has {self.layers}."]
        if problems:
            raise ValidationError({"cache_groups": problems})
        if not isinstance(self.sources, list) or not all(isinstance(source, str) for source in self.sources):
            raise ValidationError({"sources": 'Give a list of addresses, such as ["https://…"].'})

    def _groups(self) -> tuple[CacheGroup, ...]:
        if problems := cache_group_problems(self.cache_groups):
            raise UnsizableModel(problems[0], field="cache_groups")
        return tuple(CacheGroup(**group) for group in self.cache_groups)

    def shape(self) -> LanguageModel:
        """The figures as the engine takes them.

        Raises: UnsizableModel naming the figure that is missing.
        """
        return LanguageModel(
            name=self.name,
            parameters=self.parameters,  # type: ignore[arg-type]  # the engine refuses None by name
            attention_heads=self.attention_heads,  # type: ignore[arg-type]
            cache_groups=self._groups(),
            max_context=self.max_context,  # type: ignore[arg-type]
            split_width=self.expert_intermediate_size or self.intermediate_size,
            state_bytes_per_sequence=self.state_bytes_per_sequence,
        )

    @property
    def missing_figure(self) -> str | None:
        """The name of the figure for want of which the model cannot be sized, or None."""
        try:
            self.shape()
        except UnsizableModel as error:
            return error.field
        return None

    @property
    def unsizable_reason(self) -> str:
        """Why the model cannot be sized, in words; empty when it can."""
        missing = self.missing_figure
        if missing is None:
            return ""
        return f"Its {MISSING_FIGURES.get(missing, missing)} is not published: it cannot be sized"

    @property
    def license_text(self) -> str:
        """The license in words: an unknown one is said to be unknown, never left blank."""
        return self.license or "License not established"


def cache_group_problems(groups: object) -> list[str]:
    """What is wrong with a list of cache groups as it was written, one sentence each."""
    if not isinstance(groups, list):
        return ["Give a list of groups, or an empty list when the layout is unknown."]
    problems = []
    for number, group in enumerate(groups, start=1):
        if not isinstance(group, dict):
            problems.append(f"Group {number} must be an object with layers, elements_per_token, kv_heads and window.")
            continue
        unknown = sorted(set(group) - GROUP_FIELDS)
        missing = [name for name in REQUIRED_GROUP_FIELDS if name not in group]
        if unknown:
            problems.append(
                f"Group {number}: {', '.join(unknown)} is not known; use {', '.join(sorted(GROUP_FIELDS))}."
            )
        elif missing:
            problems.append(f"Group {number}: {' and '.join(missing)} must be given.")
        else:
            try:
                CacheGroup(**group)
            except UnsizableModel as error:
                problems.append(f"Group {number}: {error}.")
    return problems
