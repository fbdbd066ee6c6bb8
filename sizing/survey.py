"""A question as conditions on the catalog's rows: which machines, why not the others, in what order.

The database filters, ranks and counts. Prices are compared with a ceiling that was computed here, exactly; the database
does no arithmetic with money: SQLite keeps decimals as floats, which compare rightly to the cent but do not add up.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, reduce
from operator import add, or_
from typing import Any

from django.db import models
from django.db.models import Case, Count, F, Max, Min, Q, QuerySet, Value, When

from catalog import countries
from catalog.models import Machine, Tier
from catalog.pricing import HOURS_PER_DAY, to_cents
from catalog.querysets import has_to_sell, is_current, offers_term
from sizing.answers import ANY_TIER, HardLimits, Question
from sizing.engine.estimate import MemoryEstimate, estimate, split_estimates
from sizing.engine.parallelism import MAX_SPLIT
from sizing.engine.workloads import PRECISIONS_BITS, RunModel, Workload, lower_precisions, precision_of

FITS = ""
TOO_LITTLE = ("illegal_split", "too_small")
_NO_MACHINE = Q(pk__in=[])
_LARGEST_BYTES = 2**63 - 1
_LARGEST_PRICE_CENTS = 10**12 - 1


@dataclass(frozen=True)
class Group:
    """Listed machines that are alike for a question: how many, and the cheapest of them for one lot and the term.

    `reason` is FITS or why they are not considered; `bits` the highest precision, up to the one asked, that they hold,
    0 for none; `cheapest_package_usd` is None where none is sold for the term; `refreshed_at` is when the youngest of
    their providers' lists was refreshed.
    """

    reason: str
    bits: int
    tier: str
    online: bool
    over_budget: int
    over_hourly: int
    machines: int
    cheapest_package_usd: Decimal | None
    refreshed_at: datetime | None


@dataclass(frozen=True)
class Found:
    """How many machines, and the cheapest of them for one lot and the term; None when there are none."""

    machines: int
    cheapest_package_usd: Decimal | None

    @classmethod
    def among(cls, groups: Iterable[Group]) -> "Found":
        chosen = list(groups)
        prices = [group.cheapest_package_usd for group in chosen if group.cheapest_package_usd is not None]
        # SQLite gives the smallest of several decimals with more digits than their column has.
        return cls(sum(group.machines for group in chosen), to_cents(min(prices)) if prices else None)


@dataclass(frozen=True)
class Survey:
    """Every listed machine, in one group or another."""

    question: Question
    groups: tuple[Group, ...]

    def left_out(self, reason: str) -> int:
        return Found.among(group for group in self.groups if group.reason == reason).machines

    def fitting(self, precision_bits: int | None = None) -> Found:
        """Machines that pass every hard rule, whatever they miss."""
        bits = precision_bits or _asked_bits(self.question.workload)
        return Found.among(group for group in self.groups if self._passes(group, bits))

    def over_budget(self) -> Found:
        """Machines that pass every hard rule and cost more than the budget."""
        bits = _asked_bits(self.question.workload)
        return Found.among(group for group in self.groups if self._passes(group, bits) and group.over_budget)

    def missing(self, missed: Collection[str] = (), precision_bits: int | None = None) -> Found:
        """Machines that pass every hard rule and miss exactly the preferences `missed`; by default the recommended."""
        bits = precision_bits or _asked_bits(self.question.workload)
        return Found.among(
            group for group in self.groups if self._passes(group, bits) and self._misses(group) == set(missed)
        )

    def _passes(self, group: Group, bits: int) -> bool:
        return group.reason in (FITS, *TOO_LITTLE) and group.bits >= bits

    def _misses(self, group: Group) -> set[str]:
        wished = self.question.preferences.tier
        missed = {
            "budget_usd": group.over_budget,
            "max_hourly_usd": group.over_hourly,
            "tier": wished not in (ANY_TIER, group.tier),
        }
        return {code for code, is_missed in missed.items() if is_missed}


@dataclass(frozen=True)
class Search:
    """A question, a caller's limits and the time, as conditions and querysets."""

    question: Question
    limits: HardLimits
    now: datetime

    def changed(self, **fields: Any) -> "Search":
        """The search with fields of the workload or of the preferences changed."""
        workload = {name: value for name, value in fields.items() if hasattr(self.question.workload, name)}
        preferences = {name: value for name, value in fields.items() if name not in workload}
        question = replace(
            self.question,
            workload=replace(self.question.workload, **workload),
            preferences=replace(self.question.preferences, **preferences),
        )
        return replace(self, question=question)

    # --- Conditions ---------------------------------------------------------------------------------------------------

    @cached_property
    def splits(self) -> tuple[MemoryEstimate, ...]:
        return split_estimates(self.question.workload)

    @property
    def price(self) -> str:
        """The column with the price of one lot for the term."""
        return f"price_{self.question.preferences.term_days}_days_usd"

    @property
    def hours(self) -> int:
        return HOURS_PER_DAY * self.question.preferences.term_days

    @cached_property
    def country_codes(self) -> frozenset[str] | None:
        """The countries a machine may stand in; None is anywhere, unknown places included."""
        choices = [] if self.limits.countries is None else [countries.expand(self.limits.countries)]
        if self.question.preferences.countries:
            choices.append(countries.expand(self.question.preferences.countries))
        return frozenset.intersection(*choices) if choices else None

    @cached_property
    def hard_rules(self) -> dict[str, Q]:
        """Who passes each hard rule but the fit, by the reason of those who do not, in the order of reasons."""
        preferences = self.question.preferences
        rules = {}
        if self.country_codes is not None:
            rules["outside_countries"] = Q(country__in=sorted(self.country_codes))
        policy = self._policy()
        if policy is not None:
            rules["outside_policy"] = policy
        return rules | {
            "off_line": is_current(self.now),
            "out_of_stock": has_to_sell(preferences.lots),
            "term_not_offered": offers_term(preferences.term_days),
            "memory_unknown": Q(gpu_memory_bytes__isnull=False),
        }

    def _policy(self) -> Q | None:
        """Who is inside a caller's own limits; a machine without a price for the term is left out for that reason."""
        allowed = []
        if self.limits.tiers is not None:
            allowed.append(Q(tier__in=sorted(self.limits.tiers)))
        if self.limits.max_order_usd is not None:
            most = max(self.limits.max_order_usd, Decimal(0))
            ceiling = _whole_cents(Fraction(most) / self.question.preferences.lots)
            allowed.append(Q(**{f"{self.price}__lte": ceiling}) | Q(**{f"{self.price}__isnull": True}))
        return Q(*allowed) if allowed else None

    @cached_property
    def wishes(self) -> dict[str, Q]:
        """Who meets each preference that was given."""
        preferences = self.question.preferences
        wishes = {}
        if preferences.budget_usd is not None:
            ceiling = Fraction(preferences.budget_usd) / preferences.lots
            wishes["budget_usd"] = Q(**{f"{self.price}__lte": _whole_cents(ceiling)})
        if preferences.max_hourly_usd is not None:
            ceiling = Fraction(preferences.max_hourly_usd) * self.hours
            wishes["max_hourly_usd"] = Q(**{f"{self.price}__lte": _whole_cents(ceiling)})
        if preferences.tier != ANY_TIER:
            wishes["tier"] = Q(tier=preferences.tier)
        return wishes

    def _would_hold_illegally(self) -> Q:
        """Machines that a split over all of their GPUs would suit, if only the model divided so."""
        if not isinstance(self.question.workload, RunModel):
            return _NO_MACHINE
        legal = {split.gpus for split in self.splits}
        attempts = (estimate(self.question.workload, gpus) for gpus in range(1, MAX_SPLIT + 1) if gpus not in legal)
        return _any_of(
            Q(gpu_count=attempt.gpus, gpu_memory_bytes__gte=attempt.per_gpu_bytes) for attempt in _storable(attempts)
        )

    # --- Machines -----------------------------------------------------------------------------------------------------

    def eligible(self) -> QuerySet[Machine]:
        """Listed machines that pass every hard rule but the fit."""
        return Machine.objects.listed().filter(*self.hard_rules.values())

    def preferred(self) -> QuerySet[Machine]:
        """Eligible machines that miss no preference."""
        return self.eligible().filter(*self.wishes.values())

    def recommended(self) -> QuerySet[Machine]:
        """Machines that fit and miss no preference, in the order of a recommendation."""
        return self._ranked(self.preferred())

    def offered(self, recommended: int, alternatives: int) -> QuerySet[Machine]:
        """At most so many recommended machines, then at most so many alternatives, each with its `misses`."""
        missed = reduce(add, map(_missed, self.wishes.values()), Value(0))
        machines = self.eligible().annotate(misses=missed)
        if not alternatives:
            machines = machines.filter(misses=0)
        elif recommended:
            best = self.recommended().values("pk")[:recommended]
            machines = machines.filter(Q(misses__gt=0) | Q(pk__in=best))
        else:
            machines = machines.filter(misses__gt=0)
        # Chosen by their ids first: sorting whole rows of all that fit takes several times as long.
        chosen = self._ranked(machines, "misses").values("pk")[: recommended + alternatives]
        return self._ranked(Machine.objects.filter(pk__in=chosen).annotate(misses=missed), "misses")

    def _ranked(self, machines: QuerySet[Machine], *first: str) -> QuerySet[Machine]:
        usable = _storable(self.splits)
        gpus = [When(_holds(split), then=split.gpus) for split in usable]
        need = [When(_holds(split), then=split.per_gpu_bytes) for split in usable]
        return (
            machines.filter(holds(self.question.workload))
            .annotate(
                gpus_used=Case(*gpus, output_field=models.IntegerField()),
                headroom=F("gpu_memory_bytes") - Case(*need, output_field=models.BigIntegerField()),
            )
            .order_by(*first, self.price, "-headroom", _missed(Q(tier=Tier.SECURE)), "id")
            .select_related("gpu", "provider", "feed_absence")
        )

    # --- Counts -------------------------------------------------------------------------------------------------------

    def survey(self) -> Survey:
        """Every listed machine under its first reason, counted in one query."""
        asked = self.question.workload
        reason: Case = Case(
            When(holds(asked), then=Value(FITS)),
            When(self._would_hold_illegally(), then=Value("illegal_split")),
            default=Value("too_small"),
            output_field=models.TextField(),
        )
        for code, passes in reversed(self.hard_rules.items()):
            reason = Case(When(passes, then=reason), default=Value(code), output_field=models.TextField())
        bits = Case(
            *(When(holds(workload), then=_asked_bits(workload)) for workload in (asked, *lower_precisions(asked))),
            default=0,
            output_field=models.IntegerField(),
        )
        everybody = ~_NO_MACHINE
        rows = (
            Machine.objects.listed()
            .annotate(
                reason=reason,
                bits=bits,
                over_budget=_missed(self.wishes.get("budget_usd", everybody)),
                over_hourly=_missed(self.wishes.get("max_hourly_usd", everybody)),
            )
            .order_by()
            .values_list("reason", "bits", "tier", "online", "over_budget", "over_hourly")
            .annotate(Count("id"), Min(self.price), Max("provider__refreshed_at"))
        )
        return Survey(self.question, tuple(Group(*row) for row in rows))


def _asked_bits(workload: Workload) -> int:
    """The precision asked; where it is no choice, the one that there is."""
    return precision_of(workload) or max(PRECISIONS_BITS)


def holds(workload: Workload) -> Q:
    """Machines whose memory per GPU is at least what a legal split needs: the engine's `fit` as a condition."""
    return _any_of(_holds(split) for split in _storable(split_estimates(workload)))


def _holds(split: MemoryEstimate) -> Q:
    return Q(gpu_count__gte=split.gpus, gpu_memory_bytes__gte=split.per_gpu_bytes)


def _storable(estimates: Iterable[MemoryEstimate]) -> tuple[MemoryEstimate, ...]:
    """Those that a column of bytes could reach; beyond, no machine holds it."""
    return tuple(estimate for estimate in estimates if estimate.per_gpu_bytes <= _LARGEST_BYTES)


def _any_of(conditions: Iterable[Q]) -> Q:
    return reduce(or_, conditions, _NO_MACHINE)


def _missed(met: Q) -> Case:
    """1 for who misses it, 0 for who meets it."""
    return Case(When(met, then=0), default=1, output_field=models.IntegerField())


def _whole_cents(amount: Fraction) -> Decimal:
    """The largest price that is not above `amount`."""
    cents = min(amount.numerator * 100 // amount.denominator, _LARGEST_PRICE_CENTS)
    return Decimal(cents).scaleb(-2)
