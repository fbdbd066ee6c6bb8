"""The version of the catalog: it changes whenever an answer that rests on the catalog could."""

import hashlib
from datetime import datetime

from django.db.models import BooleanField, Case, Value, When

from catalog.models import Machine
from catalog.querysets import is_current, lots_to_sell

# Everything of a listed machine that decides an answer or is told in one.
_FIELDS = (
    "id",
    "name",
    "provider__name",
    "gpu__name",
    "gpu__vendor",
    "gpu_count",
    "tier",
    "country",
    "gpu_memory_bytes",
    "memory_source",
    "interruptible",
    "max_term_days",
    "lots",
    "online",
    "price_3_days_usd",
    "price_7_days_usd",
    "price_30_days_usd",
)


def catalog_version(now: datetime) -> str:
    """A digest of every listed machine, in the order of their ids; the same rows give the same text on every database.

    The rows themselves are read, not their times of change: stock and feeds are written without touching those. Of a
    feed's age only its meaning counts, whether its machines are current at `now`: a refresh that changes nothing leaves
    the version alone, and a list that goes stale changes it. One query; its cost grows with the listed machines.
    """
    current = Case(When(is_current(now), then=Value(True)), default=Value(False), output_field=BooleanField())
    rows = Machine.objects.listed().order_by("id").values_list(*_FIELDS, lots_to_sell(), current)
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode())
    return digest.hexdigest()[:16]
