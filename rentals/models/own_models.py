"""Models that an organization brought: figures derived from files of its own, with their origin."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from rentals.models.organizations import Organization, organization_slug_validator
from rentals.querysets import TenantQuerySet
from sizing.checkpoints.errors import UnreadableModel
from sizing.own_shape import MAX_NAME, OWN_PREFIX, OwnShape, read_figures


class OwnModel(models.Model):
    """A language model of one organization. Only `rentals.own_models` writes it; it is never changed, only deleted.

    `figures` are those of `OwnShape`, `reading` says for each from which fields of which file it came.
    """

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=MAX_NAME)
    slug = models.CharField(max_length=64, validators=[organization_slug_validator])
    figures = models.JSONField()
    reading = models.JSONField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_by_name = models.CharField(max_length=254, blank=True)
    created_at = models.DateTimeField()

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["organization_id", "name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug"], name="own_model_slug_once_per_organization"),
            models.CheckConstraint(condition=~Q(name="") & ~Q(slug=""), name="own_model_has_name_and_slug"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.organization_id}"

    def shape(self) -> OwnShape:
        """The figures as sizing takes them.

        Raises: UnreadableModel when they are not what sizing reads now.
        """
        return read_figures(self.figures, slug=f"{OWN_PREFIX}{self.slug}")

    @property
    def readable(self) -> OwnShape | None:
        try:
            return self.shape()
        except UnreadableModel:
            return None
