"""A whole answer in words: what was not considered, what came nearest, what would help, what was taken into account."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from catalog import wording
from catalog.querysets import FRESH_FOR
from catalog.units import counted_text
from sizing.answers import (
    ANY_TIER,
    Answer,
    Change,
    Constraint,
    NearestMiss,
    NotConsidered,
    PrecisionAlternative,
    Question,
)
from sizing.engine.workloads import FineTune, GenerateImages, Notebook, RunModel, Transcribe
from sizing.explain.machines import Sentence
from sizing.explain.words import counted, gib, usd, whole_gib

FRESH_MINUTES = int(FRESH_FOR.total_seconds() // 60)
TIER_LABELS = {ANY_TIER: "Any tier", "secure": "Secure", "community": "Community"}

LIMITS_OF_EVERY_ANSWER = (
    Sentence("speed", "Speed is not estimated. Tokens per second are shown only where they were measured."),
    Sentence("no_speed_ranking", "Prices establish no speed ranking: a dearer machine need not be a faster one."),
    Sentence(
        "calculation",
        "Fit is a calculation, not a guarantee. A server may reserve more than it needs, and a training script "
        "may keep copies; mind the margin when you change settings.",
    ),
    Sentence("now", "Availability is now, and can change until an order is confirmed."),
    Sentence(
        "compatibility",
        "A format that the hardware states need not be enabled by the inference engine. Driver, libraries and "
        "extensions must support the exact GPU.",
    ),
    Sentence(
        "community",
        "Community machines run on the provider's own hardware, and the provider can read the session's memory.",
    ),
)


class ConstraintText(NamedTuple):
    """Something that the answer took into account: a stable code, its value as JSON has it, and words."""

    code: str
    value: Any
    text: str


def constraints(answer: Answer) -> list[ConstraintText]:
    """Everything the answer took into account, defaults and thresholds included."""
    return [
        ConstraintText(
            constraint.code,
            plain_value(constraint.code, constraint.value),
            _CONSTRAINTS[constraint.code](answer, constraint.value),
        )
        for constraint in answer.constraints
        if not _says_nothing(constraint)
    ]


def _says_nothing(constraint: Constraint) -> bool:
    """No reserve; and, where no country was chosen, the count of those that are covered."""
    if constraint.code == "reserve_bytes":
        return not constraint.value
    return constraint.code == "countries_covered" and constraint.value is None


def plain_value(code: str, value: Any) -> Any:
    """A value as JSON has it: money as text, with four decimals where it is per hour."""
    if isinstance(value, Decimal):
        return four_places(value) if code.endswith("_hourly_usd") else f"{value:.2f}"
    return list(value) if isinstance(value, tuple) else value


def _countries(answer: Answer, codes: tuple[str, ...]) -> str:
    if not codes:
        return "Every country is allowed."
    return f"Only inside {places(codes)}. Machines elsewhere are not offered."


def _hourly_maximum(answer: Answer, amount: Decimal | None) -> str:
    if amount is None:
        return "No maximum price per hour."
    return f"At most ${four_places(amount)} per hour and lot, compared with the package price divided by its hours."


_CONSTRAINTS: dict[str, Callable[[Answer, Any], str]] = {
    "task": lambda answer, value: _TASK_TEXTS[type(answer.question.workload)],
    "model": lambda answer, value: f"{answer.question.ai_model.name if answer.question.ai_model else value}.",
    "method": lambda answer, value: "LoRA: the base is frozen, small adapters are trained.",
    "precision_bits": lambda answer, value: _precision_constraint(answer, value),
    "context": lambda answer, value: f"A context of {counted(value, 'token')} per request.",
    "requests": lambda answer, value: f"{counted(value, 'request')} at once.",
    "reserve_bytes": lambda answer, value: (
        f"An own reserve of {gib(value)} on every GPU: {getattr(answer.question.workload, 'reserve_reason', '')}"
    ),
    "sequence_length": lambda answer, value: f"Examples of up to {counted(value, 'token')}.",
    "batch_size": lambda answer, value: f"A batch of {counted(value, 'sequence')} at once.",
    "rank": lambda answer, value: f"Adapters of rank {value:,}.",
    "target_modules": lambda answer, value: f"Adapters on the modules for {', '.join(value)}.",
    "checkpointing": lambda answer, value: "Gradient checkpointing is on, and attention is fused.",
    "image_bits": lambda answer, value: f"Every network of the pipeline at {value} bits.",
    "images": lambda answer, value: "One image at native resolution.",
    "streams": lambda answer, value: f"{counted(value, 'audio stream')} at once.",
    "window": lambda answer, value: (
        f"A window of 30 seconds for each stream: {value[0]:,} encoder and {value[1]:,} decoder positions, whatever "
        "the length of the recording."
    ),
    "stated_need": lambda answer, value: f"{value} of GPU memory, as you stated it.",
    "nothing_added": lambda answer, value: "Nothing is added to it: no margin, no runtime.",
    "kv_cache_bits": lambda answer, value: f"The KV cache is kept at {value} bits.",
    "margin_percent": lambda answer, value: (
        f"{value} % margin on {_MARGIN_ON[type(answer.question.workload)]}, a planning rule."
    ),
    "runtime_bytes": lambda answer, value: f"{whole_gib(value)} for the CUDA runtime of each GPU, a planning rule.",
    "one_machine": lambda answer, value: (
        "GPUs of one machine only: one whenever one suffices, else the smallest split that the model allows and that "
        "fits. Their memories are never added up."
        if isinstance(answer.question.workload, RunModel)
        else "One GPU of one machine, which must hold all of it. Memories of several GPUs are never added up."
    ),
    "max_split": lambda answer, value: f"Splits over at most {value} GPUs are looked at.",
    "term_days": lambda answer, value: f"A term of {value} days, where it is offered.",
    "lots": lambda answer, value: f"{counted(value, 'lot')} free at the same time.",
    "tier": lambda answer, value: f"{TIER_LABELS[value]}.",
    "countries": _countries,
    "countries_covered": lambda answer, value: f"{counted(value, 'country', 'countries')} allowed.",
    "unknown_location": lambda answer, value: (
        "A machine of unknown location does not count as inside."
        if value == "outside"
        else "Machines of unknown location are allowed, and say so."
    ),
    "budget_usd": lambda answer, value: (
        "No budget." if value is None else f"A budget of {usd(value)} for the whole order of one term."
    ),
    "max_hourly_usd": _hourly_maximum,
    "known_figures": lambda answer, value: "Nothing is assumed: a machine whose memory is unknown is never offered.",
    "available": lambda answer, value: (
        "Available now: on-line and in stock; a provider's list counts while its last refresh is younger than "
        f"{value // 60} minutes."
    ),
    "narrow_margin_percent": lambda answer, value: (
        f"A margin is narrow when less than {value} % of the GPU's memory stays free."
    ),
    "order": lambda answer, value: (
        "Cheapest package first; among equals more headroom, then Secure before Community, then the older listing."
    ),
    "max_recommended": lambda answer, value: (
        f"At most {value} machines are listed, cheapest package first; all are counted."
    ),
    "max_alternatives": lambda answer, value: f"At most {value} alternatives are listed, fewest misses first.",
    "policy_tiers": lambda answer, value: (
        f"Your organization's policy allows {', '.join(TIER_LABELS[tier] for tier in value) or 'no tier'}."
    ),
    "policy_max_order_usd": lambda answer, value: (
        f"Your organization's policy leaves at most {usd(value)} for this order."
    ),
    "policy_countries": lambda answer, value: (
        f"Your organization's policy allows only {places(value)}."
        if value
        else "Your organization's policy allows no country."
    ),
}


_TASK_TEXTS: dict[type, str] = {
    RunModel: "Run a language model.",
    Transcribe: "Run a speech recognition model.",
    FineTune: "Fine-tune a language model.",
    GenerateImages: "Generate images.",
    Notebook: "Open a notebook.",
}
_MARGIN_ON: dict[type, str] = {
    RunModel: "weights and KV cache",
    Transcribe: "weights and decoder cache",
    FineTune: "base weights, adapters and activations",
    GenerateImages: "the weights of all networks",
}


def _precision_constraint(answer: Answer, bits: int | None) -> str:
    if bits is None:
        return "Weights as the checkpoint stores them."
    if not isinstance(answer.question.workload, FineTune):
        return f"Weights at {bits} bits."
    return "A base of 4 bits (QLoRA: NormalFloat, double quantization)." if bits == 4 else f"A base of {bits} bits."


def places(codes: tuple[str, ...]) -> str:
    """Chosen countries by name: "EU (27 countries), United States"."""
    return ", ".join(wording.country(code) for code in codes)


def not_considered_text(left_out: NotConsidered, question: Question) -> str:
    """How many machines were left out, and for which one reason."""
    wished, workload = question.preferences, question.workload
    heads = f" ({counted(workload.model.attention_heads, 'attention head')})" if isinstance(workload, RunModel) else ""
    reason = {
        "outside_countries": "outside the countries you chose, or of unknown location",
        "outside_policy": "outside your organization's policy",
        "off_line": f"off-line, or not in a list refreshed within {FRESH_MINUTES} minutes",
        "out_of_stock": "out of stock" if wished.lots == 1 else f"with fewer than {wished.lots:,} lots free",
        "term_not_offered": f"not offered for {wished.term_days} days",
        "memory_unknown": "whose memory is not reported: nothing is assumed",
        "illegal_split": f"that would hold it only with a split that the model does not allow{heads}",
        "too_small": "too small",
    }[left_out.code]
    return f"{counted(left_out.count, 'machine')} {reason}."


def nearest_miss_text(nearest: NearestMiss) -> str:
    """The machine that lacks least, the need on each of its GPUs and by how much it fails."""
    machine, need = nearest.machine, nearest.estimate
    where = f"each of {need.gpus} GPUs" if need.gpus > 1 else "one GPU"
    return (
        f"{machine.name} comes nearest: {gib(need.per_gpu_bytes)} needed on {where}, "
        f"{counted_text(machine.gpu_memory_bytes or 0)} there, {gib(nearest.lacking_bytes)} too little."
    )


def change_text(change: Change) -> str:
    """One change to the question and what it gives."""
    value = change.value
    act = {
        "precision_bits": lambda: f"{value} bits instead",
        "context": lambda: f"A context of {counted(_int(value), 'token')}",
        "requests": lambda: f"{counted(_int(value), 'request')} at once",
        "sequence_length": lambda: f"A sequence length of {counted(_int(value), 'token')}",
        "batch_size": lambda: f"A batch size of {_int(value):,}",
        "rank": lambda: f"Rank {_int(value):,}",
        "streams": lambda: f"{counted(_int(value), 'audio stream')} at once",
        "lots": lambda: f"{counted(_int(value), 'lot')}",
        "term_days": lambda: f"A term of {value} days",
        "tier": lambda: f"Tier: {TIER_LABELS[str(value)]}",
        "budget_usd": lambda: f"A budget of {_usd_or(value, 'any amount')}",
        "max_hourly_usd": lambda: f"A maximum price per hour of {_hourly_or(value, 'any amount')}",
        "reserve_gib": lambda: "Without your own reserve",
        "countries": lambda: (
            f"Countries: {places(tuple(value)) if isinstance(value, (list, tuple)) and value else 'any'}"
        ),
    }.get(change.field, lambda: f"{change.field.replace('_', ' ')}: {value}")()
    price = "" if change.cheapest_package_usd is None else f", from {usd(change.cheapest_package_usd)} per lot"
    return f"{act}: {counted(change.machines, 'machine')}{price}."


def precision_text(alternative: PrecisionAlternative) -> str:
    """A lower precision and what it opens."""
    more = f", {counted(alternative.additional_machines, 'more machine')}" if alternative.additional_machines else ""
    trained = isinstance(alternative.estimate.workload, FineTune)
    method = " (QLoRA, NF4)" if trained and alternative.precision_bits == 4 else ""
    return (
        f"{alternative.precision_bits} bits{method}: {gib(alternative.estimate.total_bytes)}{more}, from "
        f"{usd(alternative.cheapest_package_usd)} per lot. Output quality can change: check it."
    )


def four_places(amount: Decimal) -> str:
    return f"{amount:.4f}"


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _usd_or(value: object, otherwise: str) -> str:
    return usd(value) if isinstance(value, Decimal) else otherwise


def _hourly_or(value: object, otherwise: str) -> str:
    return f"${four_places(value)}" if isinstance(value, Decimal) else otherwise
