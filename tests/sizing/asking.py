"""Questions to a catalog of a few machines, and what the answers to them name."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from catalog.models import Machine
from sizing.answers import Answer, HardLimits, Preferences, Question
from sizing.engine.workloads import RunModel
from sizing.matching import recommend
from sizing.models import AiModel
from tests.factories import make_ai_model, make_machine

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
FEED = {"feed_format": "json", "feed_url": "https://example.com/feed.json"}
WORKLOAD_FIELDS = ("precision_bits", "context", "requests", "reserve_bytes", "reserve_reason")


def ask(ai_model: Any = None, *, limits: HardLimits | None = None, now: datetime = NOW, **fields: Any) -> Answer:
    """The answer for Llama 3.1 8B, or another model, with fields of the workload and the preferences."""
    ai_model = ai_model or AiModel.objects.filter(slug="llama-3.1-8b").first() or make_ai_model()
    workload = {name: fields.pop(name) for name in WORKLOAD_FIELDS if name in fields}
    question = Question(ai_model, RunModel(ai_model.shape(), **workload), Preferences(**fields))
    return recommend(question, now=now, limits=limits)


def offer(name: str, week: str, **fields: Any) -> Machine:
    """A machine at so many USD a week."""
    return make_machine(name=name, price_7_days_usd=Decimal(week), **fields)


def names(candidates: Any) -> list[str]:
    return [candidate.machine.name for candidate in candidates]


def left_out(answer: Answer) -> dict[str, int]:
    return {one.code: one.count for one in answer.not_considered}


def changes(answer: Answer) -> dict[str, Any]:
    return {change.field: change.value for change in answer.changes}
