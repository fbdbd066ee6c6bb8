"""The estimate of a workload: the sum of its terms and nothing else."""

from dataclasses import dataclass
from typing import Protocol

from sizing.engine.kv_cache import KVCache
from sizing.engine.overhead import Margin, Reserve, Runtime
from sizing.engine.parallelism import legal_splits
from sizing.engine.weights import Weights
from sizing.engine.workloads import RunModel


class Term(Protocol):
    """One line of an estimate. `code` is stable; `bytes` is per GPU."""

    @property
    def code(self) -> str: ...

    @property
    def bytes(self) -> int: ...


@dataclass(frozen=True)
class MemoryEstimate:
    """The memory that `workload` needs on each of `gpus` GPUs of one machine.

    Units: bytes. A line's bytes are its term's, rounded up once per GPU, times the GPUs.
    """

    workload: RunModel
    gpus: int
    terms: tuple[Term, ...]

    @property
    def per_gpu_bytes(self) -> int:
        return sum(term.bytes for term in self.terms)

    @property
    def total_bytes(self) -> int:
        return self.per_gpu_bytes * self.gpus

    def line_bytes(self, term: Term) -> int:
        return term.bytes * self.gpus


def estimate(workload: RunModel, gpus: int = 1) -> MemoryEstimate:
    """The memory of `workload` split over `gpus`. Whether that split is legal is parallelism's question."""
    model = workload.model
    weights = Weights(model.parameters, workload.precision_bits, gpus)
    cache = KVCache(model.cache_groups, workload.context, workload.requests, model.state_bytes_per_sequence, gpus)
    terms: list[Term] = [weights, cache, Margin(weights.bytes + cache.bytes, gpus=gpus), Runtime(gpus)]
    if workload.reserve_bytes:
        terms.append(Reserve(workload.reserve_bytes, workload.reserve_reason, gpus))
    return MemoryEstimate(workload, gpus, tuple(terms))


def split_estimates(workload: RunModel) -> tuple[MemoryEstimate, ...]:
    """The estimate for every legal split, smallest first. The need per GPU never grows with the number of GPUs."""
    return tuple(estimate(workload, gpus) for gpus in legal_splits(workload.model))
