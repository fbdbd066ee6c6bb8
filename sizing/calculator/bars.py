"""The calculator's bars, in percent of the largest of those shown together, so that they can be compared by eye."""

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.units import to_gib
from sizing.bars import Segment, segment
from sizing.calculator.words import INDICATIVE_ENVELOPE, RESIDENT, STEP_BY_STEP
from sizing.engine.envelope import Envelope
from sizing.engine.stages import Chain

# Fills for entries, in turn; neighbours differ in colour and pattern.
_FILLS = ("kv_cache", "margin", "runtime", "reserve")


@dataclass(frozen=True)
class Bar:
    """One bar. `name` is unique on its page."""

    name: str
    label: str
    total_gib: str
    segments: tuple[Segment, ...]

    @property
    def title(self) -> str:
        return f"{self.label}: {self.total_gib} GiB on one GPU"

    @property
    def description(self) -> str:
        return ", ".join(f"{part.label} {part.gib} GiB" for part in self.segments) + "."


def envelope_bar(envelope: Envelope) -> Bar:
    """Weights and every entry that has a figure."""
    parts = [("weights", "Weights only", envelope.weights_bytes)]
    parts += [
        (_FILLS[number % len(_FILLS)], entry.name, entry.bytes or 0) for number, entry in enumerate(envelope.known)
    ]
    return _bar("envelope", INDICATIVE_ENVELOPE, parts, envelope.total_bytes)


def chain_bars(chain: Chain) -> tuple[Bar, Bar]:
    """Everything resident above step by step, on one scale."""
    step = chain.largest_step
    kept, working = step.kept_bytes, chain.most_working
    resident = [
        ("weights", "Kept weights", kept),
        ("kv_cache", "Weights of the other stages", chain.weights_bytes - kept),
        ("margin", f"Working memory of {working.name}", working.working_bytes),
    ]
    largest = [
        ("weights", "Kept weights", kept),
        ("kv_cache", f"Weights of {step.stage.name}", step.own_weights_bytes),
        ("margin", f"Working memory of {step.stage.name}", step.stage.working_bytes),
    ]
    scale = chain.resident_bytes
    return _bar("resident", RESIDENT, resident, scale), _bar("step-by-step", STEP_BY_STEP, largest, scale)


def _bar(name: str, label: str, parts: Iterable[tuple[str, str, int]], scale: int) -> Bar:
    segments, start = [], 0
    for code, words, size in parts:
        if size:
            segments.append(segment(code, words, start, size, scale))
            start += size
    return Bar(name, label, f"{to_gib(start):,}", tuple(segments))
