"""An estimate in words: what was asked, what the figures assume, where they come from, and what would change them."""

from dataclasses import replace
from functools import singledispatch
from urllib.parse import urlsplit

from catalog.units import to_gib
from sizing.engine.activations import LAYER_FACTOR, LOSS_FACTOR
from sizing.engine.estimate import MemoryEstimate, estimate
from sizing.engine.parallelism import legal_splits
from sizing.engine.shapes import LanguageModel
from sizing.engine.workloads import (
    MAX_RANK,
    FineTune,
    GenerateImages,
    Notebook,
    RunModel,
    Transcribe,
    Workload,
)
from sizing.explain.words import counted, gib
from sizing.own_shape import OwnShape
from sizing.task_fields import SizedModel

ROUNDING_NOTE = "Lines are rounded; the total is computed from exact bytes."
FIGURES_NOTE = "Figures are rounded one by one; needs, comparisons and headroom are computed from exact bytes."
FIGURES_TOO = "The same goes for every other figure: needs, comparisons and headroom are exact inside."
TRAINING_SOURCES = (
    ("LoRA (Hu et al. 2021): trained parameters of an adapter", "https://arxiv.org/abs/2106.09685"),
    ("ZeRO (Rajbhandari et al. 2020): bytes per trained parameter", "https://arxiv.org/abs/1910.02054"),
    (
        "Reducing Activation Recomputation (Korthikanti et al. 2022): activations of a layer",
        "https://arxiv.org/abs/2205.05198",
    ),
)
QLORA_SOURCE = ("QLoRA (Dettmers et al. 2023): 4-bit NormalFloat", "https://arxiv.org/abs/2305.14314")
_PLANNING_RULE = (
    "The additional margin and the CUDA runtime are a planning rule and no guarantee: captured graphs and "
    "work memory of a server can exceed them."
)


def rounding_note(need: MemoryEstimate) -> str | None:
    """The sentence for an estimate whose printed lines do not add up to its printed total; else None."""
    printed = sum(to_gib(need.line_bytes(term)) for term in need.terms)
    return None if printed == to_gib(need.total_bytes) else ROUNDING_NOTE


def adds_up(need: MemoryEstimate) -> bool:
    """Whether the printed lines of one GPU are its printed need."""
    return sum(to_gib(term.bytes) for term in need.terms) == to_gib(need.per_gpu_bytes)


def run_model(need: MemoryEstimate) -> RunModel:
    """The workload of an estimate of language-model inference.

    Raises: TypeError for other kinds of work, which are not split.
    """
    if not isinstance(need.workload, RunModel):
        raise TypeError(f"{type(need.workload).__name__} is not split")
    return need.workload


# --- What was asked -----------------------------------------------------------------------------------------------


@singledispatch
def workload_words(workload: Workload) -> str:
    """The work in a few words, to stand before "needs 19.55 GiB"."""
    raise TypeError(f"no words for {type(workload).__name__}")


@workload_words.register
def _(workload: RunModel) -> str:
    return (
        f"{workload.model.name}, {_precision_words(workload)}, {counted(workload.context, 'token')} × "
        f"{counted(workload.requests, 'request')}"
    )


def _precision_words(workload: RunModel) -> str:
    return "weights as stored" if workload.precision_bits is None else f"{workload.precision_bits} bits"


@workload_words.register
def _(workload: FineTune) -> str:
    return (
        f"Fine-tuning {workload.model.name}, {lora_words(workload)}, {counted(workload.sequence_length, 'token')} × "
        f"batch size {workload.batch_size:,}"
    )


@workload_words.register
def _(workload: GenerateImages) -> str:
    return f"{workload.model.name}, one image at native resolution"


@workload_words.register
def _(workload: Transcribe) -> str:
    return f"{workload.model.name}, {workload.precision_bits} bits, {counted(workload.streams, 'audio stream')} at once"


@workload_words.register
def _(workload: Notebook) -> str:
    return f"A notebook, stated with {workload.stated} of GPU memory,"


def lora_words(workload: FineTune) -> str:
    """The method, the base's precision, the rank and the targets: "LoRA on 16 bits, rank 16 on q, k, v, o"."""
    method = "QLoRA on 4 bits" if workload.precision_bits == 4 else f"LoRA on {workload.precision_bits} bits"
    return f"{method}, rank {workload.rank:,} on {', '.join(workload.target_modules)}"


# --- What the figures assume --------------------------------------------------------------------------------------


def assumptions(ai_model: SizedModel | None, need: MemoryEstimate) -> list[str]:
    """What the figures of this estimate take for granted, one sentence each."""
    found = _assumed(need.workload, need)
    if isinstance(need.workload, RunModel) and ai_model is not None:
        found += _of_the_model(ai_model)
    if isinstance(need.workload, FineTune) and ai_model is not None and _is_mixture(ai_model):
        found.append("All experts of the mixture are in memory; a mixture's experts get no adapters.")
    if isinstance(ai_model, OwnShape):
        found.append("The model's figures were derived from the files that you brought; no publication was compared.")
        if ai_model.quantization and not ai_model.is_stored:
            found.append(
                f"Its configuration says that the weights are quantized ({ai_model.quantization}). They are counted at "
                "the precision you chose: bring the index or the headers of the weights to count them as stored."
            )
    if need.gpus > 1:
        found.append(
            f"The model is split over {need.gpus} GPUs of one machine with tensor parallelism, which the "
            "inference engine "
            "must support."
        )
        found += _copies(need)
    return found


@singledispatch
def _assumed(workload: Workload, need: MemoryEstimate) -> list[str]:
    raise TypeError(f"no assumptions for {type(workload).__name__}")


@_assumed.register
def _(workload: RunModel, need: MemoryEstimate) -> list[str]:
    return [
        "The KV cache is kept at 16 bits (FP16 or BF16), whatever the precision of the weights.",
        _PLANNING_RULE,
        f"Each request is counted with its whole context of {counted(workload.context, 'token')}; nothing is shared "
        "between requests.",
        *_weights_kept(workload),
    ]


@_assumed.register
def _(workload: FineTune, need: MemoryEstimate) -> list[str]:
    found = [
        "LoRA: the base is frozen and only the adapters are trained. Full fine-tuning is not sized.",
        "Gradient checkpointing is on for every layer, and attention is fused (no attention matrix is kept).",
        f"A layer computed again takes {LAYER_FACTOR} bytes per token and hidden unit, the published factor; 34 to 42 "
        "were traced for gated MLPs.",
        f"The loss takes {LOSS_FACTOR} bytes per token and vocabulary entry (16-bit logits, FP32 copy, log-softmax, "
        "gradient); this is traced, not published. No fused cross-entropy is assumed, which would need less.",
        "Evaluation keeps the loss only: logits of the whole vocabulary that a script gathers come on top.",
        "Each trained parameter takes 16 bytes: weight, gradient and both moments of AdamW in FP32.",
        "One GPU holds all of it. Data-parallel training needs this amount on every GPU.",
        "The additional margin and the CUDA runtime are a planning rule and no guarantee.",
    ]
    if workload.precision_bits == 4:
        found.append(
            "QLoRA: every parameter of the base is counted in 4-bit NormalFloat with double quantization, 4.127 bits. "
            "Embeddings and output matrix that a library keeps at 16 bits come on top."
        )
    else:
        found += _quantization(workload.precision_bits)
    return found


@_assumed.register
def _(workload: GenerateImages, need: MemoryEstimate) -> list[str]:
    return [
        "One image at a time, at the pipeline's native resolution.",
        "Every network of the pipeline stays in GPU memory at 16 bits; nothing is moved to the CPU between steps.",
        "The figure is meant for the peak while generating, which is above what is in use after loading.",
        "The additional margin stands for activations at that resolution and the CUDA runtime is a planning rule: "
        "neither is a guarantee.",
    ]


@_assumed.register
def _(workload: Transcribe, need: MemoryEstimate) -> list[str]:
    model = workload.model
    return [
        f"The decoder's cache is sized for one window of 30 seconds ({model.max_source_positions:,} encoder positions, "
        f"{model.max_target_positions:,} decoder positions) of each stream, at 16 bits.",
        "The length of a recording changes nothing: it is worked through window by window.",
        "One hypothesis per stream; a beam search keeps a cache for each of its beams.",
        "Weights are kept at the chosen precision only. Implementations that keep FP32 weights need about twice as "
        "much.",
        "The additional margin and the CUDA runtime are a planning rule and no guarantee.",
        *_quantization(workload.precision_bits),
    ]


@_assumed.register
def _(workload: Notebook, need: MemoryEstimate) -> list[str]:
    return [
        "The figure you stated is compared as it is with the memory of one GPU: no margin and no runtime are added.",
        "Nothing is known about what the notebook runs, so nothing is computed.",
    ]


def _weights_kept(workload: RunModel) -> list[str]:
    stored = workload.model.stored_bytes
    if stored is None or workload.precision_bits is not None:
        return _quantization(workload.precision_bits or 16)
    return [
        f"The weights are counted as stored: the {counted(stored, 'byte')} of the checkpoint's tensors, scales and "
        "parts in other formats included. A choice of precision does not apply.",
        "An engine that converts the weights when it loads them can need more.",
    ]


def _quantization(precision_bits: int) -> list[str]:
    if precision_bits == 16:
        return []
    return [
        f"{precision_bits} bits is the theoretical size: quantization metadata, and parts that stay in "
        "another format, are not counted."
    ]


def _of_the_model(ai_model: SizedModel) -> list[str]:
    found = []
    if _is_mixture(ai_model):
        found.append("All experts of the mixture are in memory, also those that a token does not use.")
    if ai_model.accepts_images:
        found.append("Image tokens count towards the context.")
    if ai_model.cache_note:
        found.append(ai_model.cache_note)
    return found


def _is_mixture(ai_model: SizedModel) -> bool:
    return bool(ai_model.active_parameters or ai_model.expert_intermediate_size)


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


def illegal_split(workload: Workload) -> str:
    """Over how many GPUs the work can be split, for one who asked for another number."""
    if not isinstance(workload, RunModel):
        return f"{_ONE_GPU[type(workload)]} is sized for one GPU only: leave gpus out, or give 1."
    return _legal_splits(workload.model)


_ONE_GPU: dict[type, str] = {
    FineTune: "Fine-tuning",
    GenerateImages: "Image generation",
    Transcribe: "Speech recognition",
    Notebook: "A notebook",
}


def _legal_splits(model: LanguageModel) -> str:
    *most, last = legal_splits(model)
    allowed = f"{', '.join(map(str, most))} or {last} GPUs" if most else f"{last} GPU only"
    return f"{model.name} can run on {allowed} of one machine."


# --- Where it was read --------------------------------------------------------------------------------------------


def sources(ai_model: SizedModel | None, workload: Workload | None = None) -> list[tuple[str, str]]:
    """Where figures and formulas were read, as title and address; the model card first. None without a model."""
    if ai_model is None:
        return []
    found = [(f"{ai_model.name}: model card", ai_model.source_url)] if ai_model.source_url else []
    found += [(_title(address), address) for address in ai_model.sources if address.startswith("https://")]
    if isinstance(workload, FineTune):
        found += TRAINING_SOURCES
        found += [QLORA_SOURCE] if workload.precision_bits == 4 else []
    return found


def _title(address: str) -> str:
    parts = urlsplit(address)
    path = [part for part in parts.path.split("/") if part]
    if parts.netloc == "github.com" and len(path) > 2:
        return f"{path[0]}/{path[1]}: {path[-1]}"
    return f"{parts.netloc}: {path[-1]}" if path else parts.netloc


# --- What would change it -----------------------------------------------------------------------------------------


def sensitivity(workload: Workload, gpus: int = 1) -> str:
    """What more of each count adds, from the engine itself; the margin is included."""
    if isinstance(workload, Notebook):
        return "Nothing is added to the figure you stated."
    if isinstance(workload, GenerateImages):
        return "More images at once or a higher resolution need more than this; how much is not computed."
    text = " and ".join(_additions(workload, gpus))
    return f"{text[0].upper()}{text[1:]} more, margin included."


@singledispatch
def _additions(workload: Workload, gpus: int) -> list[str]:
    raise TypeError(f"no additions to {type(workload).__name__}")


@_additions.register
def _(workload: RunModel, gpus: int) -> list[str]:
    now = estimate(workload, gpus).total_bytes
    # A further request may lie beyond what can be asked, and is still what one more would add.
    request = estimate(replace(workload, requests=1), gpus).total_bytes
    another = estimate(replace(workload, requests=2), gpus).total_bytes - request
    parts = [f"each further request {gib(another)}"]
    if workload.context + 1000 <= workload.model.max_context:
        longer = estimate(replace(workload, context=workload.context + 1000), gpus).total_bytes - now
        parts.insert(0, f"each further 1,000 tokens of context {gib(longer)}")
    return parts


@_additions.register
def _(workload: FineTune, gpus: int) -> list[str]:
    now = estimate(workload).total_bytes
    single = estimate(replace(workload, batch_size=1)).total_bytes
    parts = [
        f"each further sequence of the batch {gib(estimate(replace(workload, batch_size=2)).total_bytes - single)}"
    ]
    longer = workload.sequence_length + 1000
    if longer <= workload.model.max_context:
        added = estimate(replace(workload, sequence_length=longer)).total_bytes - now
        parts.insert(0, f"each further 1,000 tokens of sequence length {gib(added)}")
    if workload.rank * 2 <= MAX_RANK:
        added = estimate(replace(workload, rank=workload.rank * 2)).total_bytes - now
        parts.append(f"twice the rank {gib(added)}")
    return [", ".join(parts[:-1]), parts[-1]] if len(parts) > 2 else parts


@_additions.register
def _(workload: Transcribe, gpus: int) -> list[str]:
    single = estimate(replace(workload, streams=1)).total_bytes
    another = estimate(replace(workload, streams=2)).total_bytes - single
    return [f"each further audio stream {gib(another)}"]
