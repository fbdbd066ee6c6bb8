"""One observation beside our figure for the same quantity; what cannot be compared says why, and is never dropped.

What is compared with what:
- weights: our weights line. kv_cache: our KV line. kv_tokens: the tokens that the pool holds by our KV line.
- peak by the allocator of torch (`torch`, `torch-reserved`): our total without the runtime, for the allocator does not
  see the CUDA context. Peak by nvidia-smi, by a server's own breakdown, as a card's capacity: our total, which has it.
- peak of a server without cache (a context of 0): weights, their margin and the runtime.
- fits, oom: whether our need per GPU is at most the GPU's memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from catalog.units import GIB
from sizing.engine.errors import SizingError
from sizing.engine.estimate import MemoryEstimate, estimate
from sizing.engine.kv_cache import ELEMENT_BYTES, KVCache
from sizing.engine.overhead import Margin, Runtime
from sizing.engine.parallelism import is_legal_split
from sizing.engine.shapes import LanguageModel
from sizing.engine.weights import Weights
from sizing.engine.workloads import PRECISIONS_BITS, FineTune, GenerateImages, RunModel, Transcribe
from sizing.models import AiModel
from sizing.observed.names import GpuMemory, memory_of, model_named
from sizing.observed.reading import Observation

ALLOCATOR = ("torch", "torch-reserved")
_MOST_TOKENS = 10**12

NO_SUCH_MODEL = "no_such_model"
NOT_OFFERED = "not_offered"
NOT_STATED = "not_stated"


@dataclass(frozen=True)
class Reading:
    """A published figure and ours; `against` says which of ours it is. Units: bytes, or tokens for `kv_tokens`."""

    observation: Observation
    ours: int
    observed: Decimal
    against: str
    without_margin: int | None = None
    same_elements: int | None = None

    @property
    def error(self) -> Fraction:
        """By how much ours is above what was observed, as a share of it; below is negative."""
        return self._above(self.ours)

    @property
    def error_without_margin(self) -> Fraction | None:
        return None if self.without_margin is None else self._above(self.without_margin)

    @property
    def error_of_same_elements(self) -> Fraction | None:
        """For a cache of elements that are not 16-bit: the error of our layout with elements of that size."""
        return None if self.same_elements is None else self._above(self.same_elements)

    def _above(self, figure: int) -> Fraction:
        observed = Fraction(self.observed)
        return (Fraction(figure) - observed) / observed


@dataclass(frozen=True)
class Verdict:
    """Whether it fitted, and whether we say so. Units: bytes on one GPU."""

    observation: Observation
    need: int
    memory: GpuMemory

    @property
    def fitted(self) -> bool:
        return self.observation.quantity == "fits"

    @property
    def fits_by_us(self) -> bool:
        return self.need <= self.memory.bytes

    @property
    def right(self) -> bool:
        return self.fitted == self.fits_by_us


@dataclass(frozen=True)
class NotCompared:
    """`code`: the model is none of ours, we do not answer that question, or the entry does not say enough."""

    observation: Observation
    code: str
    reason: str


Outcome = Reading | Verdict | NotCompared


class _Unanswered(Exception):
    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def compare(observation: Observation) -> Outcome:
    ai_model = model_named(observation.model, observation.quantity)
    if ai_model is None:
        return NotCompared(observation, NO_SUCH_MODEL, f"{observation.model} is none of our models")
    try:
        return _compared(observation, ai_model)
    except _Unanswered as unanswered:
        return NotCompared(observation, unanswered.code, str(unanswered))
    except SizingError as refusal:
        return NotCompared(observation, NOT_OFFERED, f"refused at {refusal.field}: {refusal}")


def _compared(observation: Observation, ai_model: AiModel) -> Outcome:
    if observation.quantity == "kv_tokens":
        return _tokens(observation, ai_model.shape())
    if observation.quantity == "kv_cache":
        return _cache(observation, ai_model.shape())
    _offered(observation)
    if observation.quantity == "weights" and observation.task == "run":
        return _weights(observation, ai_model.shape())
    if observation.quantity == "peak" and observation.task == "run" and observation.context == 0:
        return _peak_without_cache(observation, ai_model.shape())
    need = _estimate(observation, ai_model)
    if observation.is_verdict:
        return _verdict(observation, need)
    if observation.quantity == "weights":
        lines = [term for term in need.terms if not isinstance(term, (Margin, Runtime))]
        return _reading(observation, sum(term.bytes for term in lines), "weights of all networks")
    return _peak(observation, need)


# --- Readings -------------------------------------------------------------------------------------------------------


def _reading(
    observation: Observation, per_gpu: int, against: str, without_margin: int | None = None, gpus: int = 1
) -> Reading:
    assert observation.value is not None, "a reading has a value"
    times = gpus if observation.whole_deployment else 1
    where = f" on {gpus} GPUs together" if times > 1 else " per GPU" if gpus > 1 else ""
    return Reading(
        observation,
        per_gpu * times,
        observation.value * GIB,
        against + where,
        None if without_margin is None else without_margin * times,
    )


def _weights(observation: Observation, model: LanguageModel) -> Reading:
    _legal(observation, model)
    weights = Weights(model.parameters, observation.precision_bits, observation.gpus)
    return _reading(observation, weights.bytes, "weights", gpus=observation.gpus)


def _cache(observation: Observation, model: LanguageModel) -> Reading:
    _legal(observation, model)
    cache = KVCache(
        model.cache_groups,
        _stated(observation, "context"),
        _stated(observation, "concurrency"),
        model.state_bytes_per_sequence,
        observation.gpus,
    )
    found = _reading(observation, cache.bytes, "KV cache", gpus=observation.gpus)
    element = observation.detail.get("kv_bytes", ELEMENT_BYTES)
    same = None if element == ELEMENT_BYTES else found.ours * element // ELEMENT_BYTES
    return Reading(observation, found.ours, found.observed, found.against, same_elements=same)


def _tokens(observation: Observation, model: LanguageModel) -> Reading:
    _legal(observation, model)
    pool = int(observation.detail["pool_gib"] * GIB)
    element = observation.detail.get("kv_bytes", ELEMENT_BYTES)

    def tokens(pool_bytes: int) -> int:
        low, high = 0, _MOST_TOKENS
        while low < high:
            middle = (low + high + 1) // 2
            cache = KVCache(model.cache_groups, middle, 1, model.state_bytes_per_sequence, observation.gpus)
            low, high = (middle, high) if cache.bytes <= pool_bytes else (low, middle - 1)
        return low

    same = None if element == ELEMENT_BYTES else tokens(pool * ELEMENT_BYTES // element)
    assert observation.value is not None, "a reading has a value"
    against = f"tokens in a pool of {observation.detail['pool_gib']} GiB"
    return Reading(observation, tokens(pool), observation.value, against, same_elements=same)


def _peak_without_cache(observation: Observation, model: LanguageModel) -> Reading:
    _legal(observation, model)
    weights = Weights(model.parameters, observation.precision_bits, observation.gpus).bytes
    runtime = 0 if observation.meter in ALLOCATOR else Runtime().bytes
    return _reading(
        observation,
        weights + Margin(weights).bytes + runtime,
        f"weights + margin{' + runtime' if runtime else ''}",
        weights + runtime,
        observation.gpus,
    )


def _peak(observation: Observation, need: MemoryEstimate) -> Reading:
    without_runtime = observation.meter in ALLOCATOR
    left_out = sum(term.bytes for term in need.terms if isinstance(term, Runtime) and without_runtime)
    margin = sum(term.bytes for term in need.terms if isinstance(term, Margin))
    ours = need.per_gpu_bytes - left_out
    against = "total without runtime" if without_runtime else "total"
    return _reading(observation, ours, against, ours - margin, need.gpus)


def _verdict(observation: Observation, need: MemoryEstimate) -> Verdict:
    memory = memory_of(observation.gpu_name) if observation.gpu_name else None
    if memory is None:
        raise _Unanswered(NOT_STATED, "the GPU's memory is not stated")
    return Verdict(observation, need.per_gpu_bytes, memory)


# --- The question as we would be asked it ---------------------------------------------------------------------------


def _offered(observation: Observation) -> None:
    allowed = (16,) if observation.task == "image" else PRECISIONS_BITS
    if observation.precision_bits not in allowed:
        words = " or ".join(map(str, allowed))
        task = {"image": "images are", "speech": "speech is"}.get(observation.task, "language models are")
        raise _Unanswered(NOT_OFFERED, f"{task} sized at {words} bits, not at {observation.precision_bits}")


def _legal(observation: Observation, model: LanguageModel) -> None:
    if not is_legal_split(model, observation.gpus):
        raise _Unanswered(NOT_OFFERED, f"{model.name} cannot be split over {observation.gpus} GPUs")


def _stated(observation: Observation, name: str) -> int:
    value: int | None = getattr(observation, name)
    if value is None:
        raise _Unanswered(NOT_STATED, f"{name.replace('_', ' ')} is not stated")
    return value


def _estimate(observation: Observation, ai_model: AiModel) -> MemoryEstimate:
    return _ESTIMATES[observation.task](observation, ai_model)


def _run(observation: Observation, ai_model: AiModel) -> MemoryEstimate:
    model = ai_model.shape()
    _legal(observation, model)
    workload = RunModel(
        model,
        observation.precision_bits,
        _stated(observation, "context"),
        _stated(observation, "concurrency"),
    )
    return estimate(workload, observation.gpus)


def _fine_tune(observation: Observation, ai_model: AiModel) -> MemoryEstimate:
    # A full copy on each of several GPUs (data parallelism) is what one GPU needs; a base in parts is not.
    if observation.gpus > 1 and observation.detail.get("shard") != 1:
        raise _Unanswered(NOT_OFFERED, f"fine-tuning is sized for one GPU, not sharded over {observation.gpus}")
    model = ai_model.trainable_shape()
    assert model.training is not None, "a trainable shape has what training needs"
    words = model.training.target_words
    if observation.detail.get("targets") == "qv":
        words = tuple(word for word in words if word in ("q", "v"))
    return estimate(
        FineTune(
            model,
            observation.precision_bits,
            _stated(observation, "sequence_length"),
            _stated(observation, "batch_size"),
            observation.detail.get("rank", 16),
            words,
        )
    )


def _image(observation: Observation, ai_model: AiModel) -> MemoryEstimate:
    return estimate(GenerateImages(ai_model.image_pipeline()))


def _speech(observation: Observation, ai_model: AiModel) -> MemoryEstimate:
    streams = _stated(observation, "concurrency")
    return estimate(Transcribe(ai_model.speech_model(), observation.precision_bits, streams))


_ESTIMATES: dict[str, Callable[[Observation, AiModel], MemoryEstimate]] = {
    "run": _run,
    "fine_tune": _fine_tune,
    "image": _image,
    "speech": _speech,
}
