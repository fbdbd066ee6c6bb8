"""Size a workload on the command line, in the words and figures of the pages and the API."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from sizing import explain
from sizing.answers import Question
from sizing.documents import sized_document
from sizing.engine.estimate import MemoryEstimate, estimate, splits
from sizing.engine.workloads import Workload
from sizing.management.question_options import WORKLOAD, add_options, memory_lines, question_in
from sizing.permalinks import page_of


class Command(BaseCommand):
    help = "Compute the GPU memory that a workload needs, line by line."

    def add_arguments(self, parser: CommandParser) -> None:
        add_options(parser, WORKLOAD)
        parser.add_argument("--gpus", default="1", help="GPUs of one machine that a language model is split over.")
        parser.add_argument("--json", action="store_true", help="Print the API's memory block.")

    def handle(self, *args: Any, **options: Any) -> None:
        question = question_in(options)
        gpus = _gpus(str(options["gpus"]), question.workload)
        if options["json"]:
            document = sized_document(question, gpus, page=page_of(question))
            self.stdout.write(json.dumps(document, indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(question, estimate(question.workload, gpus))))


def _gpus(text: str, workload: Workload) -> int:
    gpus = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    if gpus not in splits(workload):
        raise CommandError(f"--gpus: {explain.illegal_split(workload)}")
    return gpus


def _lines(question: Question, need: MemoryEstimate) -> list[str]:
    ai_model, workload = question.ai_model, question.workload
    found = memory_lines(question, need)
    if need.gpus > 1:
        found.append(f"{need.gpus} GPUs, each of them: {explain.gib(need.per_gpu_bytes)}")
    notes = [
        explain.rounding_note(need),
        explain.sensitivity(workload, need.gpus),
        *explain.assumptions(ai_model, need),
        *(limit.text for limit in explain.task_limits(workload)),
    ]
    sources = [f"Source: {ai_model.source_url}"] if ai_model and ai_model.source_url else []
    papers = explain.sources(ai_model, workload)[len(explain.sources(ai_model)) :]
    return [*found, "", *(note for note in notes if note), *sources, *(f"{title}: {url}" for title, url in papers)]
