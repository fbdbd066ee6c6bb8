"""The lines of an estimate in words: what each is, its formula filled in, and what the figures assume.

`formula` prints the very fields that a term computes with, so the two cannot drift: a test multiplies what is printed.
"""

from dataclasses import replace
from functools import singledispatch
from urllib.parse import urlsplit

from catalog.units import to_gib
from sizing.engine.estimate import MemoryEstimate, Term, estimate
from sizing.engine.kv_cache import ELEMENT_BYTES, KVCache
from sizing.engine.overhead import Margin, Reserve, Runtime
from sizing.engine.parallelism import legal_splits
from sizing.engine.shapes import CacheGroup, LanguageModel
from sizing.engine.weights import Weights
from sizing.engine.workloads import RunModel
from sizing.explain.words import counted, gib, whole_gib
from sizing.models import AiModel

LABELS = {
    "weights": "Model weights",
    "kv_cache": "KV cache",
    "margin": "Additional margin",
    "runtime": "CUDA runtime",
    "reserve": "Own reserve",
}
WHAT_IS_THIS = {
    "weights": (
        "The numbers that the model learned, all of which must be in GPU memory before it can answer. "
        "A mixture of experts keeps every expert there, also those that a token does not use. "
        "It grows with the number of parameters and with the bits kept for each."
    ),
    "kv_cache": (
        "For every token it has seen, each attention layer keeps a key and a value, so that it need not "
        "compute them again. Architectures that keep less, such as a sliding window or one shared vector, are "
        "counted as published. It grows with the context and with the requests at once."
    ),
    "margin": (
        "Room for what is not counted line by line: activations, work memory of the kernels, captured graphs, "
        "fragmentation. It is a planning rule, not a measurement, and a server can need more. "
        "It grows with the weights and the KV cache."
    ),
    "runtime": (
        "What CUDA and its libraries take on a GPU before the model is loaded. "
        "It is a planning rule as well: the real amount depends on driver and libraries. "
        "It grows with the number of GPUs, for each has its own."
    ),
    "reserve": (
        "Memory that you want kept free on every GPU, for the reason you gave. "
        "No margin is put on it. "
        "It grows only when you raise it."
    ),
}
ROUNDING_NOTE = "Lines are rounded; the total is computed from exact bytes."
_BYTES_PER_PARAMETER = {16: "2 bytes", 8: "1 byte", 4: "0.5 bytes"}


# --- Formulas -----------------------------------------------------------------------------------------------------


@singledispatch
def formula(term: Term) -> str:
    """The term's calculation with its factors filled in; for several GPUs it ends with what each of them holds."""
    raise TypeError(f"no formula for {type(term).__name__}")


@formula.register
def _(term: Weights) -> str:
    million = f" ({to_million(term.parameters):,} million)" if term.parameters >= 10**6 else ""
    split = f" ÷ {term.gpus} GPUs" if term.gpus > 1 else ""
    factors = f"{counted(term.parameters, 'parameter')}{million} × {_BYTES_PER_PARAMETER[term.bits]}{split}"
    return factors + _on_each(term.bytes, term.gpus)


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


def to_million(number: int) -> int:
    """A count in millions, half-up."""
    return (number + 500_000) // 10**6


def rounding_note(need: MemoryEstimate) -> str | None:
    """The sentence for an estimate whose printed lines do not add up to its printed total; else None."""
    printed = sum(to_gib(need.line_bytes(term)) for term in need.terms)
    return None if printed == to_gib(need.total_bytes) else ROUNDING_NOTE


def run_model(need: MemoryEstimate) -> RunModel:
    """The workload of an estimate of language-model inference.

    Raises: TypeError for other kinds of work, which need words of their own.
    """
    if not isinstance(need.workload, RunModel):
        raise TypeError(f"no words yet for {type(need.workload).__name__}")
    return need.workload


# --- What the figures assume --------------------------------------------------------------------------------------


def assumptions(ai_model: AiModel, need: MemoryEstimate) -> list[str]:
    """What the figures of this estimate take for granted, one sentence each."""
    workload = run_model(need)
    found = [
        "The KV cache is kept at 16 bits (FP16 or BF16), whatever the precision of the weights.",
        "The additional margin and the CUDA runtime are a planning rule and no guarantee: captured graphs and "
        "work memory of a server can exceed them.",
        f"Each request is counted with its whole context of {counted(workload.context, 'token')}; nothing is shared "
        "between requests.",
    ]
    if workload.precision_bits < 16:
        found.append(
            f"{workload.precision_bits} bits is the theoretical size: quantization metadata, and parts that stay in "
            "another format, are not counted."
        )
    if ai_model.active_parameters or ai_model.expert_intermediate_size:
        found.append("All experts of the mixture are in memory, also those that a token does not use.")
    if ai_model.accepts_images:
        found.append("Image tokens count towards the context.")
    if ai_model.cache_note:
        found.append(ai_model.cache_note)
    if need.gpus > 1:
        found.append(
            f"The model is split over {need.gpus} GPUs of one machine with tensor parallelism, which the "
            "inference engine "
            "must support."
        )
        found += _copies(need)
    return found


def _copies(need: MemoryEstimate) -> list[str]:
    model = run_model(need).model
    groups = model.cache_groups
    found = []
    if any(group.kv_heads is None for group in groups):
        found.append(f"The cache has no heads to split, so each of the {need.gpus} GPUs holds a copy of it.")
    fewest = min((group.kv_heads for group in groups if group.kv_heads is not None), default=need.gpus)
    if fewest < need.gpus:
        found.append(f"{counted(fewest, 'KV head')} on {need.gpus} GPUs: heads are copied, not split further.")
    if model.state_bytes_per_sequence:
        found.append(f"The constant state is copied to each of the {need.gpus} GPUs.")
    return found


def illegal_split(model: LanguageModel) -> str:
    """Over how many GPUs a model can be split, for one who asked for another number."""
    *most, last = legal_splits(model)
    allowed = f"{', '.join(map(str, most))} or {last} GPUs" if most else f"{last} GPU only"
    return f"{model.name} can run on {allowed} of one machine."


def sources(ai_model: AiModel) -> list[tuple[str, str]]:
    """Where the model's figures were read, as title and address; its model card first."""
    found = [(f"{ai_model.name}: model card", ai_model.source_url)]
    found += [(_title(address), address) for address in ai_model.sources if address.startswith("https://")]
    return found


def _title(address: str) -> str:
    parts = urlsplit(address)
    path = [part for part in parts.path.split("/") if part]
    if parts.netloc == "github.com" and len(path) > 2:
        return f"{path[0]}/{path[1]}: {path[-1]}"
    return f"{parts.netloc}: {path[-1]}" if path else parts.netloc


def sensitivity(workload: RunModel, gpus: int = 1) -> str:
    """What a longer context and a further request add, from the engine itself; the margin is included."""
    now = estimate(workload, gpus).total_bytes
    # A further request may lie beyond what can be asked, and is still what one more would add.
    request = estimate(replace(workload, requests=1), gpus).total_bytes
    another = estimate(replace(workload, requests=2), gpus).total_bytes - request
    parts = [f"each further request {gib(another)}"]
    if workload.context + 1000 <= workload.model.max_context:
        longer = estimate(replace(workload, context=workload.context + 1000), gpus).total_bytes - now
        parts.insert(0, f"each further 1,000 tokens of context {gib(longer)}")
    text = " and ".join(parts)
    return f"{text[0].upper()}{text[1:]} more, margin included."
