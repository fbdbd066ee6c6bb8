"""One answer as its page shows it: every figure with its unit, every machine with its links, nothing left to compute.

The words are `sizing/explain`'s; here they are laid out, and every change becomes the address of its answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from catalog import countries
from catalog.models import Machine, MemoryUnit
from catalog.units import GIB, figure, to_gib
from sizing import explain
from sizing.answers import Answer, Candidate, Change, PrecisionAlternative
from sizing.bars import MemoryBar, Size, fill_of, memory_bar, pattern_of
from sizing.empty_result import Empty, why_empty
from sizing.engine.estimate import MemoryEstimate
from sizing.engine.workloads import FineTune, GenerateImages, Notebook, RunModel, Transcribe, precision_of
from sizing.explain.words import counted, gib, usd
from sizing.machine_rows import Row, machine_row
from sizing.permalinks import canonical_query, changed

SHOWN_AT_FIRST = 12


@dataclass(frozen=True)
class Line:
    """One line of the memory table."""

    code: str
    label: str
    formula: str
    gib: str
    what: str
    fill: str
    pattern: str


@dataclass(frozen=True)
class Offer:
    """One change to the question, in words, with the query of its answer."""

    text: str
    query: str


class Result:
    """An answer laid out for its page. `show_all` lists every recommended machine instead of the first ones."""

    def __init__(self, answer: Answer, review_url: str, *, show_all: bool = False) -> None:
        self.answer, self.review_url = answer, review_url
        self.question, self.preferences = answer.question, answer.question.preferences
        self.workload, self.ai_model = answer.question.workload, answer.question.ai_model
        shown = answer.recommended if show_all else answer.recommended[:SHOWN_AT_FIRST]
        self.rows = self._rows(shown)
        others = answer.machine_alternatives if show_all else answer.machine_alternatives[: SHOWN_AT_FIRST // 2]
        self.alternatives = self._rows(others)
        self.more = len(answer.recommended) - len(shown)
        self.more_alternatives = len(answer.machine_alternatives) - len(others)

    # --- Headline -------------------------------------------------------------------------------------------------

    @property
    def total(self) -> str:
        return gib(self.answer.estimate.total_bytes)

    @property
    def total_gib(self) -> str:
        return figure(self.answer.estimate.total_bytes)

    @property
    def first_rows(self) -> tuple[Row, ...]:
        return self.rows[:3]

    @property
    def split(self) -> MemoryEstimate | None:
        """The split over several GPUs that the cheapest machine, or else the nearest miss, would use."""
        cheapest = self.answer.recommended[0].estimate if self.answer.recommended else None
        nearest = self.answer.nearest_miss.estimate if self.answer.nearest_miss else None
        used = cheapest or nearest
        return used if used and used.gpus > 1 else None

    @property
    def each(self) -> str:
        """The need on each GPU of the split: "80.60 GiB on each of 2 GPUs"."""
        return f"{gib(self.split.per_gpu_bytes)} on each of {self.split.gpus} GPUs" if self.split else ""

    @property
    def title(self) -> str:
        """What the page is called: "19.55 GiB for Llama 3.1 8B"."""
        return f"{self.total} for {self.ai_model.name if self.ai_model else 'a notebook'}"

    @property
    def step_two(self) -> str:
        """What can be changed in the wizard's second step."""
        return _STEP_TWO[type(self.workload)]

    @property
    def advice(self) -> str:
        """What to set the length to, where there is one."""
        return _ADVICE.get(type(self.workload), "")

    @property
    def one_gpu_only(self) -> bool:
        return not isinstance(self.workload, RunModel)

    @property
    def has_precision(self) -> bool:
        return precision_of(self.workload) is not None

    @property
    def workload_words(self) -> str:
        return explain.workload_words(self.workload)

    @property
    def machines_fit(self) -> str:
        count = self.answer.recommended_count
        return f"{counted(count, 'machine')} {'fits' if count == 1 else 'fit'}" if count else "No machine fits"

    @property
    def term(self) -> str:
        lots = f"{self.preferences.lots:,} lots, " if self.preferences.lots > 1 else ""
        return f"{lots}{self.preferences.term_days} days"

    @property
    def cheapest(self) -> str:
        """The order total of the cheapest machine: "$110.00"; empty when there is none."""
        return usd(self.answer.recommended[0].order_total_usd) if self.answer.recommended else ""

    @property
    def sentence(self) -> str:
        """The whole result in one sentence, for the wizard's live line."""
        price = f", from {self.cheapest} for {self.term}" if self.cheapest else " all your conditions"
        return f"{self.each or self.total} needed, {self.machines_fit[0].lower()}{self.machines_fit[1:]}{price}."

    # --- Memory ---------------------------------------------------------------------------------------------------

    @cached_property
    def _listed(self) -> list[Machine]:
        """One machine for each memory figure that may be named: inside the countries and the caller's limits."""
        machines = Machine.objects.available(now=self.answer.now).filter(gpu_memory_bytes__isnull=False)
        for codes in (self.preferences.countries, self.answer.limits.countries):
            if codes:
                machines = machines.in_countries(countries.expand(codes))
        if self.answer.limits.tiers is not None:
            machines = machines.filter(tier__in=self.answer.limits.tiers)
        figures = machines.order_by("gpu_memory_bytes").values_list("gpu_memory_bytes", "memory_unit").distinct()
        return [Machine(gpu_memory_bytes=size_bytes, memory_unit=unit) for size_bytes, unit in figures]

    @cached_property
    def bars(self) -> tuple[MemoryBar, ...]:
        """One GPU's bar; and, where the model is split, that of each of the GPUs used."""
        sizes = [Size(machine.gpu_memory_bytes or 0, size_label(machine)) for machine in self._listed]
        needs = [need for need in (self.answer.estimate, self.split) if need]
        return tuple(memory_bar(need, explain.labels(need), sizes) for need in needs)

    @property
    def lines(self) -> list[Line]:
        need = self.answer.estimate
        return [
            Line(
                term.code,
                explain.label(term.code),
                explain.formula(term),
                figure(need.line_bytes(term)),
                explain.what_is_this(term.code),
                fill_of(place),
                pattern_of(place),
            )
            for place, term in enumerate(need.terms)
        ]

    @property
    def exact_total(self) -> str:
        size_bytes = self.answer.estimate.total_bytes
        return f"{size_bytes:,} bytes = {(Decimal(size_bytes) / GIB).quantize(Decimal('0.0001')):,} GiB"

    @property
    def rounding_note(self) -> str | None:
        return explain.rounding_note(self.answer.estimate)

    @property
    def rounding_notes(self) -> str:
        """The one box on rounding: of the lines, of the other figures, or of both with each fact once."""
        if self.rounding_note and self.figures_note:
            return f"{self.rounding_note} {explain.FIGURES_TOO}"
        return self.rounding_note or self.figures_note

    @property
    def first_rows_note(self) -> str:
        """The same for a page that shows the first rows alone."""
        return "" if all(map(explain.headroom_adds_up, self.answer.recommended[:3])) else explain.FIGURES_NOTE

    @property
    def figures_note(self) -> str:
        """The sentence for a page on which some printed sum or difference is off by its rounding; else empty."""
        shown = [*self.answer.recommended, *self.answer.machine_alternatives]
        nearest = self.answer.nearest_miss
        printed = all(map(explain.adds_up, self.answer.splits)) and all(map(explain.headroom_adds_up, shown))
        if nearest is not None:
            lacking = to_gib(nearest.estimate.per_gpu_bytes) - to_gib(nearest.machine.gpu_memory_bytes or 0)
            printed = printed and lacking == to_gib(nearest.lacking_bytes)
        return "" if printed else explain.FIGURES_NOTE

    @property
    def reading_decides(self) -> str:
        """Whether the verdict on a GPU of this size hangs on reading its figure as GB or GiB."""
        sizes = [
            int(machine.memory_figure or 0) for machine in self._listed if machine.memory_unit == MemoryUnit.GB.value
        ]
        need = (self.split or self.answer.estimate).per_gpu_bytes
        return explain.reading_decides(need, sizes)

    @property
    def assumptions(self) -> list[str]:
        return explain.assumptions(self.ai_model, self.answer.estimate)

    @property
    def sources(self) -> list[tuple[str, str]]:
        return explain.sources(self.ai_model, self.workload)

    @property
    def sensitivity(self) -> str:
        return explain.sensitivity(self.workload)

    @property
    def split_labels(self) -> list[str]:
        return [explain.label(term.code) for term in self.answer.estimate.terms]

    @property
    def splits(self) -> list[tuple[int, list[str], str]]:
        """Every legal split: GPUs, the lines of each GPU, and its need."""
        return [
            (split.gpus, [gib(term.bytes) for term in split.terms], gib(split.per_gpu_bytes))
            for split in self.answer.splits
        ]

    # --- Machines -------------------------------------------------------------------------------------------------

    def _rows(self, candidates: Iterable[Candidate]) -> tuple[Row, ...]:
        return tuple(machine_row(candidate, self.question, self.answer.now) for candidate in candidates)

    @property
    def precisions(self) -> list[Offer]:
        return [self._precision(alternative) for alternative in self.answer.precision_alternatives]

    def _precision(self, alternative: PrecisionAlternative) -> Offer:
        question = changed(self.question, "precision_bits", alternative.precision_bits)
        return Offer(explain.precision_text(alternative), canonical_query(question))

    # --- When nothing is recommended ------------------------------------------------------------------------------

    @property
    def empty(self) -> Empty | None:
        return why_empty(self)

    @property
    def nearest(self) -> str:
        return explain.nearest_miss_text(self.answer.nearest_miss) if self.answer.nearest_miss else ""

    @property
    def changes(self) -> list[Offer]:
        return [self._change(change) for change in self.answer.changes]

    def _change(self, change: Change) -> Offer:
        question = changed(self.question, change.field, change.value)
        return Offer(explain.change_text(change), canonical_query(question))

    @property
    def shorter_is_no_help(self) -> str:
        """What does not help alone: a length, tried down to one token, that still opens no machine. Else empty."""
        field, words = _LENGTHS.get(type(self.workload), ("", ""))
        if not field or self.answer.empty != "nothing_holds_it" or getattr(self.workload, field) == 1:
            return ""
        return "" if any(change.field == field for change in self.answer.changes) else words

    @property
    def stale(self) -> str:
        stale = self.answer.stale
        if stale is None:
            return ""
        last = f"last refreshed {stale.refreshed_at:%Y-%m-%d %H:%M} UTC" if stale.refreshed_at else "never refreshed"
        are = "is" if stale.machines == 1 else "are"
        return f"{counted(stale.machines, 'machine')} {are} left out because the provider's list is too old ({last})."

    # --- What was taken into account ------------------------------------------------------------------------------

    @property
    def not_considered(self) -> list[str]:
        return [explain.not_considered_text(left_out, self.question) for left_out in self.answer.not_considered]

    @property
    def not_considered_count(self) -> int:
        return sum(left_out.count for left_out in self.answer.not_considered)

    @property
    def constraints(self) -> list[str]:
        return [constraint.text for constraint in explain.constraints(self.answer)]

    @property
    def limits_of_every_answer(self) -> tuple[explain.Sentence, ...]:
        return explain.LIMITS_OF_EVERY_ANSWER + explain.task_limits(self.workload)


def size_label(machine: Machine) -> str:
    """A GPU's memory as stated and as counted: "24 GB = 22.35 GiB"."""
    counted_gib = gib(machine.gpu_memory_bytes or 0)
    if machine.memory_unit == MemoryUnit.GIB.value:
        return counted_gib
    return f"{(machine.memory_figure or Decimal(0)).normalize():,f} {machine.memory_unit} = {counted_gib}"


_STEP_TWO: dict[type, str] = {
    RunModel: "the model, precision or context",
    Transcribe: "the model, precision or audio streams",
    FineTune: "the model, precision, sequence length or adapters",
    GenerateImages: "the pipeline",
    Notebook: "the GPU memory you need",
}
_ADVICE: dict[type, str] = {
    RunModel: "Set the context to what your requests really use.",
    FineTune: "Set the sequence length to that of your longest example.",
}
_LENGTHS: dict[type, tuple[str, str]] = {
    RunModel: ("context", "A shorter context"),
    FineTune: ("sequence_length", "A shorter sequence length"),
}
