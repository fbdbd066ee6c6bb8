"""Words for people, for pages, API and command alike. Numbers are computed elsewhere; here they are only written.

`memory` has the lines of an estimate and their formulas, `machines` one machine, `answers` a whole answer.
"""

from sizing.explain.answers import (
    LIMITS_OF_EVERY_ANSWER,
    ConstraintText,
    change_text,
    constraints,
    nearest_miss_text,
    not_considered_text,
    places,
    plain_value,
    precision_text,
)
from sizing.explain.machines import (
    CONFIDENCE_LEVELS,
    BudgetCover,
    Sentence,
    budget_covers,
    confidence_raises,
    confidence_reasons,
    limits,
    memory_text,
    miss_text,
    reading_decides,
    why_it_fits,
)
from sizing.explain.memory import (
    LABELS,
    ROUNDING_NOTE,
    WHAT_IS_THIS,
    assumptions,
    cache_parts,
    formula,
    illegal_split,
    rounding_note,
    run_model,
    sensitivity,
    sources,
)
from sizing.explain.words import gib

__all__ = [
    "CONFIDENCE_LEVELS",
    "LABELS",
    "LIMITS_OF_EVERY_ANSWER",
    "ROUNDING_NOTE",
    "WHAT_IS_THIS",
    "BudgetCover",
    "ConstraintText",
    "Sentence",
    "assumptions",
    "budget_covers",
    "cache_parts",
    "change_text",
    "confidence_raises",
    "confidence_reasons",
    "constraints",
    "formula",
    "gib",
    "illegal_split",
    "limits",
    "memory_text",
    "miss_text",
    "nearest_miss_text",
    "not_considered_text",
    "places",
    "plain_value",
    "precision_text",
    "reading_decides",
    "rounding_note",
    "run_model",
    "sensitivity",
    "sources",
    "why_it_fits",
]
