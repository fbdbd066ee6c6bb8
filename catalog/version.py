"""The version of the catalog: it changes whenever an answer that rests on the catalog could."""

import hashlib
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, Count, Exists, F, OuterRef, QuerySet, Sum, TextField, Value
from django.db.models.functions import Cast, Coalesce, Length

from catalog.digest import Digest
from catalog.models import FeedAbsence, Gpu, Machine, Provider
from catalog.querysets import has_current_list

# What machines share, and an answer tells or decides by.
_OF_GPU = ("id", "slug", "memory_gb_nominal", Length("vendor"), "vendor", "name")
_OF_PROVIDER = ("id", "name")
# SQLite adds up to 63 bits and then fails: halves of 30 bits may be those of eight billion machines.
_HALF = 30
_ZERO = Value(0, BigIntegerField())


def catalog_version(now: datetime) -> str:
    """A digest of every listed machine; the same rows give the same text on every database.

    Each row has a digest of its own, made by the database whoever writes it (`Machine.answers_digest`): here their sums
    are read, and what stands beside them: GPUs, providers, and what the lists leave out of machines under rent. Of a
    list's age only its meaning counts, whether its machines are offered at `now`: a refresh that changes nothing leaves
    the version alone, and a list that goes stale changes it. One statement.
    """
    parts = _machines().union(_gpus(), _providers(), _stale(now), _absences(), all=True)
    found = sorted((part, *map(int, figures)) for part, *figures in parts)
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def _machines() -> QuerySet[Any, Any]:
    """How many machines are listed, and the sums of both halves of their digests."""
    high, low = F("answers_digest").bitrightshift(_HALF), F("answers_digest").bitand(2**_HALF - 1)
    part = Value("machines", TextField())
    all_of_them = _listed().order_by().values(part=part)
    sums = all_of_them.annotate(machines=Count("*"), high=_sum(high), low=_sum(low))
    return sums.values_list("part", "machines", "high", "low")


def _gpus() -> QuerySet[Any, Any]:
    return _rows("gpus", Gpu.objects.filter(Exists(_listed().filter(gpu=OuterRef("pk")))), Digest(*_OF_GPU))


def _providers() -> QuerySet[Any, Any]:
    machines = _listed().filter(provider=OuterRef("pk"))
    return _rows("providers", Provider.objects.filter(Exists(machines)), Digest(*_OF_PROVIDER))


def _stale(now: datetime) -> QuerySet[Any, Any]:
    """Providers whose on-line machines are not offered, because their list is old."""
    machines = _listed().filter(provider=OuterRef("pk"), online=True)
    return _rows("stale", Provider.objects.exclude(has_current_list(now)).filter(Exists(machines)))


def _absences() -> QuerySet[Any, Any]:
    absences = FeedAbsence.objects.filter(machine__listed=True).exclude(machine__provider__feed_url="")
    return _rows("absences", absences, Digest("lots", "why"))


def _listed() -> QuerySet[Machine]:
    return Machine.objects.filter(listed=True)


def _rows(part: str, rows: QuerySet[Any], digest: Any = _ZERO) -> QuerySet[Any, Any]:
    """One for each row, in the columns of `_machines`."""
    return rows.order_by().values_list(Value(part, TextField()), "pk", digest, _ZERO)


def _sum(figure: Any) -> Any:
    """PostgreSQL's sum of such figures is no whole number, and of no figures it is none."""
    return Cast(Coalesce(Sum(figure, output_field=BigIntegerField()), 0), BigIntegerField())
