"""The answer to a question: machines that fit, cheapest first, what else would do, and why the others do not."""

import hashlib
import json
from collections.abc import Callable, Collection
from dataclasses import asdict
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from catalog.models import Machine
from catalog.pricing import CENT, HOURS_PER_DAY
from catalog.querysets import FRESH_FOR
from catalog.version import catalog_version
from sizing.answers import (
    ANY_TIER,
    NOT_CONSIDERED,
    Answer,
    Candidate,
    Constraint,
    HardLimits,
    Miss,
    NotConsidered,
    PrecisionAlternative,
    Preferences,
    Question,
    StaleLists,
)
from sizing.engine import ENGINE_VERSION, confidence
from sizing.engine.estimate import estimate
from sizing.engine.kv_cache import ELEMENT_BYTES
from sizing.engine.networks import IMAGE_BITS
from sizing.engine.overhead import MARGIN_PERCENT, RUNTIME_BYTES
from sizing.engine.parallelism import MAX_SPLIT
from sizing.engine.workloads import (
    FineTune,
    GenerateImages,
    Notebook,
    RunModel,
    Transcribe,
    lower_precisions,
    precision_of,
    task_of,
)
from sizing.measures import ANSWERS
from sizing.nearest import helpful_changes, nearest_miss
from sizing.survey import TOO_LITTLE, Search, Survey

MAX_RECOMMENDED = 50
MAX_ALTERNATIVES = 20
HOURLY_STEP = Decimal("0.0001")


def recommend(question: Question, *, now: datetime, limits: HardLimits | None = None) -> Answer:
    """Where the workload fits at `now`, within a caller's `limits`. Reads the catalog and writes nothing.

    Three queries when something fits, whatever the catalog's size: the counts, the catalog's version, the machines.
    """
    ANSWERS.labels(task_of(question.workload)).inc()
    search = Search(question, limits or HardLimits(), now)
    survey = search.survey()
    version = catalog_version(now)
    recommended = survey.missing()
    fitting = survey.fitting()
    candidate = _candidates_of(search)
    some = recommended.machines > 0
    best = min(recommended.machines, MAX_RECOMMENDED)
    others = min(fitting.machines - recommended.machines, MAX_ALTERNATIVES)
    offered = tuple(map(candidate, search.offered(best, others))) if best or others else ()
    return Answer(
        question=question,
        limits=search.limits,
        estimate=estimate(question.workload),
        splits=search.splits,
        recommended_count=recommended.machines,
        recommended=offered[:best],
        machine_alternatives=offered[best:],
        precision_alternatives=_precision_alternatives(question, survey),
        not_considered=tuple(
            NotConsidered(reason, count) for reason in NOT_CONSIDERED if (count := survey.left_out(reason))
        ),
        nearest_miss=None if fitting.machines else nearest_miss(search),
        changes=() if some else helpful_changes(search, survey),
        empty=None if some else _why_empty(question, survey),
        stale=_stale(survey),
        constraints=_constraints(search),
        engine_version=ENGINE_VERSION,
        catalog_version=version,
        fingerprint=_fingerprint(question, search.limits, version),
        now=now,
    )


def recommended_ids(question: Question, *, now: datetime, limits: HardLimits | None = None) -> set[int]:
    """Every machine that the answer at `now` recommends, listed in it or only counted. One query."""
    return set(Search(question, limits or HardLimits(), now).recommended().order_by().values_list("pk", flat=True))


def recommended_among(
    question: Question, machines: Collection[int], *, now: datetime, limits: HardLimits | None = None
) -> tuple[Candidate, ...]:
    """Those of the machines that the answer at `now` recommends, in its order. One query."""
    search = Search(question, limits or HardLimits(), now)
    return tuple(map(_candidates_of(search), search.recommended().filter(pk__in=machines)))


def _candidates_of(search: Search) -> Callable[[Machine], Candidate]:
    """How a ranked row becomes a candidate."""
    preferences = search.question.preferences
    splits = {split.gpus: split for split in search.splits}

    def candidate(machine: Machine) -> Candidate:
        package_usd = machine.package_usd(preferences.term_days)
        assert package_usd is not None, "every ranked machine offers the term"
        assert machine.gpu_memory_bytes is not None, "and its memory is known"
        split = splits[machine.gpus_used]  # type: ignore[attr-defined]  # annotated by the search
        headroom_bytes = machine.gpu_memory_bytes - split.per_gpu_bytes
        return Candidate(
            machine=machine,
            estimate=split,
            headroom_bytes=headroom_bytes,
            package_usd=package_usd,
            order_total_usd=package_usd * preferences.lots,
            confidence=confidence.judge(
                split,
                memory_bytes=machine.gpu_memory_bytes,
                memory_source=machine.memory_source,
                cuda=machine.gpu.cuda,
            ),
            misses=misses(preferences, machine, package_usd, package_usd * preferences.lots),
        )

    return candidate


def misses(preferences: Preferences, machine: Machine, package_usd: Decimal, order_usd: Decimal) -> tuple[Miss, ...]:
    """The preferences a machine misses, by how much: rounded up, so that raising the preference by it is enough.

    Units: `package_usd` is for one lot and the term, `order_usd` for the whole order.
    """
    missed = []
    if preferences.budget_usd is not None:
        over = order_usd - preferences.budget_usd
        if over > 0:
            missed.append(Miss("budget_usd", over.quantize(CENT, rounding=ROUND_CEILING)))
    if preferences.max_hourly_usd is not None:
        hours = HOURS_PER_DAY * preferences.term_days
        over_hourly = Fraction(package_usd) / hours - Fraction(preferences.max_hourly_usd)
        if over_hourly > 0:
            steps = -(-over_hourly.numerator * 10_000 // over_hourly.denominator)
            missed.append(Miss("max_hourly_usd", steps * HOURLY_STEP))
    if preferences.tier not in (ANY_TIER, machine.tier):
        missed.append(Miss("tier"))
    return tuple(missed)


def _precision_alternatives(question: Question, survey: Survey) -> tuple[PrecisionAlternative, ...]:
    """Each lower precision that opens more machines; a cheaper one is among those, as the others fit already."""
    asked = survey.missing()
    alternatives = []
    for workload in lower_precisions(question.workload):
        bits = precision_of(workload)
        assert bits is not None, "what can be lowered is there"
        lower = survey.missing(precision_bits=bits)
        if lower.machines > asked.machines:
            assert lower.cheapest_package_usd is not None
            alternatives.append(
                PrecisionAlternative(
                    bits, estimate(workload), lower.machines - asked.machines, lower.cheapest_package_usd
                )
            )
    return tuple(alternatives)


def _stale(survey: Survey) -> StaleLists | None:
    groups = [group for group in survey.groups if group.reason == "off_line" and group.online]
    if not groups:
        return None
    refreshes = [group.refreshed_at for group in groups if group.refreshed_at is not None]
    return StaleLists(sum(group.machines for group in groups), max(refreshes, default=None))


def _why_empty(question: Question, survey: Survey) -> str:
    """Which of the empty answers this is; the first that holds."""
    left_out = survey.left_out
    if survey.fitting().machines:
        all_over = survey.over_budget() == survey.fitting()
        return "budget_below_one_term" if all_over else "filters_too_narrow"
    if any(left_out(reason) for reason in (*TOO_LITTLE, "memory_unknown")):
        return "nothing_holds_it"
    if _stale(survey):
        return "stale_lists"
    if left_out("term_not_offered") or (left_out("out_of_stock") and question.preferences.lots > 1):
        return "filters_too_narrow"
    if left_out("out_of_stock"):
        return "none_in_stock"
    if left_out("off_line"):
        return "none_on_line"
    return "filters_too_narrow" if left_out("outside_countries") or left_out("outside_policy") else "none_on_line"


def _constraints(search: Search) -> tuple[Constraint, ...]:
    """Everything the answer takes into account, defaults and thresholds included, in the order of the wizard."""
    question, limits = search.question, search.limits
    workload, preferences = question.workload, question.preferences
    restricted = search.country_codes is not None
    applied: list[tuple[str, object]] = [
        *_of_the_workload(question),
        ("one_machine", True),
        *([("max_split", MAX_SPLIT)] if isinstance(workload, RunModel) else []),
        ("term_days", preferences.term_days),
        ("lots", preferences.lots),
        ("tier", preferences.tier),
        ("countries", preferences.countries),
        ("countries_covered", len(search.country_codes) if search.country_codes is not None else None),
        ("unknown_location", "outside" if restricted else "allowed"),
        ("budget_usd", preferences.budget_usd),
        ("max_hourly_usd", preferences.max_hourly_usd),
        ("known_figures", True),
        ("available", int(FRESH_FOR.total_seconds())),
        ("narrow_margin_percent", confidence.NARROW_MARGIN_PERCENT),
        ("order", "package_usd"),
        ("max_recommended", MAX_RECOMMENDED),
        ("max_alternatives", MAX_ALTERNATIVES),
    ]
    if limits.tiers is not None:
        applied.append(("policy_tiers", tuple(sorted(limits.tiers))))
    if limits.max_order_usd is not None:
        applied.append(("policy_max_order_usd", limits.max_order_usd))
    if limits.countries is not None:
        applied.append(("policy_countries", tuple(sorted(limits.countries))))
    return tuple(Constraint(code, value) for code, value in applied)


def _of_the_workload(question: Question) -> list[tuple[str, object]]:
    """What the estimate takes into account."""
    workload, model = question.workload, question.ai_model.slug if question.ai_model else ""
    if isinstance(workload, Notebook):
        return [("task", "notebook"), ("stated_need", workload.stated), ("nothing_added", True)]
    found: list[tuple[str, object]] = [("task", task_of(workload)), ("model", model)]
    match workload:
        case RunModel():
            found += [
                ("precision_bits", workload.precision_bits),
                ("context", workload.context),
                ("requests", workload.requests),
                ("reserve_bytes", workload.reserve_bytes),
                ("kv_cache_bits", ELEMENT_BYTES * 8),
            ]
        case FineTune():
            found += [
                ("method", "lora"),
                ("precision_bits", workload.precision_bits),
                ("sequence_length", workload.sequence_length),
                ("batch_size", workload.batch_size),
                ("rank", workload.rank),
                ("target_modules", workload.target_modules),
                ("reserve_bytes", workload.reserve_bytes),
                ("checkpointing", True),
            ]
        case GenerateImages():
            found += [
                ("image_bits", IMAGE_BITS),
                ("images", 1),
                ("reserve_bytes", workload.reserve_bytes),
            ]
        case Transcribe():
            found += [
                ("precision_bits", workload.precision_bits),
                ("streams", workload.streams),
                ("window", (workload.model.max_source_positions, workload.model.max_target_positions)),
                ("reserve_bytes", workload.reserve_bytes),
                ("kv_cache_bits", ELEMENT_BYTES * 8),
            ]
    return [*found, ("margin_percent", MARGIN_PERCENT), ("runtime_bytes", RUNTIME_BYTES)]


def _fingerprint(question: Question, limits: HardLimits, version: str) -> str:
    """A digest of everything the answer follows from; of the time only what it means for the catalog's version."""
    preferences = question.preferences
    inputs = {
        **_kind_of_work(question),
        "model": question.ai_model.slug if question.ai_model else None,
        "workload": asdict(question.workload),
        "preferences": asdict(preferences) | {"countries": sorted(set(preferences.countries))},
        "limits": {
            field: None if allowed is None else sorted(set(allowed))
            for field, allowed in (("tiers", limits.tiers), ("countries", limits.countries))
        }
        | ({} if limits.max_order_usd is None else {"max_order_usd": limits.max_order_usd}),
        "engine": ENGINE_VERSION,
        "catalog": version,
    }
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"), default=_canonical_amount)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def _kind_of_work(question: Question) -> dict[str, str]:
    """What tells the tasks apart whose figures could be the same; language-model inference is the unmarked one."""
    workload = question.workload
    return {} if isinstance(workload, RunModel) else {"workload_kind": type(workload).__name__}


def _canonical_amount(amount: object) -> str:
    """300, 300.0 and 300.00 are one amount."""
    if not isinstance(amount, Decimal):
        raise TypeError(f"no canonical form for {type(amount).__name__}")
    return f"{amount.normalize():f}"
