"""Whether a workload fits the GPUs of one machine, and by how much it does or does not."""

from dataclasses import dataclass, replace

from sizing.engine.estimate import MemoryEstimate, estimate, splits
from sizing.engine.workloads import RunModel, Workload


@dataclass(frozen=True)
class Device:
    """The equal GPUs of one machine. Units: `memory_bytes` per GPU."""

    gpu_count: int
    memory_bytes: int


@dataclass(frozen=True)
class Fit:
    """The workload fits: `estimate` is for the smallest legal split that does."""

    device: Device
    estimate: MemoryEstimate

    @property
    def headroom_bytes(self) -> int:
        return self.device.memory_bytes - self.estimate.per_gpu_bytes


@dataclass(frozen=True)
class Rejection:
    """The workload does not fit: `estimate` is for the largest legal split, the device's best attempt.

    `code` is `illegal_split` when a split that the model does not allow would have held it, else `too_small`.
    """

    device: Device
    estimate: MemoryEstimate
    code: str

    @property
    def lacking_bytes(self) -> int:
        return self.estimate.per_gpu_bytes - self.device.memory_bytes


def fit(workload: Workload, device: Device) -> Fit | Rejection:
    """One GPU whenever one suffices, else the smallest legal split that fits. Memories are never added up."""
    best = None
    for gpus in splits(workload, device.gpu_count):
        best = estimate(workload, gpus)
        if best.per_gpu_bytes <= device.memory_bytes:
            return Fit(device, best)
    assert best is not None, "a split of 1 is always legal"
    splittable = isinstance(workload, RunModel)
    would_hold = splittable and estimate(workload, device.gpu_count).per_gpu_bytes <= device.memory_bytes
    return Rejection(device, best, "illegal_split" if would_hold else "too_small")


def largest(workload: Workload, field: str, up_to: int, device: Device) -> int | None:
    """The largest value of a count such as `context`, up to `up_to`, that fits; None when not even 1 does.

    The need never falls as such a count grows, so halving the range finds it.
    """
    low, high = 0, up_to
    while low < high:
        middle = (low + high + 1) // 2
        changed = replace(workload, **{field: middle})  # type: ignore[arg-type]  # the caller names a count it has
        if isinstance(fit(changed, device), Fit):
            low = middle
        else:
            high = middle - 1
    return low or None


def largest_context(workload: RunModel, device: Device) -> int | None:
    """The longest context, up to the model's maximum, with which the workload fits; None when not even 1 token does."""
    return largest(workload, "context", workload.model.max_context, device)
