"""One machine in words: why it fits, what limits it, how sure that is, and how far a budget goes."""

from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from typing import NamedTuple

from catalog import wording
from catalog.models import Machine, MemorySource, Tier
from catalog.pricing import HOURS_PER_DAY
from catalog.units import GB, GIB, counted_text, to_gib
from sizing.answers import Candidate, Miss, Preferences
from sizing.engine.confidence import NARROW_MARGIN_PERCENT
from sizing.engine.weights import StoredWeights
from sizing.engine.workloads import FineTune, GenerateImages, Notebook, RunModel, Transcribe, Workload, precision_of
from sizing.explain.memory import run_model
from sizing.explain.words import counted, days_and_hours, gib, hourly, percent, usd

_TWO_PLACES = Decimal("0.01")

CONFIDENCE_LEVELS = {"high": "High", "medium": "Medium", "low": "Low"}
REASONS = {
    "quantized": "The weights are quantized: metadata and parts kept in another format are not counted.",
    "multi_gpu": "The model is split over several GPUs, which needs a supported strategy and adds communication.",
    "provider_report": "The memory figure is reported by the provider, not verified.",
    "datasheet": "The memory figure is nominal, from a datasheet; it was not measured on the machine.",
    "narrow_margin": f"Less than {NARROW_MARGIN_PERCENT} % of the GPU's memory stays free.",
    "fine_tuning": "Fine-tuning depends more on the configuration than inference does.",
    "image": "Image generation depends on the pipeline: decoding can have a peak of its own.",
    "speech": "Speech recognition depends on the implementation.",
    "stated_need": "The need is the figure you stated; nothing was computed.",
    "non_cuda": "The GPU does not run CUDA, so the runtime line does not describe it; check that the engine "
    "supports it.",
    "kv_copied": "Part of the cache is copied to several GPUs instead of split.",
}
RAISES = {
    "quantized": "Run the model at 16 bits.",
    "multi_gpu": "Choose a machine of which one GPU suffices.",
    "provider_report": "Choose a Secure machine, or read the memory on the machine before you rely on it.",
    "datasheet": "Choose a machine whose memory the data center measured.",
    "narrow_margin": "Choose a GPU with more memory, or set the context and the requests to what you really use.",
    "fine_tuning": "Watch the peak of the first training steps, validation and export.",
    "image": "Generate one image on the machine and watch the peak.",
    "speech": "Transcribe one window on the machine and watch the peak.",
    "stated_need": "Name the model, so that its memory is computed.",
    "non_cuda": "Choose an NVIDIA GPU.",
    "kv_copied": "Choose a machine that needs no more GPUs than the model has KV heads.",
}


# Where the words for one kind of work differ from those for running a language model.
_REASONS_OF_TASK = {
    (FineTune, "quantized"): "The base is quantized: parts that a library keeps in another format are not counted.",
    (StoredWeights, "quantized"): "The checkpoint is quantized: an engine can unpack or convert parts of it.",
    (Notebook, "non_cuda"): "The GPU does not run CUDA; check that what you run supports it.",
}
_RAISES_OF_TASK = {
    (FineTune, "quantized"): "Fine-tune on a base of 16 bits.",
    (StoredWeights, "quantized"): "Run a checkpoint of 16 bits.",
    (FineTune, "narrow_margin"): "Choose a GPU with more memory, or shorter sequences or a smaller batch.",
    (GenerateImages, "narrow_margin"): "Choose a GPU with more memory.",
    (Transcribe, "narrow_margin"): "Choose a GPU with more memory, or fewer audio streams at once.",
    (Notebook, "narrow_margin"): "Choose a GPU with more memory.",
}


class Sentence(NamedTuple):
    """A stable code and its words."""

    code: str
    text: str


@dataclass(frozen=True)
class BudgetCover:
    """How long a budget lasts at the package's price. `hours` is cut off to two decimals, never more than is "
    "paid for."""

    hours: Decimal
    whole_terms: int
    text: str


def memory_text(machine: Machine) -> str:
    """A machine's memory per GPU, in the catalog's words: "24 GB nominal (datasheet) = 22.35 GiB counted"."""
    return wording.memory(machine)


def why_it_fits(candidate: Candidate) -> str:
    """The comparison that decides, the headroom, and for several GPUs the split and what it divides."""
    memory, gpus = candidate.machine.gpu_memory_bytes or 0, candidate.gpus_used
    need, gpu = gib(candidate.need_bytes_per_gpu), candidate.machine.gpu.name
    there = counted_text(memory)
    free = f"{gib(candidate.headroom_bytes)} ({percent(candidate.headroom_bytes, memory)}) free"
    if gpus == 1:
        idle = f" Uses 1 of {candidate.machine.gpu_count} GPUs." if candidate.machine.gpu_count > 1 else ""
        return f"{need} needed ≤ {there} on one {gpu}; {free}.{idle}"
    return (
        f"{need} needed on each of {gpus} GPUs ≤ {there} on each {gpu}; {free} on each. "
        f"Uses {gpus} of {candidate.machine.gpu_count} GPUs: {divisions(candidate)}."
    )


def headroom_adds_up(candidate: Candidate) -> bool:
    """Whether the printed memory less the printed need is the printed headroom."""
    memory = candidate.machine.gpu_memory_bytes or 0
    return to_gib(memory) - to_gib(candidate.need_bytes_per_gpu) == to_gib(candidate.headroom_bytes)


def divisions(candidate: Candidate) -> str:
    """What the split divides: "64 attention heads ÷ 2 = 32, 8 KV heads ÷ 2 = 4, MLP width 28,672 ÷ 2 = 14,336"."""
    model, gpus = run_model(candidate.estimate).model, candidate.gpus_used
    parts = [f"{model.attention_heads} attention heads ÷ {gpus} = {model.attention_heads // gpus}"]
    for heads in sorted({group.kv_heads for group in model.cache_groups if group.kv_heads is not None}, reverse=True):
        if heads >= gpus:
            parts.append(f"{heads} KV heads ÷ {gpus} = {heads // gpus}")
        else:
            parts.append(f"{counted(heads, 'KV head')}, each copied to {gpus // heads} GPUs")
    if model.split_width is not None:
        parts.append(f"MLP width {model.split_width:,} ÷ {gpus} = {model.split_width // gpus:,}")
    return ", ".join(parts)


def limits(candidate: Candidate) -> list[Sentence]:
    """What a person should know before they rent this machine, in a fixed order."""
    machine, reasons = candidate.machine, candidate.confidence.reasons
    found = {
        "memory_source": _memory_limit(machine),
        "narrow_margin": f"Narrow margin: less than {NARROW_MARGIN_PERCENT} % of the memory stays free."
        if "narrow_margin" in reasons
        else "",
        "reservation_limit": _reservation(machine),
        "interruptible": "Interruptible: the provider may stop it during the term." if machine.interruptible else "",
        "provider_can_read_memory": "Runs on the provider's own hardware: the provider can read the session's memory."
        if machine.tier == Tier.COMMUNITY
        else "",
        "quantization_metadata": _quantization(candidate),
        "kv_copied": "Part of the cache is copied to several GPUs." if "kv_copied" in reasons else "",
        "location_unknown": "The location is unknown." if machine.country is None else "",
    }
    sentences = [Sentence(code, text) for code, text in found.items() if text]
    return [*sentences, *task_limits(candidate.estimate.workload)]


def task_limits(workload: Workload) -> tuple[Sentence, ...]:
    """What holds for a kind of work on every machine; nothing for running a language model."""
    return _TASK_LIMITS.get(type(workload), ())


_TASK_LIMITS: dict[type, tuple[Sentence, ...]] = {
    FineTune: (
        Sentence(
            "phases",
            "Few trained parameters do not remove activation memory. The backward pass, the first update, validation "
            "and export are phases to check.",
        ),
        Sentence(
            "restoring",
            "A training checkpoint holds model, optimizer, schedule, random state and progress in the data: verify "
            "restoring it, not only writing.",
        ),
    ),
    GenerateImages: (
        Sentence(
            "vae_decode",
            "Decoding in the VAE can have a peak of its own, apart from denoising; tiling it needs a check of the "
            "quality.",
        ),
        Sentence("one_image", "Meant for one image at native resolution: larger images and batches need more."),
    ),
    Transcribe: (
        Sentence(
            "implementation",
            "Implementations of speech recognition differ: one that keeps copies in FP32 or searches with several "
            "beams needs more.",
        ),
    ),
    Notebook: (Sentence("stated_need", "The need is the figure you stated; nothing was computed or added."),),
}


def _quantization(candidate: Candidate) -> str:
    workload, gpus = candidate.estimate.workload, candidate.gpus_used
    if "quantized" not in candidate.confidence.reasons:
        return ""
    if precision_of(workload) is None:
        return f"Whether the checkpoint's groups divide over {gpus} GPUs is not checked." if gpus > 1 else ""
    if isinstance(workload, FineTune) and workload.precision_bits == 4:
        return "The scales of NormalFloat are counted; embeddings and output matrix kept at 16 bits are not."
    text = "Quantization metadata is not counted."
    if gpus > 1:
        text += f" Whether the format's groups divide over {gpus} GPUs is not checked."
    return text


def _memory_limit(machine: Machine) -> str:
    if machine.memory_source == MemorySource.DATASHEET:
        return "The memory figure is from a datasheet, read in decimal GB; it was not measured on the machine."
    if machine.memory_source == MemorySource.PROVIDER_REPORT:
        return "The memory figure is reported by the provider, not verified."
    return ""


def _reservation(machine: Machine) -> str:
    free = f"{counted(machine.lots_to_sell, 'lot')} free now"
    return free + (f"; at most {counted(machine.max_term_days, 'day')} at a time." if machine.max_term_days else ".")


def confidence_reasons(candidate: Candidate) -> list[Sentence]:
    """Why the confidence is not high, one sentence for each reason."""
    kind = _words_of(candidate.estimate.workload)
    return [Sentence(code, _REASONS_OF_TASK.get((kind, code), REASONS[code])) for code in candidate.confidence.reasons]


def confidence_raises(candidate: Candidate) -> list[Sentence]:
    """What would take each reason away."""
    kind = _words_of(candidate.estimate.workload)
    return [Sentence(code, _RAISES_OF_TASK.get((kind, code), RAISES[code])) for code in candidate.confidence.reasons]


def _words_of(workload: Workload) -> type:
    """The kind of work whose own words tell of a reason: weights that are counted as stored have theirs."""
    return StoredWeights if isinstance(workload, RunModel) and workload.precision_bits is None else type(workload)


def budget_covers(candidate: Candidate, preferences: Preferences) -> BudgetCover | None:
    """How far the budget goes: hours at the unrounded price per hour of all lots, and whole terms; None without one."""
    if preferences.budget_usd is None:
        return None
    days, lots = preferences.term_days, preferences.lots
    hours = preferences.budget_usd * HOURS_PER_DAY * days / (candidate.package_usd * lots)
    whole_terms = int(preferences.budget_usd // candidate.order_total_usd)
    price = hourly(candidate.package_usd / (HOURS_PER_DAY * days)) + (f" × {lots} lots" if lots > 1 else "")
    terms = f"{whole_terms:,} × {days} days" if whole_terms else f"less than one term of {days} days"
    text = f"{days_and_hours(hours)} at {price}; {terms}"
    return BudgetCover(hours.quantize(_TWO_PLACES, rounding=ROUND_DOWN), whole_terms, text)


def miss_text(miss: Miss, machine: Machine) -> str:
    """Which preference the machine misses, and by how much."""
    if miss.code == "tier":
        wished = Tier.COMMUNITY if machine.tier == Tier.SECURE else Tier.SECURE
        return f"{Tier(machine.tier).label} instead of {wished.label}"
    by = miss.by or Decimal(0)
    if miss.code == "max_hourly_usd":
        return f"+${four_places_up(by)} per hour over your maximum"
    return f"+{usd(by)} over your budget"


def four_places_up(amount: Decimal) -> Decimal:
    """An excess with four decimals, rounded up, so that being over is never shown as 0.0000."""
    return amount.quantize(Decimal("0.0001"), rounding=ROUND_UP)


def reading_decides(need_bytes_per_gpu: int, sizes_gb: list[int]) -> str:
    """The sentence for a need between a nominal size read in GB and the same number read in GiB; else empty.

    Units: `sizes_gb` are nominal sizes of GPUs.
    """
    for size in sorted(set(sizes_gb)):
        if size * GB < need_bytes_per_gpu <= size * GIB:
            return (
                f"The unit decides here: {gib(need_bytes_per_gpu)} fits a GPU measured at {size}.00 GiB, and "
                f"does not fit one of which only the datasheet's {size} GB nominal is known, counted as "
                f"{gib(size * GB)}."
            )
    return ""
