"""The lines of an estimate as formulas with their factors filled in.

`formula` prints the very fields that a term computes with, so the two cannot drift: a test multiplies what is printed.
What follows a colon explains and is no factor.
"""

from collections.abc import Iterable
from functools import singledispatch
from itertools import groupby

from sizing.engine.activations import LAYER_FACTOR, LOSS_FACTOR, Checkpoints, WorkingSet
from sizing.engine.adapters import TRAINED_PARAMETER_BYTES, Adapters, BaseWeights
from sizing.engine.decoder_cache import DecoderCache
from sizing.engine.estimate import Term
from sizing.engine.kv_cache import ELEMENT_BYTES, KVCache
from sizing.engine.networks import NetworkWeights
from sizing.engine.overhead import Margin, Reserve, Runtime
from sizing.engine.shapes import CacheGroup, Projection
from sizing.engine.weights import StatedNeed, StoredWeights, Weights
from sizing.explain.words import counted, gib, whole_gib

_BYTES_PER_PARAMETER = {16: "2 bytes", 8: "1 byte", 4: "0.5 bytes"}


@singledispatch
def formula(term: Term) -> str:
    """The term's calculation with its factors filled in; for several GPUs it ends with what each of them holds."""
    raise TypeError(f"no formula for {type(term).__name__}")


@formula.register
def _(term: Weights) -> str:
    split = f" ÷ {term.gpus} GPUs" if term.gpus > 1 else ""
    factors = f"{_parameters(term.parameters)} × {_BYTES_PER_PARAMETER[term.bits]}{split}"
    return factors + _on_each(term.bytes, term.gpus)


@formula.register
def _(term: StoredWeights) -> str:
    split = f" ÷ {term.gpus} GPUs" if term.gpus > 1 else ""
    return f"{counted(term.stored_bytes, 'byte')} stored in the checkpoint{split}" + _on_each(term.bytes, term.gpus)


@formula.register
def _(term: KVCache) -> str:
    return " + ".join(cache_parts(term)) + _on_each(term.bytes, term.gpus)


@formula.register
def _(term: Margin) -> str:
    return f"{term.percent} % of {gib(term.of_bytes)}" + _on_each(term.bytes, term.gpus)


@formula.register
def _(term: Runtime) -> str:
    return f"{whole_gib(term.bytes)} × {counted(term.gpus, 'GPU')}"


@formula.register
def _(term: Reserve) -> str:
    return f"{whole_gib(term.bytes)} × {counted(term.gpus, 'GPU')}: {term.reason}"


@formula.register
def _(term: BaseWeights) -> str:
    each = _BYTES_PER_PARAMETER.get(term.bits, "")
    if term.millibits != term.bits * 1000:
        each = f"{term.millibits // 1000}.{term.millibits % 1000:03d} bits ÷ 8"
    return f"{_parameters(term.parameters)} × {each}"


@formula.register
def _(term: Adapters) -> str:
    trained = counted(term.trainable_parameters, "trainable parameter")
    return f"{trained} × {TRAINED_PARAMETER_BYTES} bytes: {adapter_shape(term)}"


@formula.register
def _(term: Checkpoints) -> str:
    return (
        f"2 bytes × {counted(term.sequence_length, 'token')} × {term.batch_size:,} × {term.hidden_size:,} hidden × "
        f"{counted(term.layers, 'layer')}"
    )


@formula.register
def _(term: WorkingSet) -> str:
    tokens = f"{counted(term.sequence_length, 'token')} × {term.batch_size:,}"
    return (
        f"max({LAYER_FACTOR} × {tokens} × {term.hidden_size:,} hidden, "
        f"{LOSS_FACTOR} × {tokens} × {term.vocab_size:,} vocabulary) bytes"
    )


@formula.register
def _(term: NetworkWeights) -> str:
    return f"{_parameters(term.parameters)} × {_BYTES_PER_PARAMETER[term.bits]}: {term.name}"


@formula.register
def _(term: DecoderCache) -> str:
    return (
        f"2 × {counted(term.layers, 'layer')} × {term.hidden_size:,} hidden × {ELEMENT_BYTES} bytes × "
        f"({term.target_positions:,} + {term.source_positions:,}) positions × {counted(term.streams, 'stream')}"
    )


@formula.register
def _(term: StatedNeed) -> str:
    return f"{term.stated}: as you stated it, nothing added"


def adapter_shape(term: Adapters) -> str:
    """Where the trained parameters are: rank × layers × the inputs and outputs of every adapted module."""
    parts = [
        f"{counted(layers, 'layer')} × ({_modules(modules)})"
        for layers, modules in groupby(term.projections, key=lambda projection: projection.layers)
    ]
    inside = parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"
    return f"rank {term.rank:,} × {inside}"


def _modules(projections: Iterable[Projection]) -> str:
    return " + ".join(f"{each.in_features + each.out_features:,} {each.module}" for each in projections)


def cache_parts(term: KVCache) -> list[str]:
    """The cache's formula, one part for each group of layers, and one for a constant state where there is one."""
    parts = [_group(term, group) for group in term.groups]
    if term.state_bytes_per_sequence:
        parts.append(f"{counted(term.state_bytes_per_sequence, 'byte')} of state × {counted(term.requests, 'request')}")
    return parts


def _group(term: KVCache, group: CacheGroup) -> str:
    layers = counted(group.layers, "layer")
    elements = f"{layers} × {counted(group.elements_per_token, 'element')}"
    heads = group.heads_per_gpu(term.gpus)
    if heads is not None and group.kv_heads is not None:
        share = f"{heads} of " if term.gpus > 1 else ""
        elements = f"2 × {layers} × {share}{counted(group.kv_heads, 'KV head')} × {group.head_dim}"
    tokens = counted(term.context, "token")
    if group.window is not None:
        tokens = f"min({term.context:,}, {group.window:,}) tokens"
    return f"{elements} × {ELEMENT_BYTES} bytes × {tokens} × {counted(term.requests, 'request')}"


def _on_each(size_bytes: int, gpus: int) -> str:
    return f" = {gib(size_bytes)} on each of {gpus} GPUs" if gpus > 1 else ""


def _parameters(number: int) -> str:
    million = f" ({to_million(number):,} million)" if number >= 10**6 else ""
    return f"{counted(number, 'parameter')}{million}"


def to_million(number: int) -> int:
    """A count in millions, half-up."""
    return (number + 500_000) // 10**6
