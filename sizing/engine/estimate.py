"""The estimate of a workload: the sum of its terms and nothing else."""

from collections import Counter
from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol

from sizing.engine.activations import Checkpoints, WorkingSet
from sizing.engine.adapters import Adapters, BaseWeights, adapted
from sizing.engine.decoder_cache import DecoderCache
from sizing.engine.kv_cache import KVCache
from sizing.engine.networks import NetworkWeights
from sizing.engine.overhead import Margin, Reserve, Runtime
from sizing.engine.parallelism import MAX_SPLIT, legal_splits
from sizing.engine.shapes import Network
from sizing.engine.weights import StatedNeed, StoredWeights, Weights
from sizing.engine.workloads import FineTune, GenerateImages, Notebook, RunModel, Transcribe, Workload


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

    workload: Workload
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


def estimate(workload: Workload, gpus: int = 1) -> MemoryEstimate:
    """The memory of `workload` split over `gpus`. Whether that split is legal is `splits`'s question."""
    if isinstance(workload, Notebook):
        return MemoryEstimate(workload, gpus, (StatedNeed(workload.need_bytes, workload.stated),))
    counted = _counted(workload, gpus)
    terms = [*counted, Margin(sum(term.bytes for term in counted), gpus=gpus), Runtime(gpus)]
    if workload.reserve_bytes:
        terms.append(Reserve(workload.reserve_bytes, workload.reserve_reason, gpus))
    return MemoryEstimate(workload, gpus, tuple(terms))


@singledispatch
def _counted(workload: Workload, gpus: int) -> list[Term]:
    """The lines that follow from the workload's own figures, on which the margin is put."""
    raise TypeError(f"no estimate for {type(workload).__name__}")


@_counted.register
def _(workload: RunModel, gpus: int) -> list[Term]:
    model = workload.model
    weights: Term
    if model.stored_bytes is not None:
        weights = StoredWeights(model.stored_bytes, gpus)
    else:
        assert workload.precision_bits is not None, "only stored weights have no precision"
        weights = Weights(model.parameters, workload.precision_bits, gpus)
    return [
        weights,
        KVCache(model.cache_groups, workload.context, workload.requests, model.state_bytes_per_sequence, gpus),
    ]


@_counted.register
def _(workload: FineTune, gpus: int) -> list[Term]:
    training, length, batch = workload.training, workload.sequence_length, workload.batch_size
    return [
        BaseWeights(workload.model.parameters, workload.precision_bits),
        Adapters(adapted(training.projections, workload.target_modules), workload.rank),
        Checkpoints(length, batch, training.hidden_size, training.layers),
        WorkingSet(length, batch, training.hidden_size, training.vocab_size),
    ]


@_counted.register
def _(workload: GenerateImages, gpus: int) -> list[Term]:
    return [
        NetworkWeights(code, network.name, network.parameters)
        for code, network in _numbered_roles(workload.model.networks)
    ]


@_counted.register
def _(workload: Transcribe, gpus: int) -> list[Term]:
    model = workload.model
    return [
        Weights(model.parameters, workload.precision_bits),
        DecoderCache(
            model.decoder_layers,
            model.hidden_size,
            model.max_source_positions,
            model.max_target_positions,
            workload.streams,
        ),
    ]


def _numbered_roles(networks: tuple[Network, ...]) -> list[tuple[str, Network]]:
    """Each network with its role; the second of a role is `text_encoder_2` and so on, so that codes stay distinct."""
    seen: Counter[str] = Counter()
    numbered = []
    for network in networks:
        seen[network.role] += 1
        count = seen[network.role]
        numbered.append((network.role if count == 1 else f"{network.role}_{count}", network))
    return numbered


def splits(workload: Workload, up_to: int = MAX_SPLIT) -> tuple[int, ...]:
    """Over how many GPUs the workload may be split, smallest first; only language-model inference beyond one."""
    return legal_splits(workload.model, up_to) if isinstance(workload, RunModel) else (1,)


def split_estimates(workload: Workload) -> tuple[MemoryEstimate, ...]:
    """The estimate for every legal split, smallest first. The need per GPU never grows with the number of GPUs."""
    return tuple(estimate(workload, gpus) for gpus in splits(workload))
