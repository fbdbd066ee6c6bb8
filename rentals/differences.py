"""What differs between two requests under one key, in the words and units of the pages."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from catalog.models import Machine, Option
from rentals.carried import label_of
from rentals.errors import IdempotencyMismatch
from rentals.models.orders import Environment
from sizing.explain.words import counted, usd
from sizing.forms import TASKS
from sizing.models import AiModel


class DifferenceInWords(NamedTuple):
    label: str
    first: str
    now: str


def in_words(error: IdempotencyMismatch) -> list[DifferenceInWords]:
    return [
        DifferenceInWords(_label(each.field), _value(each.field, each.first), _value(each.field, each.now))
        for each in error.differences
    ]


_LABELS = {
    "method": "Kind of request",
    "path": "Address of the page",
    "machine": "Machine",
    "term_days": "Term",
    "lots": "Lots",
    "options": "Options",
    "environment.preset": "Requested environment",
    "environment.notes": "Notes for the environment",
    "community_acknowledged": "The provider can read the session's memory",
    "misfit_acknowledged": "Ordered although the workload does not fit",
    "workload": "Workload",
    "expected_total_usd": "Total",
}


def _label(field: str) -> str:
    if field in _LABELS:
        return _LABELS[field]
    part, _, name = field.partition(".")
    return f"Workload: {label_of(name)}" if part == "workload" and name else label_of(field)


def _value(field: str, value: Any) -> str:
    if field.endswith("_acknowledged"):
        return "acknowledged" if value else "not acknowledged"
    if value is None or value in ("", [], {}):
        return "none"
    try:
        return _IN_UNITS.get(field, _plain)(value)
    except (TypeError, ValueError, LookupError, InvalidOperation):
        return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _machine(value: Any) -> str:
    machine = Machine.objects.filter(pk=value).only("name").first()
    return machine.name if machine else f"number {value}, which is gone"


def _options(value: Any) -> str:
    names = dict(Option.objects.values_list("slug", "name"))
    return ", ".join(f"{names.get(each['option'], each['option'])} × {each['quantity']}" for each in value)


def _model(value: Any) -> str:
    return AiModel.objects.filter(slug=value).values_list("name", flat=True).first() or str(value)


_IN_UNITS: dict[str, Callable[[Any], str]] = {
    "machine": _machine,
    "term_days": lambda value: counted(int(value), "day"),
    "lots": lambda value: counted(int(value), "lot"),
    "options": _options,
    "environment.preset": lambda value: str(Environment(value).label),
    "expected_total_usd": lambda value: usd(Decimal(value)),
    "workload.task": lambda value: str(TASKS[value]),
    "workload.model": _model,
    "workload.precision_bits": lambda value: f"{value} bits",
    "workload.context": lambda value: counted(int(value), "token"),
    "workload.sequence_length": lambda value: counted(int(value), "token"),
    "workload.requests": lambda value: counted(int(value), "request"),
    "workload.streams": lambda value: counted(int(value), "stream"),
    "workload.batch_size": lambda value: counted(int(value), "sequence"),
    "workload.reserve_gib": lambda value: f"{value} GiB",
    "workload.gpu_memory_gib": lambda value: f"{value} GiB",
    "workload.gpu_memory_gb": lambda value: f"{value} GB",
}
