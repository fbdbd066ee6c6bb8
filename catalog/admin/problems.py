"""What staff should look at of a machine: each problem as a condition for the list and as words for its column."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from catalog.models import Availability, FeedAbsence, Machine
from catalog.pricing import HOURS_PER_DAY, STANDARD_TERMS_DAYS
from catalog.querysets import is_current
from catalog.units import GB

# Outside of these a price is more likely a slip of the decimal point than an offer.
LEAST_USD_PER_GPU_HOUR = Decimal("0.01")
MOST_USD_PER_GPU_HOUR = Decimal(50)
# A package far from its hourly price was meant for another term or another machine.
LEAST_SHARE, MOST_SHARE = Decimal("0.25"), Decimal(2)
# Memory further from the datasheet's belongs to another variant of the GPU.
LEAST_OF_NOMINAL, MOST_OF_NOMINAL = Decimal("0.85"), Decimal("1.15")


class Problem(NamedTuple):
    """`condition` finds the machines that have it, `says` is empty for a machine that has not."""

    code: str
    title: str
    condition: Callable[[datetime], Q]
    says: Callable[[Machine, datetime], str]


def _country_words(machine: Machine, now: datetime) -> str:
    if machine.country:
        return ""
    return f"country unknown: “{machine.place_raw}”" if machine.place_raw else "country unknown"


def _price_condition(now: datetime) -> Q:
    wrong = Q(hourly_usd__lt=F("gpu_count") * LEAST_USD_PER_GPU_HOUR)
    wrong |= Q(hourly_usd__gt=F("gpu_count") * MOST_USD_PER_GPU_HOUR)
    for days in STANDARD_TERMS_DAYS:
        package, hours = f"price_{days}_days_usd", Decimal(HOURS_PER_DAY * days)
        wrong |= Q(**{f"{package}__lt": F("hourly_usd") * (hours * LEAST_SHARE)})
        wrong |= Q(**{f"{package}__gt": F("hourly_usd") * (hours * MOST_SHARE)})
    return wrong


def _price_words(machine: Machine, now: datetime) -> str:
    per_gpu = machine.hourly_usd / machine.gpu_count
    if not LEAST_USD_PER_GPU_HOUR <= per_gpu <= MOST_USD_PER_GPU_HOUR:
        return f"price implausible: ${per_gpu:.4f} per GPU and hour"
    for days in STANDARD_TERMS_DAYS:
        package, hourly = getattr(machine, f"price_{days}_days_usd"), machine.hourly_usd * HOURS_PER_DAY * days
        # None: an older version is shown from a form that left it empty, and saving would compute it.
        if package is not None and not hourly * LEAST_SHARE <= package <= hourly * MOST_SHARE:
            return f"price implausible: {days} days are far from the hourly price"
    return ""


def _memory_unlike(now: datetime) -> Q:
    # One factor with decimals: PostgreSQL takes a whole one for an integer, and the bytes are too many for that.
    least, most = (F("gpu__memory_gb_nominal") * (share * GB) for share in (LEAST_OF_NOMINAL, MOST_OF_NOMINAL))
    return Q(gpu_memory_bytes__lt=least) | Q(gpu_memory_bytes__gt=most)


def _memory_unlike_words(machine: Machine, now: datetime) -> str:
    nominal = machine.gpu.memory_gb_nominal
    if machine.gpu_memory_bytes is None or nominal is None:
        return ""
    if nominal * GB * LEAST_OF_NOMINAL <= machine.gpu_memory_bytes <= nominal * GB * MOST_OF_NOMINAL:
        return ""
    return f"memory unlike its GPU, which has {nominal} GB"


def _withheld_words(machine: Machine, now: datetime) -> str:
    absence = machine.absence
    if not absence or not machine.free_lots or absence.why == FeedAbsence.Why.GONE:
        return ""
    if absence.is_whole:
        return (
            f"free lots not sold: its list has stricter terms ({absence.detail}). They are sold again when the rented "
            "lots are back, or when the terms here are those of the list"
        )
    withheld = machine.free_lots - machine.lots_to_sell
    return f"{withheld:,} of {machine.free_lots:,} free lots not sold: its list has fewer while others are under rent"


PROBLEMS = (
    Problem(
        "memory",
        "Memory missing",
        lambda now: Q(gpu_memory_bytes__isnull=True),
        lambda machine, now: "memory missing: excluded from sizing" if machine.gpu_memory_bytes is None else "",
    ),
    Problem(
        "country",
        "Country unknown",
        lambda now: Q(country__isnull=True),
        _country_words,
    ),
    Problem("price", "Price implausible", _price_condition, _price_words),
    Problem("memory_unlike", "Memory unlike its GPU", _memory_unlike, _memory_unlike_words),
    Problem(
        "unconfirmed",
        "Not confirmed lately",
        lambda now: Q(online=True) & ~is_current(now),
        lambda machine, now: (
            "not confirmed lately: offered to nobody" if machine.availability(now) == Availability.UNCONFIRMED else ""
        ),
    ),
    Problem(
        "withheld",
        "Free lots not sold",
        lambda now: (
            Q(free_lots__gt=0, feed_absence__why__in=[FeedAbsence.Why.TERMS, FeedAbsence.Why.FEWER])
            & ~Q(provider__feed_url="")
        ),
        _withheld_words,
    ),
)


def problems_of(machine: Machine, now: datetime) -> list[str]:
    return [words for problem in PROBLEMS if (words := problem.says(machine, now))]


class ProblemFilter(admin.SimpleListFilter):
    title = "problems"
    parameter_name = "problems"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [*((problem.code, problem.title) for problem in PROBLEMS), ("any", "Any of these")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Machine]) -> QuerySet[Machine]:
        now = timezone.now()
        asked = [problem for problem in PROBLEMS if self.value() in (problem.code, "any")]
        if not asked:
            return queryset
        condition = Q()
        for problem in asked:
            condition |= problem.condition(now)
        return queryset.filter(condition)
