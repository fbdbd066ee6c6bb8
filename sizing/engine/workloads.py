"""What a person wants to do, as frozen values that are valid once they exist."""

from dataclasses import dataclass, replace

from sizing.engine.errors import InvalidWorkload, UnsizableModel
from sizing.engine.shapes import ImagePipeline, LanguageModel, SpeechModel, TrainingShape

PRECISIONS_BITS = (16, 8, 4)
MAX_REQUESTS = 100_000
MAX_RANK = 4096
ATTENTION_TARGETS = ("q", "k", "v", "o")
TARGET_WORDS = (*ATTENTION_TARGETS, "gate", "up", "down")


@dataclass(frozen=True)
class RunModel:
    """Language-model inference: `requests` at once, each of up to `context` tokens.

    Units: `precision_bits` is bits per weight (16, 8 or 4), None for a model that is counted by the bytes that its
    checkpoint stores; the cache stays 16-bit. `reserve_bytes` is the person's own reserve per GPU, with its reason.
    Raises: InvalidWorkload naming the field.
    """

    model: LanguageModel
    precision_bits: int | None = 16
    context: int = 4096
    requests: int = 1
    reserve_bytes: int = 0
    reserve_reason: str = ""

    def __post_init__(self) -> None:
        if self.model.stored_bytes is None:
            _check_precision(self.precision_bits)
        elif self.precision_bits is not None:
            raise InvalidWorkload("precision does not apply to stored weights", field="precision_bits")
        _at_least_one("context", self.context)
        if self.context > self.model.max_context:
            raise InvalidWorkload(f"context is above the maximum of {self.model.max_context}", field="context")
        _at_least_one("requests", self.requests)
        _at_most("requests", self.requests, MAX_REQUESTS)
        _check_reserve(self.reserve_bytes, self.reserve_reason)


@dataclass(frozen=True)
class FineTune:
    """LoRA fine-tuning on one GPU: the base frozen at `precision_bits` (4 is QLoRA), adapters of `rank` trained.

    Units: `sequence_length` in tokens, `batch_size` in sequences. `target_modules` are target words (q, k, v, o, and
    gate, up, down where the model has them); a word that no module answers to is refused.
    Raises: InvalidWorkload naming the field; UnsizableModel when a figure that training needs is not published.
    """

    model: LanguageModel
    precision_bits: int = 16
    sequence_length: int = 2048
    batch_size: int = 1
    rank: int = 16
    target_modules: tuple[str, ...] = ATTENTION_TARGETS
    reserve_bytes: int = 0
    reserve_reason: str = ""

    def __post_init__(self) -> None:
        _check_precision(self.precision_bits)
        _at_least_one("sequence_length", self.sequence_length)
        if self.sequence_length > self.model.max_context:
            raise InvalidWorkload(
                f"sequence length is above the maximum of {self.model.max_context}", field="sequence_length"
            )
        _at_least_one("batch_size", self.batch_size)
        _at_most("batch_size", self.batch_size, MAX_REQUESTS)
        _at_least_one("rank", self.rank)
        _at_most("rank", self.rank, MAX_RANK)
        if not self.target_modules or len(set(self.target_modules)) != len(self.target_modules):
            raise InvalidWorkload("give each target module once, and at least one", field="target_modules")
        for word in self.target_modules:
            if word not in self.training.target_words:
                raise InvalidWorkload(f"{self.model.name} has no module for {word}", field="target_modules")
        _check_reserve(self.reserve_bytes, self.reserve_reason)

    @property
    def training(self) -> TrainingShape:
        """What training needs to know of the model.

        Raises: UnsizableModel, for a quantized checkpoint too: what a trainer makes of it is not known.
        """
        if self.model.stored_bytes is not None and self.model.quantized:
            raise UnsizableModel("a quantized checkpoint is not fine-tuned as it is stored", field="quantization")
        if self.model.training is None:
            raise UnsizableModel("what training needs is not published", field="projections")
        return self.model.training


@dataclass(frozen=True)
class GenerateImages:
    """One image at a time at the pipeline's native resolution, every network resident at 16 bits."""

    model: ImagePipeline
    reserve_bytes: int = 0
    reserve_reason: str = ""

    def __post_init__(self) -> None:
        _check_reserve(self.reserve_bytes, self.reserve_reason)


@dataclass(frozen=True)
class Transcribe:
    """Speech recognition of `streams` audio streams at once; the length of a clip does not matter."""

    model: SpeechModel
    precision_bits: int = 16
    streams: int = 1
    reserve_bytes: int = 0
    reserve_reason: str = ""

    def __post_init__(self) -> None:
        _check_precision(self.precision_bits)
        _at_least_one("streams", self.streams)
        _at_most("streams", self.streams, MAX_REQUESTS)
        _check_reserve(self.reserve_bytes, self.reserve_reason)


@dataclass(frozen=True)
class Notebook:
    """A notebook: the GPU memory that the person states, compared as it is.

    Units: `need_bytes`; `stated` is the figure and unit as the person wrote them, such as "24 GB".
    """

    need_bytes: int
    stated: str

    def __post_init__(self) -> None:
        _at_least_one("need_bytes", self.need_bytes)


Workload = RunModel | FineTune | GenerateImages | Transcribe | Notebook


def task_of(workload: Workload) -> str:
    """The task's name as the pages, the API and the command have it; speech recognition is running a model."""
    return _TASKS[type(workload)]


_TASKS: dict[type, str] = {
    RunModel: "run",
    Transcribe: "run",
    FineTune: "fine_tune",
    GenerateImages: "image",
    Notebook: "notebook",
}


def precision_of(workload: Workload) -> int | None:
    """The bits per weight that the person chose; None where there is nothing to choose, as for stored weights."""
    return workload.precision_bits if isinstance(workload, RunModel | FineTune | Transcribe) else None


def lower_precisions(workload: Workload) -> tuple[Workload, ...]:
    """The same work at each lower precision, the highest first; none where precision is no choice."""
    chosen = precision_of(workload)
    if chosen is None or not isinstance(workload, RunModel | FineTune | Transcribe):
        return ()
    return tuple(replace(workload, precision_bits=bits) for bits in PRECISIONS_BITS if bits < chosen)


def shrinkable(workload: Workload) -> tuple[str, ...]:
    """The counts of a workload that can be made smaller so that it needs less, in the order of its fields."""
    return _SHRINKABLE[type(workload)]


_SHRINKABLE: dict[type, tuple[str, ...]] = {
    RunModel: ("context", "requests"),
    FineTune: ("sequence_length", "batch_size", "rank"),
    GenerateImages: (),
    Transcribe: ("streams",),
    Notebook: (),
}


def _check_precision(precision_bits: int | None) -> None:
    if precision_bits not in PRECISIONS_BITS:
        raise InvalidWorkload("precision must be 16, 8 or 4 bits", field="precision_bits")


def _check_reserve(reserve_bytes: int, reason: str) -> None:
    if reserve_bytes < 0:
        raise InvalidWorkload("the reserve must be 0 or more", field="reserve_gib")
    if reserve_bytes and not reason.strip():
        raise InvalidWorkload("a reserve needs its reason", field="reserve_reason")


def _at_most(field: str, value: int, most: int) -> None:
    if value > most:
        raise InvalidWorkload(f"{field} is above {most}", field=field)


def _at_least_one(field: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidWorkload(f"{field} must be a whole number of 1 or more", field=field)
