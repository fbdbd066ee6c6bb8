"""GPU products, and the ways in which lists spell their names."""

import re

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords

from catalog.visible import name_to_see
from catalog.web_addresses import web_addresses

# Django's own slug validator refuses the dot of "llama-3.1-8b"; one rule for every slug of the console.
SLUG = re.compile(r"\A[a-z0-9][a-z0-9._-]*\Z")
slug_validator = RegexValidator(SLUG.pattern, "Use lower-case letters, digits, dots, hyphens and underscores.")


class Gpu(models.Model):
    """A GPU product, such as the RTX 4090. Staff keep it; its figures are published ones, with their sources.

    Units: figures are per GPU *device*, as software sees it; a card may carry several (`devices_per_card`).
    """

    slug = models.CharField(max_length=64, unique=True, validators=[slug_validator])
    name = models.CharField(max_length=120, unique=True, validators=[name_to_see])
    vendor = models.CharField(max_length=40)
    architecture = models.CharField(max_length=40, blank=True)
    form_factor = models.CharField(max_length=40, blank=True)
    devices_per_card = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1)], help_text="Boards such as the A16 carry several GPU devices."
    )
    memory_type = models.CharField(max_length=20, blank=True)
    compute_capability = models.CharField(max_length=8, blank=True, help_text="CUDA only.")
    memory_gb_nominal = models.PositiveIntegerField(
        "memory (GB, nominal)", null=True, blank=True, help_text="The number on the datasheet, per GPU device."
    )
    memory_mib_reported = models.PositiveIntegerField(
        "memory (MiB, reported)", null=True, blank=True, help_text="What its driver reports, per GPU device."
    )
    memory_bandwidth_gb_s = models.DecimalField(
        "memory bandwidth (GB/s)", max_digits=8, decimal_places=1, null=True, blank=True
    )
    bf16 = models.BooleanField("BF16 in hardware", null=True, blank=True)
    fp8 = models.BooleanField("FP8 in hardware", null=True, blank=True)
    sources = models.JSONField(
        default=list, blank=True, validators=[web_addresses], help_text="Addresses where the figures were read."
    )
    notes = models.TextField(blank=True)

    history = HistoricalRecords()

    class Meta:
        verbose_name = "GPU"
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=(Q(memory_gb_nominal__isnull=True) | Q(memory_gb_nominal__gte=1))
                & (Q(memory_mib_reported__isnull=True) | Q(memory_mib_reported__gte=1))
                & Q(devices_per_card__gte=1),
                name="gpu_figures_positive_or_unknown",
                violation_error_message="Memory figures and devices must be 1 or more; leave an unknown one empty.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def cuda(self) -> bool:
        """Whether the CUDA runtime line of an estimate describes this GPU; others count as `non_cuda` in confidence."""
        return self.vendor == "NVIDIA"


class GpuAlias(models.Model):
    """Another spelling of a GPU. One spelling may belong to several GPUs: then memory must tell them apart."""

    gpu = models.ForeignKey(Gpu, on_delete=models.CASCADE, related_name="aliases")
    name = models.CharField(max_length=120, validators=[name_to_see])

    history = HistoricalRecords()

    class Meta:
        verbose_name = "GPU alias"
        verbose_name_plural = "GPU aliases"
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["gpu", "name"], name="gpu_alias_once_per_gpu")]

    def __str__(self) -> str:
        return self.name
