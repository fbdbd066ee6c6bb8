"""The answer to "where does this fit?" as values: codes, figures and catalog rows. The words are in `explain`."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from catalog.models import Machine, Tier
from catalog.pricing import TERMS_DAYS
from sizing.engine.confidence import Confidence
from sizing.engine.errors import InvalidWorkload
from sizing.engine.estimate import MemoryEstimate
from sizing.engine.workloads import Workload
from sizing.models import AiModel
from sizing.own_shape import OwnShape

ANY_TIER = "any"

# Why a machine was not considered, in the order in which the reasons are looked for. `outside_policy` exists only where
# a caller has limits of its own.
NOT_CONSIDERED = (
    "outside_countries",
    "outside_policy",
    "off_line",
    "out_of_stock",
    "term_not_offered",
    "memory_unknown",
    "illegal_split",
    "too_small",
)


@dataclass(frozen=True)
class Question:
    """A workload of a catalog model or of one that a person brought, and what they would rather have. A notebook has
    no model."""

    ai_model: AiModel | OwnShape | None
    workload: Workload
    preferences: "Preferences"


@dataclass(frozen=True)
class Preferences:
    """Countries, term and lots are hard; budget, hourly maximum and tier are preferences an alternative may miss.

    Units: `budget_usd` is for the whole order of one term; `max_hourly_usd` per lot. `countries` holds ISO codes and
    "EU".
    """

    budget_usd: Decimal | None = None
    max_hourly_usd: Decimal | None = None
    tier: str = ANY_TIER
    countries: tuple[str, ...] = ()
    term_days: int = 7
    lots: int = 1

    def __post_init__(self) -> None:
        for field in ("budget_usd", "max_hourly_usd"):
            amount = getattr(self, field)
            if amount is not None and not (amount.is_finite() and amount >= 0):
                raise InvalidWorkload(f"{field} must be 0 or more", field=field)
        if self.tier not in (ANY_TIER, *Tier.values):
            raise InvalidWorkload("tier must be any, secure or community", field="tier")
        if self.term_days not in TERMS_DAYS:
            raise InvalidWorkload("a term is 3, 7 or 30 days", field="term_days")
        if self.lots < 1:
            raise InvalidWorkload("lots must be 1 or more", field="lots")


@dataclass(frozen=True)
class HardLimits:
    """Hard rules that a caller adds to the question's own, such as an organization's policy; None allows everything.

    Units: `max_order_usd` is for the whole order of one term.
    """

    tiers: Collection[str] | None = None
    countries: Collection[str] | None = None
    max_order_usd: Decimal | None = None


@dataclass(frozen=True)
class Miss:
    """A preference that an alternative misses: `budget_usd`, `max_hourly_usd` (missed `by` so many USD) or `tier`."""

    code: str
    by: Decimal | None = None


@dataclass(frozen=True)
class Candidate:
    """A machine on which the workload fits. `package_usd` is for one lot and term, `order_total_usd` for all lots."""

    machine: Machine
    estimate: MemoryEstimate
    headroom_bytes: int
    package_usd: Decimal
    order_total_usd: Decimal
    confidence: Confidence
    misses: tuple[Miss, ...] = ()

    @property
    def gpus_used(self) -> int:
        return self.estimate.gpus

    @property
    def need_bytes_per_gpu(self) -> int:
        return self.estimate.per_gpu_bytes


@dataclass(frozen=True)
class PrecisionAlternative:
    """The same model at a lower precision, which opens more machines or a cheaper one."""

    precision_bits: int
    estimate: MemoryEstimate
    additional_machines: int
    cheapest_package_usd: Decimal


@dataclass(frozen=True)
class NotConsidered:
    """How many listed machines were left out for one reason of NOT_CONSIDERED; each counts once, under its first."""

    code: str
    count: int


@dataclass(frozen=True)
class StaleLists:
    """Machines inside the countries left out as off-line only because their provider's list is no longer fresh.

    `refreshed_at` is the youngest of those lists' last good refreshes, None when there never was one.
    """

    machines: int
    refreshed_at: datetime | None


@dataclass(frozen=True)
class NearestMiss:
    """The machine that lacks least, with its best attempt: the largest legal split.

    Units: `lacking_bytes` and `largest_memory_bytes`, the largest GPU among the machines tried, are per GPU.
    """

    machine: Machine
    estimate: MemoryEstimate
    lacking_bytes: int
    largest_memory_bytes: int


@dataclass(frozen=True)
class Change:
    """One change to the question that gives at least one machine, verified by asking again with it.

    `field` is the input's name, `value` its new value; `machines` and `cheapest_package_usd` are what the changed
    question gives. For `countries` the value is empty (choose others) and there is no price: machines elsewhere are
    only counted.
    """

    field: str
    value: object
    machines: int
    cheapest_package_usd: Decimal | None


@dataclass(frozen=True)
class Constraint:
    """One thing the answer took into account: an input, a default, a threshold or a caller's limit."""

    code: str
    value: object


@dataclass(frozen=True)
class Answer:
    """Everything a page, the API and a command say about one question. The same data gives the same answer.

    `empty` says why nothing is recommended, None when something is:
    `budget_below_one_term` (every machine that fits costs more), `filters_too_narrow` (preferences, countries, term or
    lots), `nothing_holds_it` (available machines are too small), `stale_lists`, `none_in_stock`, `none_on_line`.
    `stale` is told with every answer. A model that cannot be sized has no answer: its `shape()` raises UnsizableModel.
    """

    question: Question
    limits: HardLimits
    estimate: MemoryEstimate
    splits: tuple[MemoryEstimate, ...]
    recommended_count: int
    recommended: tuple[Candidate, ...]
    machine_alternatives: tuple[Candidate, ...]
    precision_alternatives: tuple[PrecisionAlternative, ...]
    not_considered: tuple[NotConsidered, ...]
    nearest_miss: NearestMiss | None
    changes: tuple[Change, ...]
    empty: str | None
    stale: StaleLists | None
    constraints: tuple[Constraint, ...]
    engine_version: str
    catalog_version: str
    fingerprint: str
    now: datetime
