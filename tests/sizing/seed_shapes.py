"""Every seeded model as the engine takes it, without a database: tests ask about all of them, not about a few."""

import json
from collections.abc import Iterator

from sizing import seeding
from sizing.engine.workloads import FineTune, GenerateImages, Notebook, RunModel, Transcribe, Workload
from sizing.models import AiModel

MODELS = {row["slug"]: AiModel(**row) for row in json.loads(seeding.MODELS.read_text(encoding="utf-8"))}
SIZABLE = {slug: model for slug, model in MODELS.items() if not model.missing_figure}
LANGUAGE = {slug: model for slug, model in SIZABLE.items() if model.kind == AiModel.Kind.LANGUAGE}
IMAGE = {slug: model for slug, model in SIZABLE.items() if model.kind == AiModel.Kind.IMAGE}
SPEECH = {slug: model for slug, model in SIZABLE.items() if model.kind == AiModel.Kind.SPEECH}


def run(slug: str, bits: int = 16, context: int = 4096, requests: int = 1) -> RunModel:
    model = LANGUAGE[slug].shape()
    return RunModel(model, bits, min(context, model.max_context), requests)


def fine_tune(
    slug: str, bits: int = 16, length: int = 2048, batch: int = 1, rank: int = 16, words: str = ""
) -> FineTune:
    model = LANGUAGE[slug].trainable_shape()
    return FineTune(model, bits, min(length, model.max_context), batch, rank, tuple(words) or ("q", "k", "v", "o"))


def images(slug: str) -> GenerateImages:
    return GenerateImages(IMAGE[slug].image_pipeline())


def transcribe(slug: str, bits: int = 16, streams: int = 1) -> Transcribe:
    return Transcribe(SPEECH[slug].speech_model(), bits, streams)


def every_workload() -> Iterator[tuple[str, AiModel | None, Workload]]:
    """A workload for every seeded model and task, at every precision that it can be chosen for."""
    for slug, model in LANGUAGE.items():
        for bits in (16, 8, 4):
            yield f"run {slug} {bits}", model, run(slug, bits)
            yield f"fine-tune {slug} {bits}", model, fine_tune(slug, bits)
    for slug, model in IMAGE.items():
        yield f"image {slug}", model, images(slug)
    for slug, model in SPEECH.items():
        for bits in (16, 8, 4):
            yield f"speech {slug} {bits}", model, transcribe(slug, bits)
    yield "notebook GiB", None, Notebook(24 * 2**30, "24 GiB")
    yield "notebook GB", None, Notebook(22_500_000_000, "22.5 GB")
