"""Size a model on the command line, in the words and figures of the pages and the API."""

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog.units import to_gib
from sizing import explain
from sizing.documents import memory_document
from sizing.engine.estimate import MemoryEstimate, estimate
from sizing.engine.parallelism import is_legal_split
from sizing.engine.workloads import RunModel
from sizing.forms import InvalidInput, workload_from
from sizing.models import AiModel

# The option of each input, so that an error names what was typed.
OPTIONS = {
    "model": "--model",
    "precision_bits": "--bits",
    "context": "--context",
    "requests": "--requests",
    "reserve_gib": "--reserve-gib",
    "reserve_reason": "--reserve-reason",
}


class Command(BaseCommand):
    help = "Compute the GPU memory that running a language model needs, line by line."

    def add_arguments(self, parser: CommandParser) -> None:
        # Values stay as typed: the same rules as everywhere read them, and say what is wrong in the same words.
        parser.add_argument("--model", required=True, help="Its id, such as llama-3.1-8b.")
        parser.add_argument("--bits", dest="precision_bits", default="16", help="16, 8 or 4 bits per weight.")
        parser.add_argument("--context", default=argparse.SUPPRESS, help="Tokens per request; 4096 by default.")
        parser.add_argument("--requests", default="1", help="Requests at once.")
        parser.add_argument("--gpus", default="1", help="GPUs of one machine that the model is split over.")
        parser.add_argument("--reserve-gib", default="", help="Own reserve on every GPU, in GiB.")
        parser.add_argument("--reserve-reason", default="", help="Why; required with a reserve.")
        parser.add_argument("--json", action="store_true", help="Print the API's memory block.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not AiModel.objects.exists():
            raise CommandError("There are no models yet. Load them first: manage.py load_models")
        given = {name: str(options[name]) for name in OPTIONS if name in options}
        try:
            ai_model, workload = workload_from({"task": "run", **given})
        except InvalidInput as invalid:
            lines = [f"{OPTIONS.get(error.field, error.field)}: {error.detail}" for error in invalid.errors]
            raise CommandError("\n".join(lines)) from invalid
        gpus = _gpus(str(options["gpus"]), workload)
        if options["json"]:
            self.stdout.write(json.dumps(memory_document(ai_model, workload, gpus), indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(ai_model, estimate(workload, gpus))))


def _gpus(text: str, workload: RunModel) -> int:
    gpus = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    if not is_legal_split(workload.model, gpus):
        raise CommandError(f"--gpus: {explain.illegal_split(workload.model)}")
    return gpus


def _lines(ai_model: AiModel, need: MemoryEstimate) -> list[str]:
    workload = explain.run_model(need)
    rows = [(explain.LABELS[term.code], explain.formula(term), need.line_bytes(term)) for term in need.terms]
    widest = max(len(formula) for _, formula, _ in rows)
    found = [
        f"{ai_model.name}, {workload.precision_bits} bits, {workload.context:,} tokens × {workload.requests:,}",
        "",
    ]
    found += [f"{label:<18}  {formula:<{widest}}  {to_gib(size):>12,} GiB" for label, formula, size in rows]
    found.append(f"{'Total':<18}  {f'{need.total_bytes:,} bytes':<{widest}}  {to_gib(need.total_bytes):>12,} GiB")
    if need.gpus > 1:
        found.append(f"{need.gpus} GPUs, each of them: {explain.gib(need.per_gpu_bytes)}")
    notes = [
        explain.rounding_note(need),
        explain.sensitivity(workload, need.gpus),
        *explain.assumptions(ai_model, need),
    ]
    return [*found, "", *(note for note in notes if note), f"Source: {ai_model.source_url}"]
