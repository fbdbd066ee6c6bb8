"""What was read from the files of a brought model, as JSON and pages have it: every figure with where it came from."""

from collections.abc import Iterable, Sequence
from typing import Any

from sizing.checkpoints.errors import shown
from sizing.checkpoints.imported import ImportedModel
from sizing.checkpoints.json_reading import CONFIG, INDEX, LIMITS, take
from sizing.checkpoints.reading import MOST_FILES, first_bytes, read_model
from sizing.own_shape import OwnShape, from_imported

MOST_TEXT = 400


class Reading:
    """A model as its files describe it: `model` are the figures, `document` says where each came from."""

    def __init__(self, imported: ImportedModel, name: str = "") -> None:
        self.imported = imported
        self.model: OwnShape = from_imported(imported, name)
        self.document: dict[str, Any] = reading_document(imported)


class GivenFigures:
    """A model by figures that somebody states. It stands where a reading does, and says that no file was read."""

    def __init__(self, model: OwnShape) -> None:
        self.model = model
        self.document: dict[str, Any] = {
            "architecture": model.architecture,
            "provenance": [
                {
                    "figure": name,
                    "value": value if isinstance(value, int) else shown(value, longest=MOST_TEXT),
                    "fields": [f"figures.{name}"],
                    "rule": "Stated as it is: no file was read.",
                }
                for name, value in model.figures.items()
                if name not in ("name", "architecture")
            ],
            "parts": [],
            "left_out": [],
            "cache_note": model.cache_note,
            "quantization": None,
            "stored": None,
        }


Brought = Reading | GivenFigures


def read_files(config: bytes | str | None, weights: Sequence[bytes | str] = (), name: str = "") -> Reading:
    """The model of what was given; see `read_model`.

    Raises: UnreadableModel.
    """
    return Reading(read_model(config, weights), name)


def config_bytes(chunks: Iterable[bytes]) -> bytes:
    """An uploaded config.json, read no further than its limit.

    Raises: UnreadableModel.
    """
    return take(chunks, CONFIG)


def weights_bytes(chunks: Iterable[bytes], most: int | None = None) -> bytes:
    """The start of an uploaded index, safetensors or GGUF file, as far as a header or an index reaches."""
    return first_bytes(chunks) if most is None else first_bytes(chunks, most)


def reading_document(imported: ImportedModel) -> dict[str, Any]:
    """The origin of every figure: the fields that were read and the rule that made the figure from them."""
    quantization, stored = imported.quantization, imported.stored
    return {
        "architecture": _text(imported.architecture),
        "provenance": [
            {
                "figure": one.figure,
                "value": one.value if isinstance(one.value, int) else _text(one.value),
                "fields": [_text(field) for field in one.fields],
                "rule": _text(one.rule),
            }
            for one in imported.provenance
        ],
        "parts": [
            {"name": _text(part.name), "parameters": part.parameters, "rule": _text(part.rule)}
            for part in imported.parts
        ],
        "left_out": [_text(one) for one in imported.left_out],
        "cache_note": _text(imported.cache_note),
        "quantization": None
        if quantization is None
        else {
            "method": _text(quantization.method),
            "bits": quantization.bits,
            "fields": [_text(field) for field in quantization.fields],
        },
        "stored": None
        if stored is None
        else {
            "document": stored.document,
            "total_bytes": stored.total_bytes,
            "tensors": stored.tensors,
            "bytes_by_dtype": [[_text(dtype), size] for dtype, size in stored.bytes_by_dtype],
        },
    }


def _text(words: str) -> str:
    """A text that pages can show and databases can store, however odd the file."""
    return shown(words, longest=MOST_TEXT)


__all__ = [
    "CONFIG",
    "INDEX",
    "LIMITS",
    "MOST_FILES",
    "Brought",
    "GivenFigures",
    "Reading",
    "config_bytes",
    "read_files",
    "reading_document",
    "weights_bytes",
]
