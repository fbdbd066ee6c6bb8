"""One address for one question: canonical order, defaults included."""

from dataclasses import fields, replace
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from catalog.links import page_url
from catalog.units import to_gib
from sizing.answers import Preferences, Question
from sizing.engine.workloads import FineTune, Notebook, Workload, task_of
from sizing.own_shape import MAX_TOKEN, OwnShape
from sizing.task_fields import SizedModel


def canonical_pairs(question: Question) -> list[tuple[str, str]]:
    """The question as names and values in the order of its address. `question_from` reads them back to the same."""
    preferences = question.preferences
    pairs = workload_pairs(question.ai_model, question.workload)
    pairs += [
        ("term_days", str(preferences.term_days)),
        ("lots", str(preferences.lots)),
        ("tier", str(preferences.tier)),
    ]
    pairs += [("countries", code) for code in preferences.countries]
    for name in ("max_hourly_usd", "budget_usd"):
        amount = getattr(preferences, name)
        if amount is not None:
            pairs.append((name, _amount(amount)))
    return pairs


def workload_pairs(ai_model: SizedModel | None, workload: Workload) -> list[tuple[str, str]]:
    """The workload alone as names and values, in canonical order; `target_modules` has one pair for each word."""
    pairs = []
    for name, value in workload_document(ai_model, workload).items():
        pairs += [(name, str(one)) for one in (value if isinstance(value, list) else [value])]
    return pairs


def workload_document(ai_model: SizedModel | None, workload: Workload) -> dict[str, Any]:
    """The workload as the API takes it, defaults included."""
    document: dict[str, Any] = {"task": task_of(workload)}
    if isinstance(workload, Notebook):
        figure, unit = workload.stated.split()
        return document | {f"gpu_memory_{unit.lower()}": figure}
    assert ai_model is not None, "only a notebook has no model"
    name, value = ai_model.asked_as if isinstance(ai_model, OwnShape) else ("model", ai_model.slug)
    document[name] = value
    counts = {name: getattr(workload, name) for name in _COUNTS if hasattr(workload, name)}
    document |= {name: count for name, count in counts.items() if count is not None}
    if isinstance(workload, FineTune):
        document |= {"target_modules": list(workload.target_modules), "method": "lora"}
    if workload.reserve_bytes:
        document |= {"reserve_gib": str(to_gib(workload.reserve_bytes)), "reserve_reason": workload.reserve_reason}
    return document


_COUNTS = ("precision_bits", "context", "requests", "streams", "sequence_length", "batch_size", "rank")


def canonical_query(question: Question) -> str:
    """The query string of the question's address, without the question mark."""
    return urlencode(canonical_pairs(question))


def page_of(question: Question, path: str = "") -> str:
    """The question's page in full: the public one, or the one at `path`. A brought model that no address can carry is
    brought again on the page for that."""
    own = question.ai_model
    if isinstance(own, OwnShape) and not own.slug and len(own.token) > MAX_TOKEN:
        return page_url("launch-own")
    return f"{settings.SITE_URL}{path or reverse('launch-result')}?{canonical_query(question)}"


def changed(question: Question, field: str, value: Any) -> Question:
    """The question with one input changed, by its name; `reserve_gib` can only be taken away."""
    if field in {one.name for one in fields(Preferences)}:
        return replace(question, preferences=replace(question.preferences, **{field: value}))
    if field == "reserve_gib" and not isinstance(question.workload, Notebook):
        return replace(question, workload=replace(question.workload, reserve_bytes=0, reserve_reason=""))
    return replace(question, workload=replace(question.workload, **{field: value}))


def question_document(question: Question) -> dict[str, Any]:
    """The question as the API takes it."""
    wished = {one.name for one in fields(Preferences)}
    pairs = [(name, value) for name, value in canonical_pairs(question) if name in wished and name != "countries"]
    preferences: dict[str, Any] = {
        name: int(value) if name in ("term_days", "lots") else value for name, value in pairs
    }
    preferences["countries"] = list(question.preferences.countries)
    return {"workload": workload_document(question.ai_model, question.workload), "preferences": preferences}


def _amount(amount: Decimal) -> str:
    """At least two decimals, and no zeros after them: 0.70, 0.6548."""
    whole, _, fraction = f"{amount:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"
