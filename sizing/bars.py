"""The stacked memory bar as numbers: where each part of an estimate starts and ends, and which GPU sizes to mark.

A bar is always one GPU's memory; memories of several GPUs are never put end to end. Positions are percent of the bar
with two decimals, so that text keeps its size on every screen; the table beside it has the same figures.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from catalog.units import figure
from sizing.engine.estimate import MemoryEstimate

# Lines take fills in turn, by their place: neighbours always stand out, however many networks a pipeline has. Patterns,
# drawn in templates/_shared/_membar_patterns.html, are more than fills, so that lines with one fill differ too.
FILLS = "abcdef"
TURNS = ("", "seg-dots", "seg-diagonal", "seg-rows", "seg-cross", "seg-columns", "seg-grid", "seg-rings")
PATTERNS = {"kv_cache": "seg-dots", "margin": "seg-diagonal", "runtime": "seg-rows", "reserve": "seg-cross"}
MARKS = 3
APART_PERCENT = 8
INSIDE_FROM_PERCENT = 55
# Pixels below the bar's own 48, where the marks' labels stand one under the other.
TICKS_FROM = 50
ROW_HEIGHT = 20


@dataclass(frozen=True)
class Size:
    """A GPU size of the catalog. Units: `memory_bytes` per GPU; `label` says the figure as stated and as counted."""

    memory_bytes: int
    label: str


@dataclass(frozen=True)
class Segment:
    """One line of the estimate, in percent of the bar. `inside`: it is wide enough to carry its own label.

    `code` names the line; `fill` the class of its fill, `seg-<fill>`.
    """

    code: str
    label: str
    gib: str
    x: str
    width: str
    fill: str
    pattern: str
    inside: bool


@dataclass(frozen=True)
class Tick:
    """A GPU size. `row` counts down from the bar, so that no two labels meet; `anchor` keeps the label inside."""

    label: str
    x: str
    holds: bool
    row: int
    anchor: str

    @property
    def line_from(self) -> int:
        """Where the line goes on beside its own label; it stops between, where labels of other sizes stand."""
        return TICKS_FROM + self.row * ROW_HEIGHT

    @property
    def line_end(self) -> int:
        return TICKS_FROM + self.row * ROW_HEIGHT + ROW_HEIGHT // 2

    @property
    def text_y(self) -> int:
        return TICKS_FROM + self.row * ROW_HEIGHT + 14


@dataclass(frozen=True)
class MemoryBar:
    gpus: int
    total_gib: str
    segments: tuple[Segment, ...]
    free: Segment | None
    ticks: tuple[Tick, ...]

    @property
    def title(self) -> str:
        each = f"on each of {self.gpus} GPUs" if self.gpus > 1 else "on one GPU"
        return f"GPU memory needed {each}: {self.total_gib} GiB"

    @property
    def description(self) -> str:
        parts = ", ".join(f"{segment.label} {segment.gib} GiB" for segment in self.segments)
        marks = "; ".join(f"{tick.label} {'holds it' if tick.holds else 'is too small'}" for tick in self.ticks)
        return f"{parts}. {marks}." if marks else f"{parts}."


def memory_bar(estimate: MemoryEstimate, labels: Mapping[str, str], sizes: Iterable[Size] = ()) -> MemoryBar:
    """The bar of one GPU of `estimate`, with the GPU sizes next to the need: one too small, two that hold it."""
    need = estimate.per_gpu_bytes
    marked = _next_to(need, sizes)
    scale = max([need, *(size.memory_bytes for size in marked)]) * 102 // 100
    segments, start = [], 0
    for place, term in enumerate(estimate.terms):
        part = segment(term.code, labels[term.code], start, term.bytes, scale)
        segments.append(replace(part, fill=fill_of(place), pattern=pattern_of(place)))
        start += term.bytes
    holding = [size.memory_bytes for size in marked if size.memory_bytes > need]
    free = segment("free", "Free", need, holding[0] - need, scale) if holding else None
    ticks = tuple(
        Tick(
            label=size.label,
            x=_percent(size.memory_bytes, scale),
            holds=size.memory_bytes >= need,
            row=len(marked) - 1 - number,
            anchor="start" if size.memory_bytes * 2 < scale else "end",
        )
        for number, size in enumerate(marked)
    )
    return MemoryBar(estimate.gpus, figure(need), tuple(segments), free, ticks)


def fill_of(place: int) -> str:
    """The fill of the line at this place of an estimate, from 0."""
    return FILLS[place % len(FILLS)]


def pattern_of(place: int) -> str:
    """The pattern over that fill; the first line has none."""
    return TURNS[place % len(TURNS)]


def _next_to(need: int, sizes: Iterable[Size]) -> list[Size]:
    """The greatest size below the need and the least ones from it on, smallest first.

    Sizes that a reader cannot tell apart on the bar, such as 24 GB read by two drivers, are marked once.
    """
    distinct = sorted({size.memory_bytes: size for size in sizes}.values(), key=lambda size: size.memory_bytes)
    marked = [size for size in distinct if size.memory_bytes < need][-1:]
    for size in distinct:
        told_apart = not marked or marked[-1].memory_bytes < need or _apart(marked[-1], size)
        if size.memory_bytes >= need and told_apart and len(marked) < MARKS:
            marked.append(size)
    return marked


def _apart(smaller: Size, larger: Size) -> bool:
    return larger.memory_bytes * 100 >= smaller.memory_bytes * (100 + APART_PERCENT)


def segment(code: str, label: str, start: int, length: int, scale: int) -> Segment:
    """A part of a bar from `start` on, all in the unit of `scale`, which is the whole bar."""
    return Segment(
        code=code,
        label=label,
        gib=figure(length),
        x=_percent(start, scale),
        width=_percent(length, scale),
        fill=code,
        pattern=PATTERNS.get(code, ""),
        inside=length * 100 >= scale * INSIDE_FROM_PERCENT,
    )


def _percent(part: int, whole: int) -> str:
    hundredths = part * 10_000 // whole
    return f"{hundredths // 100}.{hundredths % 100:02d}"
