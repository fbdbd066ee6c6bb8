"""One address for one question: canonical order, defaults included."""

from decimal import Decimal
from urllib.parse import urlencode

from catalog.units import to_gib
from sizing.answers import Question


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


def _amount(amount: Decimal) -> str:
    """At least two decimals, and no zeros after them: 0.70, 0.6548."""
    whole, _, fraction = f"{amount:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"
