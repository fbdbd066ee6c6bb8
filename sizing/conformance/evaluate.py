"""What the engine answers to the inputs of a vector, in the form that a vector expects it.

Each kind takes exactly its documented inputs: a name that it does not know is refused, never passed over.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from catalog.units import GIB, gb_to_bytes, gib_to_bytes, to_gib
from sizing.engine.adapters import Adapters, BaseWeights, adapted
from sizing.engine.envelope import Envelope, ReserveEntry
from sizing.engine.errors import SizingError
from sizing.engine.estimate import MemoryEstimate, estimate
from sizing.engine.fit import Device, Fit, fit, largest_context
from sizing.engine.parallelism import MAX_SPLIT, legal_splits
from sizing.engine.shapes import (
    CacheGroup,
    ImagePipeline,
    LanguageModel,
    Network,
    Projection,
    SpeechModel,
    TrainingShape,
)
from sizing.engine.stages import Chain, Stage
from sizing.engine.workloads import FineTune, GenerateImages, Notebook, RunModel, Transcribe, Workload

Document = dict[str, Any]
TO_BYTES = {"GiB": gib_to_bytes, "GB": gb_to_bytes}
OPTIONAL = {"gib_3", "printed_sum_gib", "largest_context", "base_weights_gib_3"}
"""Figures that a vector may leave out."""


class UnknownInput(Exception):
    """The inputs are not those that the kind takes; the message names the field."""


def evaluate(kind: str, inputs: Document) -> Document:
    """The engine's answer; an answer that it refuses to give is `{"refused": field}`.

    Raises: UnknownInput.
    """
    answer = KINDS.get(kind)
    if answer is None:
        raise UnknownInput(f"kind: {kind} is not known; the kinds are {', '.join(KINDS)}")
    try:
        return answer(inputs)
    except SizingError as refusal:
        return {"refused": refusal.field}


# --- The kinds ------------------------------------------------------------------------------------------------------


def _workload_kind(read: Callable[[Document], Workload]) -> Callable[[Document], Document]:
    def answer(inputs: Document) -> Document:
        gpus = inputs.get("gpus", 1)
        return _lines(estimate(read({name: value for name, value in inputs.items() if name != "gpus"}), gpus))

    return answer


def _lines(need: MemoryEstimate) -> Document:
    found: Document = {
        "lines": [{"code": term.code, **_size(need.line_bytes(term))} for term in need.terms],
        "per_gpu": _size(need.per_gpu_bytes),
        "total": _size(need.total_bytes),
        "printed_sum_gib": str(sum((to_gib(need.line_bytes(term)) for term in need.terms), Decimal())),
    }
    for term in need.terms:
        if isinstance(term, Adapters):
            found["trainable_parameters"] = term.trainable_parameters
        if isinstance(term, BaseWeights):
            found["base_weights_gib_3"] = _gib_3(term.bytes)
    return found


def _splits(inputs: Document) -> Document:
    model, up_to = _take(inputs, "model"), inputs.get("up_to", MAX_SPLIT)
    _only(inputs, {"model", "up_to"})
    return {"legal_gpus": list(legal_splits(language_model(model), up_to))}


def _fit(inputs: Document) -> Document:
    _only(inputs, {"workload", "device"})
    asked = dict(_take(inputs, "workload"))
    kind = asked.pop("kind", "")
    if kind not in WORKLOADS:
        raise UnknownInput(f"workload.kind: must be one of {', '.join(WORKLOADS)}")
    workload, device = WORKLOADS[kind](asked), _made(Device, _take(inputs, "device"))
    found = fit(workload, device)
    answer: Document = {
        "fits": isinstance(found, Fit),
        "gpus": found.estimate.gpus,
        "need_per_gpu": _size(found.estimate.per_gpu_bytes),
    }
    if isinstance(found, Fit):
        answer["headroom_bytes"] = found.headroom_bytes
    else:
        answer |= {"code": found.code, "lacking_bytes": found.lacking_bytes}
    if isinstance(workload, RunModel):
        answer["largest_context"] = largest_context(workload, device)
    return answer


def _adapters(inputs: Document) -> Document:
    _only(inputs, {"projections", "rank", "target_modules"})
    chosen = adapted(_projections(_take(inputs, "projections")), _take(inputs, "target_modules"))
    found = Adapters(chosen, _take(inputs, "rank"))
    return {
        "modules": [each.module for each in chosen],
        "trainable_parameters": found.trainable_parameters,
        **_size(found.bytes),
    }


def _base_weights(inputs: Document) -> Document:
    found = _made(BaseWeights, inputs)
    return {**_size(found.bytes), "gib_3": _gib_3(found.bytes)}


def _envelope(inputs: Document) -> Document:
    entries = tuple(_made(ReserveEntry, entry) for entry in inputs.get("entries", ()))
    found = _made(Envelope, {**inputs, "entries": entries})
    return {
        "weights_only": _size(found.weights_bytes),
        "reserve": _size(found.reserve_bytes),
        "envelope": _size(found.total_bytes),
        "complete": found.is_complete,
    }


def _stages(inputs: Document) -> Document:
    _only(inputs, {"stages"})
    chain = Chain(tuple(_made(Stage, stage) for stage in _take(inputs, "stages")))
    return {
        "resident": _size(chain.resident_bytes),
        "stepwise": _size(chain.stepwise_bytes),
        "largest_step": chain.largest_step.stage.name,
    }


def _units(inputs: Document) -> Document:
    if "figure" in inputs:
        _only(inputs, {"figure", "unit"})
        return _size(_bytes(inputs["figure"], _take(inputs, "unit")))
    _only(inputs, {"bytes"})
    return _size(_take(inputs, "bytes"))


# --- Inputs to the engine's values ----------------------------------------------------------------------------------


def language_model(row: Document) -> LanguageModel:
    """The shape of a language model as a vector carries it; what training needs is there or not."""
    row = dict(row)
    training = row.pop("training", None)
    groups = tuple(_made(CacheGroup, group) for group in _take(row, "cache_groups"))
    if training is not None:
        projections = _projections(_take(training, "projections"))
        training = _made(TrainingShape, {**training, "projections": projections})
    return _made(LanguageModel, {"name": "as given", **row, "cache_groups": groups, "training": training})


def _projections(rows: list[Document]) -> tuple[Projection, ...]:
    return tuple(_made(Projection, {**row, "serves": tuple(_take(row, "serves"))}) for row in rows)


def _run(inputs: Document) -> RunModel:
    return _made(RunModel, {**inputs, "model": language_model(_take(inputs, "model"))})


def _fine_tune(inputs: Document) -> FineTune:
    given = {**inputs, "model": language_model(_take(inputs, "model"))}
    if "target_modules" in given:
        given["target_modules"] = tuple(given["target_modules"])
    return _made(FineTune, given)


def _image(inputs: Document) -> GenerateImages:
    networks = tuple(_made(Network, network) for network in _take(inputs, "networks"))
    given = {name: value for name, value in inputs.items() if name != "networks"}
    return _made(GenerateImages, {**given, "model": ImagePipeline("as given", networks)})


def _speech(inputs: Document) -> Transcribe:
    model = _made(SpeechModel, {"name": "as given", **_take(inputs, "model")})
    return _made(Transcribe, {**inputs, "model": model})


def _notebook(inputs: Document) -> Notebook:
    _only(inputs, {"gpu_memory", "unit"})
    figure, unit = _take(inputs, "gpu_memory"), _take(inputs, "unit")
    return Notebook(_bytes(figure, unit), f"{figure} {unit}")


WORKLOADS: dict[str, Callable[[Document], Workload]] = {
    "run": _run,
    "fine_tune": _fine_tune,
    "image": _image,
    "speech": _speech,
    "notebook": _notebook,
}
KINDS: dict[str, Callable[[Document], Document]] = {
    **{kind: _workload_kind(read) for kind, read in WORKLOADS.items()},
    "splits": _splits,
    "fit": _fit,
    "adapters": _adapters,
    "base_weights": _base_weights,
    "envelope": _envelope,
    "stages": _stages,
    "units": _units,
}


def _made(kind: Callable[..., Any], given: Document) -> Any:
    """An engine's value from inputs of its own names, all that are needed and no other."""
    if not isinstance(given, dict):
        raise UnknownInput(f"{kind.__name__}: must be an object")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # every kind is a dataclass
    _only(given, set(known))
    for name, field in known.items():
        if name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise UnknownInput(f"{name}: is missing")
    try:
        return kind(**given)
    except TypeError as error:
        raise UnknownInput(f"{kind.__name__}: {error}") from error


def _take(inputs: Document, name: str) -> Any:
    if name not in inputs:
        raise UnknownInput(f"{name}: is missing")
    return inputs[name]


def _only(inputs: Document, known: set[str]) -> None:
    if unknown := sorted(set(inputs) - known):
        raise UnknownInput(f"{unknown[0]}: is not known here; known are {', '.join(sorted(known))}")


# --- Figures as they are printed ------------------------------------------------------------------------------------


def _bytes(figure: str, unit: str) -> int:
    if unit not in TO_BYTES:
        raise UnknownInput("unit: must be GiB or GB")
    try:
        return TO_BYTES[unit](Decimal(figure))
    except (InvalidOperation, TypeError) as error:
        raise UnknownInput("figure: must be a decimal figure in quotes") from error


def _size(size_bytes: int) -> Document:
    return {"bytes": size_bytes, "gib": str(to_gib(size_bytes))}


def _gib_3(size_bytes: int) -> str:
    return str((Decimal(size_bytes) / GIB).quantize(Decimal("0.001"), rounding=ROUND_HALF_UP))
