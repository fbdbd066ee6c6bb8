"""Whether a checkpoint can be the one that a configuration describes: its layers, and its bytes for the parameters.

What is stored counts as the weights, so a total that the configuration contradicts would make a model look smaller than
it is. Where the two disagree, neither is believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sizing.checkpoints.errors import UnreadableModel, shown
from sizing.checkpoints.json_reading import INDEX

if TYPE_CHECKING:
    from sizing.checkpoints.imported import ImportedModel, StoredWeights

TOLERANCE_PERCENT = 2
BITS = {
    "float64": 64, "double": 64, "float32": 32, "float": 32, "fp32": 32, "bfloat16": 16, "bf16": 16, "float16": 16,
    "half": 16, "fp16": 16, "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8,
}  # fmt: skip
# No published method goes below 2 bits; none stores more than the 32 bits of an unquantized weight.
LEAST_QUANTIZED, MOST_QUANTIZED = 2, 32
# Weights whose type is not stated: half precision at least, the 32 bits that a framework saves by itself at most.
LEAST_UNSTATED, MOST_UNSTATED = 16, 32
_SAME_MODEL = "Give the files of the same model, and every shard of it"


def check_layers(model: ImportedModel, stored: StoredWeights) -> None:
    """Raises: UnreadableModel when layers of the configuration have no tensors, or tensors no layer."""
    if stored.document == INDEX and stored.layers is None:
        raise UnreadableModel(
            stored.document, "it names no tensor of layer 0: this is another model's or a partial index", _SAME_MODEL
        )
    if stored.layers is not None and not model.layers <= stored.layers <= model.layers + model.draft_layers:
        raise UnreadableModel(
            stored.document,
            f"its tensors have {stored.layers:,} layers, the configuration has {model.layers:,}: they are another "
            "model's or not all of them",
            _SAME_MODEL,
        )
    if stored.missing_layer is not None and stored.missing_layer < model.layers:
        raise UnreadableModel(
            stored.document,
            f"it names no tensor of layer {stored.missing_layer:,}, so it is not all of it",
            _SAME_MODEL,
        )


def check_bytes(model: ImportedModel, stored: StoredWeights) -> None:
    """Raises: UnreadableModel when the stored bytes are not those of the parameters, naming both figures."""
    least_bits, most_bits, words = _bits(model)
    least = model.parameters * least_bits // 8
    most = (model.parameters + _beyond(model)) * most_bits // 8
    if least * (100 - TOLERANCE_PERCENT) <= stored.total_bytes * 100 <= most * (100 + TOLERANCE_PERCENT):
        return
    needed = f"{least:,}" if least_bits == most_bits else f"{least:,} to {most:,}"
    raise UnreadableModel(
        stored.size_field,
        f"{stored.total_bytes:,} bytes are stored, but {model.parameters:,} parameters {words} take {needed} bytes",
        _fix(model),
    )


def _bits(model: ImportedModel) -> tuple[int, int, str]:
    """The least and the most bits of a stored parameter, and where that is said."""
    quantization = model.quantization
    if quantization is not None and quantization.bits is None:
        return LEAST_QUANTIZED, MOST_QUANTIZED, f"quantized to {LEAST_QUANTIZED} to {MOST_QUANTIZED} bits"
    if quantization is not None:
        bits = quantization.bits or LEAST_QUANTIZED
        return bits, MOST_QUANTIZED, f"quantized to {bits} bits or more"
    name = (model.dtype or "").removeprefix("torch.").lower()
    if name in BITS:
        return BITS[name], BITS[name], f"in {name} ({BITS[name]} bits)"
    stated = f"in “{shown(model.dtype)}”, which is not known," if model.dtype else "of an unstated type"
    return LEAST_UNSTATED, MOST_UNSTATED, f"{stated} at {LEAST_UNSTATED} to {MOST_UNSTATED} bits"


def _beyond(model: ImportedModel) -> int:
    """The most parameters that a checkpoint of this model has beyond those counted.

    A shared matrix of the vocabulary is sometimes saved twice. A layer that drafts tokens is a large layer of its own,
    twice the mean at most where the first ones are small, with its own matrices of the vocabulary.
    """
    table = model.vocab_size * model.hidden_size
    draft = 2 * model.parameters // model.layers + 2 * table
    return table * model.tied_embeddings + draft * model.draft_layers


def _fix(model: ImportedModel) -> str:
    if model.quantization is not None:
        return "Give the index or headers of the same model, and every shard of it"
    return (
        "Give the files of the same model; if its weights are quantized, the config.json with its quantization_config, "
        "and if they are of another type, correct dtype"
    )
