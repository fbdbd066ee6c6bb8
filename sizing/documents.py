"""Answers as JSON has them: the shapes of the API, of `size --json` and of what an order keeps.

Units: memory as integer `_bytes` beside `_gib` texts of two decimals; money as text of two decimals, `_hourly_usd` of
four.
"""

from typing import Any

from catalog.documents import machine_document
from catalog.pricing import hourly_equivalent
from catalog.units import to_gib
from sizing import explain
from sizing.answers import Answer, Candidate, Change, NearestMiss, Question
from sizing.engine.estimate import MemoryEstimate, Term, estimate, split_estimates
from sizing.engine.workloads import Workload
from sizing.task_fields import SizedModel

Document = dict[str, Any]


def memory_document(ai_model: SizedModel | None, workload: Workload, gpus: int = 1) -> Document:
    """The memory block for `gpus` GPUs. `splits` has every legal split over more than one."""
    need = estimate(workload, gpus)
    return {
        "gpus": need.gpus,
        "total_bytes": need.total_bytes,
        "total_gib": _gib(need.total_bytes),
        "rounding_note": explain.rounding_note(need),
        "lines": [line_document(need, term) for term in need.terms],
        "splits": [split_document(split) for split in split_estimates(workload) if split.gpus > 1],
        "assumptions": explain.assumptions(ai_model, need),
        "sources": [{"title": title, "url": url} for title, url in explain.sources(ai_model, workload)],
    }


def sized_document(question: Question, gpus: int = 1, *, page: str) -> Document:
    """The memory block with the page that shows it."""
    return {**memory_document(question.ai_model, question.workload, gpus), "html_url": page}


def line_document(need: MemoryEstimate, term: Term) -> Document:
    """One line, for all GPUs of the estimate together."""
    size = need.line_bytes(term)
    return {
        "code": term.code,
        "label": explain.label(term.code),
        "formula": explain.formula(term),
        "bytes": size,
        "gib": _gib(size),
    }


def split_document(split: MemoryEstimate) -> Document:
    return {
        "gpus": split.gpus,
        "per_gpu_bytes": split.per_gpu_bytes,
        "per_gpu_gib": _gib(split.per_gpu_bytes),
    }


def candidate_document(candidate: Candidate, question: Question) -> Document:
    """A machine on which the workload fits, with why and how sure."""
    covers = explain.budget_covers(candidate, question.preferences)
    return {
        "machine": machine_document(candidate.machine),
        "gpus_used": candidate.gpus_used,
        "need_bytes_per_gpu": candidate.need_bytes_per_gpu,
        "headroom_bytes": candidate.headroom_bytes,
        "package_usd": f"{candidate.package_usd:.2f}",
        "package_hourly_usd": f"{hourly_equivalent(candidate.package_usd, question.preferences.term_days):.4f}",
        "why_it_fits": explain.why_it_fits(candidate),
        "limits": [limit._asdict() for limit in explain.limits(candidate)],
        "confidence": {
            "level": candidate.confidence.level,
            "reasons": [reason._asdict() for reason in explain.confidence_reasons(candidate)],
            "raise": [raising._asdict() for raising in explain.confidence_raises(candidate)],
        },
        "budget_covers": None
        if covers is None
        else {"hours": f"{covers.hours:.2f}", "whole_terms": covers.whole_terms, "text": covers.text},
    }


def alternative_document(candidate: Candidate, question: Question) -> Document:
    """A machine that misses a preference, and by how much."""
    misses = [
        {
            "code": miss.code,
            "by": None if miss.by is None else f"{miss.by:.4f}" if miss.code == "max_hourly_usd" else f"{miss.by:.2f}",
            "text": explain.miss_text(miss, candidate.machine),
        }
        for miss in candidate.misses
    ]
    return {**candidate_document(candidate, question), "misses": misses}


def answer_document(answer: Answer, *, page: str) -> Document:
    """The full answer; `page` is the address of the page that gives the same."""
    question = answer.question
    return {
        "memory": sized_document(question, page=page),
        "recommended_count": answer.recommended_count,
        "recommended": [candidate_document(candidate, question) for candidate in answer.recommended],
        "alternatives": {
            "machines": [alternative_document(candidate, question) for candidate in answer.machine_alternatives],
            "precisions": [
                {
                    "precision_bits": alternative.precision_bits,
                    "total_gib": _gib(alternative.estimate.total_bytes),
                    "additional_machines": alternative.additional_machines,
                    "cheapest_package_usd": f"{alternative.cheapest_package_usd:.2f}",
                }
                for alternative in answer.precision_alternatives
            ],
        },
        "not_considered": [
            {
                "code": left_out.code,
                "count": left_out.count,
                "text": explain.not_considered_text(left_out, question),
            }
            for left_out in answer.not_considered
        ],
        "nearest_miss": None if answer.nearest_miss is None else nearest_miss_document(answer.nearest_miss),
        "changes": [change_document(change) for change in answer.changes],
        "constraints": [constraint._asdict() for constraint in explain.constraints(answer)],
        "limits": [
            limit._asdict() for limit in (*explain.LIMITS_OF_EVERY_ANSWER, *explain.task_limits(question.workload))
        ],
        "engine_version": answer.engine_version,
        "catalog_version": answer.catalog_version,
        "fingerprint": answer.fingerprint,
        "html_url": page,
    }


def nearest_miss_document(nearest: NearestMiss) -> Document:
    """The machine that lacks least, at its best attempt."""
    return {
        "machine": machine_document(nearest.machine),
        "gpus_used": nearest.estimate.gpus,
        "need_bytes_per_gpu": nearest.estimate.per_gpu_bytes,
        "lacking_bytes": nearest.lacking_bytes,
        "text": explain.nearest_miss_text(nearest),
    }


def change_document(change: Change) -> Document:
    """One change that gives at least one machine."""
    price = change.cheapest_package_usd
    return {
        "field": change.field,
        "value": explain.plain_value(change.field, change.value),
        "machines": change.machines,
        "cheapest_package_usd": None if price is None else f"{price:.2f}",
        "text": explain.change_text(change),
    }


def _gib(size_bytes: int) -> str:
    return f"{to_gib(size_bytes)}"
