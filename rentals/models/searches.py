"""Questions that an organization keeps, to be told when a machine appears that answers them."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from rentals.models.organizations import Organization
from rentals.querysets import TenantQuerySet

MAX_SEARCH_NAME = 80
MAX_QUERY = 8000


class SavedSearch(models.Model):
    """A result page under a name. Only `rentals.saved_searches` writes it.

    Shape: `query` is the page's canonical query string; `known` has the ids of the machines that answer it under
    `there`, and under `gone` those that did until a moment ago, each with the moment when it was first missed.
    """

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=MAX_SEARCH_NAME)
    query = models.TextField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_by_name = models.CharField(max_length=254, blank=True)
    created_at = models.DateTimeField()
    known = models.JSONField(default=dict)
    machines = models.PositiveIntegerField(default=0, help_text="How many answered it when it was last asked.")
    checked_at = models.DateTimeField()
    found_at = models.DateTimeField(null=True, blank=True, help_text="When a machine last appeared.")
    problem = models.CharField(max_length=300, blank=True, help_text="Why it cannot be asked any more.")

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name_plural = "saved searches"
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="saved_search_name_once_per_tenant"),
            models.CheckConstraint(condition=~Q(name="") & ~Q(query=""), name="saved_search_has_name_and_query"),
        ]
        indexes = [models.Index(fields=["checked_at"], name="saved_search_due")]

    def __str__(self) -> str:
        return self.name
