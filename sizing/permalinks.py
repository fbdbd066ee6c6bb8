"""One address for one question: canonical order, defaults included."""

import json
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from catalog.units import to_gib
from sizing.answers import Preferences, Question


def canonical_pairs(question: Question) -> list[tuple[str, str]]:
    """The question as names and values in the order of its address. `question_from` reads them back to the same."""
    workload, preferences = question.workload, question.preferences
    pairs = [
        ("task", "run"),
        ("model", question.ai_model.slug),
        ("precision_bits", str(workload.precision_bits)),
        ("context", str(workload.context)),
        ("requests", str(workload.requests)),
    ]
    if workload.reserve_bytes:
        pairs += [("reserve_gib", str(to_gib(workload.reserve_bytes))), ("reserve_reason", workload.reserve_reason)]
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


def canonical_query(question: Question) -> str:
    """The query string of the question's address, without the question mark."""
    return urlencode(canonical_pairs(question))


def changed(question: Question, field: str, value: Any) -> Question:
    """The question with one input changed, by its name; `reserve_gib` can only be taken away."""
    if field in {one.name for one in fields(Preferences)}:
        return replace(question, preferences=replace(question.preferences, **{field: value}))
    if field == "reserve_gib":
        return replace(question, workload=replace(question.workload, reserve_bytes=0, reserve_reason=""))
    return replace(question, workload=replace(question.workload, **{field: value}))


def api_request(question: Question) -> str:
    """The body of the API request that asks this very question."""
    pairs = [(name, value) for name, value in canonical_pairs(question) if name != "countries"]
    numbers = {"precision_bits", "context", "requests", "term_days", "lots"}
    values: dict[str, Any] = {name: int(value) if name in numbers else value for name, value in pairs}
    values["countries"] = list(question.preferences.countries)
    wished = {one.name for one in fields(Preferences)}
    body = {
        "workload": {name: value for name, value in values.items() if name not in wished},
        "preferences": {name: value for name, value in values.items() if name in wished},
    }
    return json.dumps(body, ensure_ascii=False)


def curl(address: str, question: Question) -> str:
    """A command to paste into a shell: the API request of this question. A quote in a reason cannot end the body."""
    body = api_request(question).replace("'", "\\u0027")
    return f"curl -X POST {address} \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"


def _amount(amount: Decimal) -> str:
    """At least two decimals, and no zeros after them: 0.70, 0.6548."""
    whole, _, fraction = f"{amount:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"
