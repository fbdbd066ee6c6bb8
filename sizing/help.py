"""The help page on memory. Its figures are computed when it is opened: an example that was typed could grow stale."""

from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from catalog.parameters import without_parameters
from catalog.units import GB, to_gib
from sizing import explain
from sizing.documents import memory_document
from sizing.engine.confidence import NARROW_MARGIN_PERCENT, Confidence
from sizing.engine.estimate import estimate, split_estimates
from sizing.engine.overhead import MARGIN_PERCENT, RUNTIME_BYTES
from sizing.engine.workloads import PRECISIONS_BITS, RunModel
from sizing.explain.machines import RAISES, REASONS
from sizing.explain.words import counted, gib, whole_gib
from sizing.models import AiModel

EXAMPLE = "llama-3.1-8b"
LONG_CONTEXT = 32768
NOMINAL_SIZES_GB = (16, 24, 48, 80)


@dataclass(frozen=True)
class Variant:
    """The example with something changed, and what it needs then."""

    text: str
    total: str


@require_safe
@without_parameters
def help_memory(request: HttpRequest) -> HttpResponse:
    """How memory is computed, with the worked example out of the engine."""
    context: dict[str, Any] = {
        "margin_percent": MARGIN_PERCENT,
        "runtime": whole_gib(RUNTIME_BYTES),
        "narrow_percent": NARROW_MARGIN_PERCENT,
        "sizes": [(size, gib(size * GB)) for size in NOMINAL_SIZES_GB],
        "reasons": [(REASONS[code], RAISES[code]) for code in REASONS],
        "levels": [(word, Confidence(reasons).level) for word, reasons in _LEVELS],
        "limits": explain.LIMITS_OF_EVERY_ANSWER,
        "example": _example(),
    }
    return render(request, "sizing/help_memory.html", context)


_LEVELS = (
    ("No reason", ()),
    ("One reason", ("datasheet",)),
    ("Two or more", ("datasheet", "narrow_margin")),
    ("Image generation, without any other", ("image",)),
)


def _example() -> dict[str, Any] | None:
    """The worked example; None where staff took the model away, and the page does without."""
    ai_model = AiModel.objects.filter(slug=EXAMPLE).first()
    if ai_model is None or ai_model.missing_figure:
        return None
    workload = RunModel(ai_model.shape())
    memory = memory_document(ai_model, workload)
    return {
        "model": ai_model,
        "workload": workload,
        "context": counted(workload.context, "token"),
        "requests": counted(workload.requests, "request"),
        "memory": memory,
        "total_bytes": counted(memory["total_bytes"], "byte"),
        "lines": [(line, explain.WHAT_IS_THIS[line["code"]]) for line in memory["lines"]],
        "sensitivity": explain.sensitivity(workload),
        "variants": _variants(workload),
        "splits": [(split.gpus, to_gib(split.per_gpu_bytes)) for split in split_estimates(workload)],
    }


def _variants(workload: RunModel) -> list[Variant]:
    changed = [
        (f"{bits} bits", replace(workload, precision_bits=bits))
        for bits in PRECISIONS_BITS
        if bits < (workload.precision_bits or 0)
    ]
    if workload.model.max_context >= LONG_CONTEXT:
        changed.append((f"{LONG_CONTEXT:,} tokens of context", replace(workload, context=LONG_CONTEXT)))
    changed.append(("16 requests at once", replace(workload, requests=16)))
    return [Variant(text, gib(estimate(variant).total_bytes)) for text, variant in changed]
