"""AI models and their published figures. They belong to nobody; a tenant's own models are elsewhere."""

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords

from catalog.models import slug_validator
from sizing.engine.errors import UnsizableModel
from sizing.engine.shapes import CacheGroup, LanguageModel


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
    parameters = models.PositiveBigIntegerField(null=True, blank=True, help_text="All of them, every expert included.")
    active_parameters = models.PositiveBigIntegerField(null=True, blank=True, help_text="Mixtures only; never sized by.")
    layers = models.PositiveIntegerField(null=True, blank=True)
    hidden_size = models.PositiveIntegerField(null=True, blank=True)
    intermediate_size = models.PositiveIntegerField("MLP width", null=True, blank=True)
    expert_intermediate_size = models.PositiveIntegerField("expert width", null=True, blank=True)
    attention_heads = models.PositiveIntegerField(null=True, blank=True)
    kv_heads = models.PositiveIntegerField("KV heads", null=True, blank=True)
    head_dim = models.PositiveIntegerField("head dimension", null=True, blank=True)
    vocab_size = models.PositiveIntegerField("vocabulary", null=True, blank=True)
    max_context = models.PositiveIntegerField("maximum context", null=True, blank=True)
    cache_groups = models.JSONField(
        default=list,
        blank=True,
        help_text="Groups of layers that keep the same cache: layers, elements_per_token, kv_heads or null, window or null.",
    )
    state_bytes_per_sequence = models.PositiveBigIntegerField(default=0, help_text="Linear and state-space layers.")
    cache_note = models.CharField(max_length=300, blank=True, help_text="An assumption about the cache, shown beside it.")
    license = models.CharField(max_length=160, blank=True)
    source_url = models.URLField("model card", max_length=300)
    revision = models.CharField(max_length=80, blank=True, help_text="Of the configuration read, where one is known.")
    sources = models.JSONField(default=list, blank=True, help_text="Addresses where the figures were read.")
    release_year = models.PositiveSmallIntegerField(null=True, blank=True)

    history = HistoricalRecords()

    class Meta:
        verbose_name = "AI model"
        ordering = ["family", "parameters", "name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(parameters__isnull=True) | Q(parameters__gte=1), name="ai_model_parameters_positive"
            ),
            models.CheckConstraint(
                condition=Q(max_context__isnull=True) | Q(max_context__gte=1), name="ai_model_max_context_positive"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if not isinstance(self.cache_groups, list):
            raise ValidationError({"cache_groups": "Give a list of groups."})
        if self.cache_groups:
            try:
                self._groups()
            except (UnsizableModel, TypeError) as error:
                raise ValidationError({"cache_groups": f"{error}"}) from error

    def _groups(self) -> tuple[CacheGroup, ...]:
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
