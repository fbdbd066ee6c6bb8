"""What is sold beside machines."""

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords

from catalog.models.gpus import slug_validator
from catalog.visible import name_to_see


class Option(models.Model):
    """Something sold beside a machine, such as storage: a price per lot and day."""

    slug = models.CharField(max_length=64, unique=True, validators=[slug_validator])
    name = models.CharField(max_length=120, unique=True, validators=[name_to_see])
    description = models.CharField(max_length=300, blank=True)
    price_per_lot_day_usd = models.DecimalField("price per lot and day (USD)", max_digits=12, decimal_places=6)
    max_quantity = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])
    listed = models.BooleanField(default=True)

    history = HistoricalRecords()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(price_per_lot_day_usd__gt=0) & Q(max_quantity__gte=1),
                name="option_price_and_quantity_positive",
                violation_error_message="Price and largest quantity must be above 0.",
            ),
        ]

    def __str__(self) -> str:
        return self.name
