"""Which term our figure lacks, or has too much of, by the facts that the entry states; else that it is not known.

A fact says what differs from our assumptions. That it explains the whole gap is not claimed.
"""

import re
from decimal import Decimal

from sizing.observed.compare import Reading, Verdict

LARGE_PERCENT = 25
LONG_PROMPT = 8192
NOT_KNOWN = "not known from the entry"

_STORAGE = {
    "awq": "scales and zero points of the quantization, and parts kept at 16 bits (embedding, output matrix)",
    "gptq": "scales and zero points of the quantization, and parts kept at 16 bits (embedding, output matrix)",
    "nf4": "constants of NF4 blocks, and parts kept at 16 bits (embedding, output matrix)",
    "nf4dq": "parts kept at 16 bits (embedding, output matrix)",
    "mxfp4": "a scale for every 32 values, and parts kept at 16 bits (attention, embedding, output matrix)",
    "fp8": "parts kept at 16 bits (embedding, output matrix)",
    "w8a8": "parts kept at 16 bits (embedding, output matrix)",
    "int8bnb": "parts kept at 16 bits (embedding, output matrix)",
    "q4_0": "a scale for every 32 values",
    "q8_0": "a scale for every 32 values",
}


def is_large(reading: Reading) -> bool:
    return abs(reading.error) * 100 > LARGE_PERCENT


def missing_terms(outcome: Reading | Verdict) -> list[str]:
    """The terms, one phrase each; never empty."""
    if isinstance(outcome, Verdict):
        found = _too_much(outcome) if outcome.fitted else _of_a_failure(outcome)
    elif outcome.observation.quantity in ("kv_cache", "kv_tokens"):
        found = _of_a_cache(outcome)
    else:
        found = _too_little(outcome) if outcome.error < 0 else _too_much(outcome)
    return found or [NOT_KNOWN]


def _of_a_cache(reading: Reading) -> list[str]:
    detail, found = reading.observation.detail, []
    if detail.get("kv_bytes", 2) != 2:
        found.append(f"a cache of {detail['kv_bytes'] * 8}-bit elements; ours is always 16-bit")
    if "mla_pad" in detail:
        found.append(f"the latent row is padded to {detail['mla_pad']} elements")
    return found


def _too_little(reading: Reading) -> list[str]:
    """What makes the reading larger than our figure."""
    observation, found = reading.observation, []
    if observation.task == "fine_tune":
        found += _of_training(reading)
    if observation.meter == "vllm-breakdown":
        found.append("activations of the server's profiling run, and memory outside torch, which no split divides")
    if observation.storage in _STORAGE:
        found.append(_STORAGE[observation.storage])
    transformers = observation.detail.get("hf") or "transformers" in observation.notes
    if observation.task == "run" and transformers and (observation.context or 0) >= LONG_PROMPT:
        found.append("activations of a long prompt taken in one pass (prefill)")
    if observation.task == "speech":
        found += _of_speech(reading)
    return found


def _of_training(outcome: Reading | Verdict) -> list[str]:
    observation, found = outcome.observation, []
    if observation.detail.get("gc") is False:
        found.append("activations of every layer: gradient checkpointing was off, we assume it on")
    if "eager attention" in observation.notes:
        found.append("the attention matrix: attention was eager, we assume it fused")
    if "LLM.int8" in observation.notes:
        found.append("what LLM.int8 keeps besides 8-bit weights (16-bit outliers and parts)")
    if observation.meter == "capacity":
        found.append("the figure is the capacity of a card, not a reading")
    return found


def _of_speech(reading: Reading) -> list[str]:
    observation, found = reading.observation, []
    if str(observation.detail.get("impl", "")).startswith("openai/whisper"):
        found.append("the reference implementation, which keeps its weights at 32 bits")
    if "beam" in observation.notes:
        found.append("a cache for every beam; ours is for one")
    if "display" in observation.notes:
        found.append("a display on the same card")
    if observation.meter == "vendor":
        found.append("an approximate requirement, not a reading")
    return found


def _too_much(outcome: Reading | Verdict) -> list[str]:
    """What makes our figure larger than the reading, or larger than a GPU in which it did fit."""
    observation, found = outcome.observation, []
    if observation.detail.get("chunked"):
        found.append("the loss in pieces (chunked cross-entropy); we count the logits of all tokens at once")
    encoders = observation.detail.get("te", observation.precision_bits)
    if encoders != observation.precision_bits:
        found.append(f"text encoders at {encoders} bits; ours are at {observation.precision_bits}")
    if isinstance(outcome, Reading):
        without = outcome.error_without_margin
        if without is not None and abs(without) * 100 <= LARGE_PERCENT:
            found.append("work memory smaller than the margin of 20 %")
    elif outcome.need * 10 <= outcome.memory.bytes * 12:
        found.append("work memory smaller than the margin of 20 %")
    return found


def _of_a_failure(verdict: Verdict) -> list[str]:
    """What made it fail where we say that it fits."""
    observation, found = verdict.observation, []
    if observation.task == "fine_tune":
        found += _of_training(verdict)
    if share := re.search(r"util (\d\.\d+)", observation.notes):
        allowed = Decimal(share[1]) * verdict.memory.bytes
        short = "less than our need" if allowed < verdict.need else "still more than our need"
        found.append(f"the server may use only {share[1]} of the memory, {short}")
    if observation.storage in _STORAGE:
        found.append(_STORAGE[observation.storage])
    transformers = observation.detail.get("hf") or "transformers" in observation.notes
    if observation.task == "run" and transformers and (observation.context or 0) >= LONG_PROMPT:
        found.append("activations of a long prompt taken in one pass (prefill)")
    return found
