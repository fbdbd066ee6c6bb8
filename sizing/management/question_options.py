"""A question in the options of a command, by the rules and in the words of the pages and the API."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from catalog.units import to_gib
from sizing import explain
from sizing.answers import Question
from sizing.checkpoints.errors import UnreadableModel
from sizing.engine.estimate import MemoryEstimate
from sizing.forms import InvalidInput, nested_question_from
from sizing.models import AiModel
from sizing.own_reading import config_bytes, read_files, weights_bytes
from sizing.own_shape import OwnShape

# The option of each input, so that an error names what was typed.
WORKLOAD = {
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
PREFERENCES = {
    "term_days": "--term-days",
    "lots": "--lots",
    "tier": "--tier",
    "countries": "--countries",
    "max_hourly_usd": "--max-hourly-usd",
    "budget_usd": "--budget-usd",
}
OPTIONS = WORKLOAD | PREFERENCES
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
    "term_days": "3, 7 or 30; 7 by default.",
    "lots": "Machines of one listing; 1 by default.",
    "tier": "secure, community or any; any by default.",
    "countries": "Codes such as DE,FR, or EU; anywhere by default.",
    "max_hourly_usd": "At most so many USD an hour for a lot.",
    "budget_usd": "At most so many USD for the order, for one term.",
}
_LISTS = ("target_modules", "countries")
FILES = {
    "--config": "A model of your own in place of --model: its config.json.",
    "--index": "Beside --config: model.safetensors.index.json or a safetensors file; weights then count as stored.",
    "--gguf": "A model of your own: one GGUF file.",
}
CHUNK = 1024 * 1024


def add_options(parser: CommandParser, names: Iterable[str]) -> None:
    """Values stay as typed: the same rules as everywhere read them, and say what is wrong in the same words."""
    for name in names:
        parser.add_argument(OPTIONS[name], dest=name, default=argparse.SUPPRESS, help=HELP[name])
    for option, text in FILES.items():
        parser.add_argument(option, default=None, metavar="FILE", help=text)


def question_in(options: Mapping[str, Any]) -> Question:
    """The question that was typed.

    Raises: CommandError naming each option that is wrong, or what has to be loaded first.
    """
    brought = _brought(options)
    if brought is None and not AiModel.objects.exists():
        raise CommandError("There are no models yet. Load them first: manage.py load_models")
    try:
        return nested_question_from(
            {"task": "run"} | _given(options, WORKLOAD), _given(options, PREFERENCES), brought=brought
        )
    except InvalidInput as invalid:
        lines = [f"{_option_of(error.field)}: {error.detail}" for error in invalid.errors]
        raise CommandError("\n".join(lines)) from invalid


def memory_lines(question: Question, need: MemoryEstimate) -> list[str]:
    """The workload in words, its memory line by line, and the total."""
    rows = [(explain.label(term.code), explain.formula(term), need.line_bytes(term)) for term in need.terms]
    total = f"{need.total_bytes:,} bytes"
    widest = max(len(text) for text in (total, *(formula for _, formula, _ in rows)))
    first = max(18, *(len(label) for label, _, _ in rows))
    found = [explain.workload_words(question.workload).rstrip(","), ""]
    found += [f"{label:<{first}}  {formula:<{widest}}  {to_gib(size):>12,} GiB" for label, formula, size in rows]
    found.append(f"{'Total':<{first}}  {total:<{widest}}  {to_gib(need.total_bytes):>12,} GiB")
    return found


def _given(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    given = {name: str(options[name]) for name in names if name in options}
    return {name: text.split(",") if name in _LISTS else text for name, text in given.items()}


def _option_of(field: str) -> str:
    name = field.partition(".")[2]
    return OPTIONS.get(name, name)


def _brought(options: Mapping[str, Any]) -> OwnShape | None:
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
