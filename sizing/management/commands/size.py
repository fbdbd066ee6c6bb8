"""Size a workload on the command line, in the words and figures of the pages and the API."""

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog.units import to_gib
from sizing import explain
from sizing.checkpoints.errors import UnreadableModel
from sizing.documents import memory_document
from sizing.engine.estimate import MemoryEstimate, estimate, splits
from sizing.engine.workloads import Workload
from sizing.forms import InvalidInput, workload_from
from sizing.models import AiModel
from sizing.own_reading import config_bytes, read_files, weights_bytes
from sizing.own_shape import OwnShape
from sizing.workload_form import SizedModel

# The option of each input, so that an error names what was typed.
OPTIONS = {
    "task": "--task",
    "model": "--model",
    "shape": "--shape",
    "precision_bits": "--bits",
    "context": "--context",
    "requests": "--requests",
    "streams": "--streams",
    "sequence_length": "--sequence-length",
    "batch_size": "--batch-size",
    "rank": "--rank",
    "target_modules": "--target-modules",
    "method": "--method",
    "gpu_memory_gib": "--gpu-memory-gib",
    "gpu_memory_gb": "--gpu-memory-gb",
    "reserve_gib": "--reserve-gib",
    "reserve_reason": "--reserve-reason",
}
HELP = {
    "task": "run, fine_tune, image or notebook; run by default.",
    "model": "Its id, such as llama-3.1-8b; all but a notebook need one.",
    "shape": "The figures of a brought model, as an address or the API has them.",
    "precision_bits": "16, 8 or 4 bits per weight; 16 by default.",
    "context": "Running a language model: tokens per request; 4096 by default.",
    "requests": "Running a language model: requests at once; 1 by default.",
    "streams": "Speech recognition: audio streams at once; 1 by default.",
    "sequence_length": "Fine-tuning: tokens of the longest example; 2048 by default.",
    "batch_size": "Fine-tuning: sequences at once; 1 by default.",
    "rank": "Fine-tuning: rank of the adapters; 16 by default.",
    "target_modules": "Fine-tuning: where adapters are put, such as q,v; q,k,v,o by default.",
    "method": "Fine-tuning: lora.",
    "gpu_memory_gib": "Notebook: the GPU memory you need, in GiB.",
    "gpu_memory_gb": "Notebook: the GPU memory you need, in GB.",
    "reserve_gib": "Own reserve on every GPU, in GiB.",
    "reserve_reason": "Why; required with a reserve.",
}
FILES = {
    "--config": "A model of your own in place of --model: its config.json.",
    "--index": "Beside --config: model.safetensors.index.json or a safetensors file; weights then count as stored.",
    "--gguf": "A model of your own: one GGUF file.",
}
CHUNK = 1024 * 1024


class Command(BaseCommand):
    help = "Compute the GPU memory that a workload needs, line by line."

    def add_arguments(self, parser: CommandParser) -> None:
        # Values stay as typed: the same rules as everywhere read them, and say what is wrong in the same words.
        for name, option in OPTIONS.items():
            parser.add_argument(option, dest=name, default=argparse.SUPPRESS, help=HELP[name])
        for option, text in FILES.items():
            parser.add_argument(option, default=None, metavar="FILE", help=text)
        parser.add_argument("--gpus", default="1", help="GPUs of one machine that a language model is split over.")
        parser.add_argument("--json", action="store_true", help="Print the API's memory block.")

    def handle(self, *args: Any, **options: Any) -> None:
        brought = _brought(options)
        if brought is None and not AiModel.objects.exists():
            raise CommandError("There are no models yet. Load them first: manage.py load_models")
        given: dict[str, Any] = {"task": "run"} | {name: str(options[name]) for name in OPTIONS if name in options}
        if "target_modules" in given:
            given["target_modules"] = [given["target_modules"]]
        try:
            ai_model, workload = workload_from(given, brought=brought)
        except InvalidInput as invalid:
            lines = [f"{OPTIONS.get(error.field, error.field)}: {error.detail}" for error in invalid.errors]
            raise CommandError("\n".join(lines)) from invalid
        gpus = _gpus(str(options["gpus"]), workload)
        if options["json"]:
            self.stdout.write(json.dumps(memory_document(ai_model, workload, gpus), indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(ai_model, estimate(workload, gpus))))


def _brought(options: dict[str, Any]) -> OwnShape | None:
    """The model of the files that were named; None when none was."""
    config, index, gguf = (options[option.removeprefix("--")] for option in FILES)
    if gguf and (config or index):
        raise CommandError("--gguf: a GGUF file describes its model alone: give it without --config and --index.")
    if index and not config:
        raise CommandError("--index: give the config.json of the model too, with --config.")
    if not (config or gguf):
        return None
    try:
        text = _read("--config", config, config_bytes) if config else None
        weights = [
            _read(option, path, weights_bytes) for option, path in (("--index", index), ("--gguf", gguf)) if path
        ]
        return read_files(text, weights).model
    except UnreadableModel as error:
        raise CommandError(f"{config or gguf}: {error}.") from error


def _read(option: str, path: str, read: Callable[[Iterable[bytes]], bytes]) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return read(iter(lambda: file.read(CHUNK), b""))
    except (OSError, ValueError) as error:
        raise CommandError(f"{option}: {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _gpus(text: str, workload: Workload) -> int:
    gpus = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    if gpus not in splits(workload):
        raise CommandError(f"--gpus: {explain.illegal_split(workload)}")
    return gpus


def _lines(ai_model: SizedModel | None, need: MemoryEstimate) -> list[str]:
    workload = need.workload
    rows = [(explain.label(term.code), explain.formula(term), need.line_bytes(term)) for term in need.terms]
    total = f"{need.total_bytes:,} bytes"
    widest = max(len(text) for text in (total, *(formula for _, formula, _ in rows)))
    first = max(18, *(len(label) for label, _, _ in rows))
    found = [explain.workload_words(workload).rstrip(","), ""]
    found += [f"{label:<{first}}  {formula:<{widest}}  {to_gib(size):>12,} GiB" for label, formula, size in rows]
    found.append(f"{'Total':<{first}}  {total:<{widest}}  {to_gib(need.total_bytes):>12,} GiB")
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
