"""The answer to "where does this fit?" as values: codes, figures and catalog rows. The words are in explain.py."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from catalog.models import Machine
from sizing.engine.confidence import Confidence
from sizing.engine.estimate import MemoryEstimate
from sizing.engine.workloads import RunModel
from sizing.models import AiModel

ANY_TIER = "any"


@dataclass(frozen=True)
class Question:
    """A workload of a catalog model, and what the person would rather have."""

    ai_model: AiModel
    workload: RunModel
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
    """How many listed machines were left out for one reason; each machine counts once, under its first reason."""

    code: str
    count: int


@dataclass(frozen=True)
class NearestMiss:
    """The machine that lacks least, with its best attempt: the largest legal split."""

    machine: Machine
    estimate: MemoryEstimate
    lacking_bytes: int


@dataclass(frozen=True)
class Change:
    """One change to the question that gives at least one machine, verified by asking again with it.

    `field` is the input's name, `value` its new value; `machines` and `cheapest_package_usd` are what the changed
    question gives.
    """

    field: str
    value: object
    machines: int
    cheapest_package_usd: Decimal


@dataclass(frozen=True)
class Answer:
    """Everything a page, the API and a command say about one question. The same data gives the same answer."""

    question: Question
    estimate: MemoryEstimate
    splits: tuple[MemoryEstimate, ...]
    recommended_count: int
    recommended: tuple[Candidate, ...]
    machine_alternatives: tuple[Candidate, ...]
    precision_alternatives: tuple[PrecisionAlternative, ...]
    not_considered: tuple[NotConsidered, ...]
    nearest_miss: NearestMiss | None
    changes: tuple[Change, ...]
    engine_version: str
    catalog_version: str
    fingerprint: str
    now: datetime
