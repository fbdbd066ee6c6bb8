"""How far to trust that a machine holds a workload: counted reasons. It is a second opinion and never alters a byte."""

from dataclasses import dataclass

from sizing.engine.estimate import MemoryEstimate
from sizing.engine.parallelism import copies_cache
from sizing.engine.workloads import FineTune, GenerateImages, Notebook, RunModel, Transcribe, Workload, precision_of

NARROW_MARGIN_PERCENT = 10

REASONS = (
    "quantized",
    "multi_gpu",
    "provider_report",
    "datasheet",
    "narrow_margin",
    "fine_tuning",
    "image",
    "speech",
    "stated_need",
    "non_cuda",
    "kv_copied",
)


@dataclass(frozen=True)
class Confidence:
    """A level that follows from its reasons: none is high, one is medium, two or more are low; `image` alone is low."""

    reasons: tuple[str, ...]

    def __post_init__(self) -> None:
        unknown = set(self.reasons) - set(REASONS)
        if unknown:
            raise ValueError(f"unknown reasons: {sorted(unknown)}")

    @property
    def level(self) -> str:
        if "image" in self.reasons or len(self.reasons) > 1:
            return "low"
        return "medium" if self.reasons else "high"


def is_narrow(headroom_bytes: int, memory_bytes: int) -> bool:
    """Whether less than 10 % of the GPU's memory stays free."""
    return headroom_bytes * 100 < memory_bytes * NARROW_MARGIN_PERCENT


def judge(need: MemoryEstimate, *, memory_bytes: int, memory_source: str, cuda: bool) -> Confidence:
    """The confidence that `need` is met by GPUs of `memory_bytes` each, its reasons in the fixed order of REASONS."""
    workload = need.workload
    facts = {
        "quantized": (precision_of(workload) or 16) < 16 or _is_stored_quantized(workload),
        "multi_gpu": need.gpus > 1,
        "provider_report": memory_source == "provider_report",
        "datasheet": memory_source == "datasheet",
        "narrow_margin": is_narrow(memory_bytes - need.per_gpu_bytes, memory_bytes),
        "fine_tuning": isinstance(workload, FineTune),
        "image": isinstance(workload, GenerateImages),
        "speech": isinstance(workload, Transcribe),
        "stated_need": isinstance(workload, Notebook),
        "non_cuda": not cuda,
        "kv_copied": isinstance(workload, RunModel) and copies_cache(workload.model, need.gpus),
    }
    return Confidence(tuple(reason for reason in REASONS if facts[reason]))


def _is_stored_quantized(workload: Workload) -> bool:
    """Whether the weights are counted as a quantized checkpoint stores them."""
    return isinstance(workload, RunModel) and workload.model.stored_bytes is not None and workload.model.quantized
