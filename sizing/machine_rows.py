"""A machine that fits as a row of the answer's page, with everything that is said about it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from catalog.freshness import seen_ago
from catalog.models import Machine
from catalog.pricing import hourly_equivalent
from sizing import explain
from sizing.answers import Candidate, Question
from sizing.explain.words import gib, percent
from sizing.permalinks import canonical_query, changed


@dataclass(frozen=True)
class Row:
    """One machine of a table, with everything that is said about it."""

    machine: Machine
    gpus: str
    memory: str
    package_usd: Decimal
    hourly_usd: Decimal
    order_total_usd: Decimal
    headroom: str
    headroom_percent: str
    budget: str | None
    level: str
    level_word: str
    reasons: tuple[explain.Sentence, ...]
    raises: tuple[explain.Sentence, ...]
    why: str
    limits: tuple[explain.Sentence, ...]
    misses: tuple[str, ...]
    launch_query: str
    see_query: str
    seen: str


def machine_row(candidate: Candidate, question: Question, now: datetime) -> Row:
    machine, days = candidate.machine, question.preferences.term_days
    cover = explain.budget_covers(candidate, question.preferences)
    query = canonical_query(question)
    idle = f" (uses {candidate.gpus_used})" if candidate.gpus_used < machine.gpu_count else ""
    return Row(
        machine=machine,
        gpus=f"{machine.gpu.name} × {machine.gpu_count}{idle}",
        memory=explain.memory_text(machine),
        package_usd=candidate.package_usd,
        hourly_usd=hourly_equivalent(candidate.package_usd, days),
        order_total_usd=candidate.order_total_usd,
        headroom=gib(candidate.headroom_bytes),
        headroom_percent=percent(candidate.headroom_bytes, machine.gpu_memory_bytes or 1),
        budget=cover.text if cover else None,
        level=candidate.confidence.level,
        level_word=explain.CONFIDENCE_LEVELS[candidate.confidence.level],
        reasons=tuple(explain.confidence_reasons(candidate)),
        raises=tuple(explain.confidence_raises(candidate)),
        why=explain.why_it_fits(candidate),
        limits=tuple(explain.limits(candidate)),
        misses=tuple(explain.miss_text(miss, candidate.machine) for miss in candidate.misses),
        launch_query=f"machine={machine.pk}&{query}",
        see_query=canonical_query(_without_misses(candidate, question)) if candidate.misses else query,
        seen=seen_ago(machine.provider, now),
    )


def _without_misses(candidate: Candidate, question: Question) -> Question:
    """The question with exactly those preferences loosened that the machine misses, no further than needed."""
    for miss in candidate.misses:
        if miss.code == "tier":
            question = changed(question, "tier", "any")
        else:
            question = changed(question, miss.code, getattr(question.preferences, miss.code) + (miss.by or 0))
    return question
