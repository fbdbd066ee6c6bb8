"""Words for people, for pages, API and command alike. Numbers are computed elsewhere; here they are only written.

`lines` says what the lines of an estimate are, `formulas` fills them in, `memory` has the estimate, `machines` one
machine, `answers` a whole answer.
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
from sizing.explain.formulas import adapter_shape, cache_parts, formula
from sizing.explain.lines import LABELS, WHAT_IS_THIS, label, labels, what_is_this
from sizing.explain.machines import (
    CONFIDENCE_LEVELS,
    BudgetCover,
    Sentence,
    budget_covers,
    confidence_raises,
    confidence_reasons,
    headroom_adds_up,
    limits,
    memory_text,
    miss_text,
    reading_decides,
    task_limits,
    why_it_fits,
)
from sizing.explain.memory import (
    FIGURES_NOTE,
    FIGURES_TOO,
    ROUNDING_NOTE,
    adds_up,
    assumptions,
    illegal_split,
    rounding_note,
    run_model,
    sensitivity,
    sources,
    workload_words,
)
from sizing.explain.words import gib

__all__ = [
    "CONFIDENCE_LEVELS",
    "FIGURES_NOTE",
    "FIGURES_TOO",
    "LABELS",
    "LIMITS_OF_EVERY_ANSWER",
    "ROUNDING_NOTE",
    "WHAT_IS_THIS",
    "BudgetCover",
    "ConstraintText",
    "Sentence",
    "adapter_shape",
    "adds_up",
    "assumptions",
    "budget_covers",
    "cache_parts",
    "change_text",
    "confidence_raises",
    "confidence_reasons",
    "constraints",
    "formula",
    "gib",
    "headroom_adds_up",
    "illegal_split",
    "label",
    "labels",
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
    "task_limits",
    "what_is_this",
    "why_it_fits",
    "workload_words",
]
