"""The calculator in words, for its pages and its API alike. `formula`s print the numbers that are computed with."""

from catalog.units import GIB
from sizing.engine.envelope import ESTIMATED, MEASURED, UNKNOWN, Envelope, ReserveEntry
from sizing.engine.stages import KEPT, STEP, Chain, Stage, Step
from sizing.explain.formulas import to_million
from sizing.explain.machines import Sentence
from sizing.explain.words import counted, gib

WEIGHTS_ONLY = "Weights only"
INDICATIVE_ENVELOPE = "Indicative envelope"
RESIDENT = "Everything resident"
STEP_BY_STEP = "Step by step"
TO_CONFIRM = "To confirm"

FORMATS = {32: "32 bits", 16: "16 bits", 8: "8 bits", 4: "4 bits (theoretical)"}
STATES = {ESTIMATED: "Estimated", MEASURED: "Measured", UNKNOWN: "Still unknown"}
LOADS = {KEPT: "Stays loaded", STEP: "Loaded for its step alone"}
PURPOSES = {"inference": "Inference", "training": "Training or adaptation"}
_BYTES_PER_PARAMETER = {32: "4 bytes", 16: "2 bytes", 8: "1 byte", 4: "0.5 bytes"}

# --- Weights and envelope -----------------------------------------------------------------------------------------

LEFT_OUT = (
    Sentence(
        "quantization_metadata",
        "Quantization metadata. Real 4-bit files carry scales and other data: the 4-bit row is theoretical.",
    ),
    Sentence("other_formats", "Modules kept in another format, such as embeddings or norms at 16 bits."),
    Sentence("work_memory", "Work memory: activations, workspaces of kernels, captured graphs, fragmentation."),
    Sentence("transient_loading", "Transient loading: a checkpoint can take more while it is read than afterwards."),
    Sentence("other_processes", "Uses outside the process: the CUDA context of others, a display, another job."),
)
NOTES = (
    Sentence(
        "conservative",
        "Entries need not peak together, so their sum is a conservative envelope and no observed peak. Peaks of "
        "allocated and of reserved memory are never added to each other.",
    ),
    Sentence(
        "no_multiplier",
        "Nothing is hidden in it: no margin, no runtime and no multiplier for training, only the lines above.",
    ),
    Sentence(
        "can_still_fail",
        "An envelope below a GPU's size can still fail: an entry left out, GB read as GiB, a transient peak, another "
        "process, another input.",
    ),
    Sentence(
        "invalidated_by",
        "It no longer holds with another model or revision, a longer context, more requests at once or a larger "
        "microbatch, another format or library version, or another evaluation.",
    ),
)
CANDIDATE_NOTE = (
    "Candidates to examine, no guarantee and no ranking by speed. Context, requests at once, memory really free, "
    "compatibility and quality stay to be verified."
)
CACHE, ACTIVATIONS, OPTIMIZER, PHASES = "generation_cache", "activations", "gradients_optimizer", "phases"
ENTRY_NAMES = {
    CACHE: "Generation cache",
    ACTIVATIONS: "Activations",
    OPTIMIZER: "Gradients and optimizer",
    PHASES: "Loading, validation and export",
}
ENTRY_TEXTS = {
    CACHE: "Write down KV heads, layers, tokens, sequences and format. Calculate it, then measure.",
    ACTIVATIONS: "Write down microbatch, length, architecture and checkpointing. Measure the peak on these inputs.",
    OPTIMIZER: "Write down trained parameters, formats and method. Check it at the first complete update.",
    PHASES: "Write down the procedure and the sizes of its outputs. Check each phase by itself.",
}
_TO_DOCUMENT = {
    "inference": (CACHE, ACTIVATIONS, PHASES),
    "training": (ACTIVATIONS, OPTIMIZER, PHASES, CACHE),
}


def to_document(purpose: str) -> list[tuple[str, str, str]]:
    """The entries that this purpose usually has, as code, name and what to write down; none is added to a sum."""
    return [(code, ENTRY_NAMES[code], ENTRY_TEXTS[code]) for code in _TO_DOCUMENT[purpose]]


def weights_formula(envelope: Envelope) -> str:
    """Parameters times bytes, as computed: "7,000,000,000 parameters (7,000 million) × 2 bytes"."""
    number = envelope.parameters
    million = f" ({to_million(number):,} million)" if number >= 10**6 else ""
    return f"{counted(number, 'parameter')}{million} × {_BYTES_PER_PARAMETER[envelope.bits]}"


def entry_formula(entry: ReserveEntry) -> str:
    """Where the entry's figure comes from; one without a figure says so."""
    if entry.bytes is None:
        return "Still unknown: no figure, not counted"
    return f"{given_gib(entry.bytes)} × {GIB:,} bytes"


def envelope_formula(envelope: Envelope) -> str:
    """The sum in exact bytes: "14,000,000,000 bytes + 6,442,450,944 bytes"."""
    figures = [envelope.weights_bytes, *(entry.bytes or 0 for entry in envelope.known)]
    return " + ".join(counted(figure, "byte") for figure in figures)


def incomplete(envelope: Envelope) -> str | None:
    """The sentence for an envelope with entries that are still unknown; else None."""
    if envelope.is_complete:
        return None
    number = len(envelope.unknown)
    names = ", ".join(entry.name for entry in envelope.unknown)
    return (
        f"Incomplete: {counted(number, 'entry', 'entries')} {'is' if number == 1 else 'are'} still unknown ({names}) "
        "and not counted. The need is larger than this figure by what is missing."
    )


def candidates_text(count: int, listed: int, term_days: int) -> str:
    """Which GPUs are candidates, in which order, and how many of them are shown."""
    more = f" The {listed} cheapest are listed." if listed < count else ""
    return (
        f"{counted(count, 'GPU product')} of machines available now, whose counted memory of one GPU holds the "
        f"envelope. Cheapest package for {term_days} days first.{more}"
    )


# --- Stages -------------------------------------------------------------------------------------------------------

STAGE_ASSUMPTIONS = (
    Sentence(
        "one_after_another",
        "Stages run one after another, never two at once, so one working memory is in use at a time.",
    ),
    Sentence("freed", "A stage loaded for its step alone is out of GPU memory, all of it, before the next one starts."),
    Sentence(
        "nothing_added",
        "Nothing is added: no margin, no CUDA runtime. Where you want one counted, enter it as a stage of its own "
        "that stays loaded.",
    ),
    Sentence("own_figures", "Weights and working memory are your figures; nothing about them is checked."),
)
STAGE_REMARKS = (
    Sentence(
        "reload_latency", "Reloading can change latency: every run then waits for the stages that were not resident."
    ),
    Sentence(
        "own_peaks",
        "Each step can have a peak of its own. Test several resolutions and numbers of images with the length of the "
        "output fixed.",
    ),
    Sentence(
        "larger_gpu",
        "A larger GPU can hold several components at once, or a larger batch where the smaller one is full.",
    ),
    Sentence(
        "quality",
        "Fewer or smaller images, or weights in another format, can make a chain fit, and can change its output: "
        "check the quality.",
    ),
)


def stage_formula(figure_bytes: int) -> str:
    """A stated figure in bytes: "2.50 GiB × 1,073,741,824 bytes"."""
    return f"{given_gib(figure_bytes)} × {GIB:,} bytes"


def resident_formula(chain: Chain) -> str:
    """All weights and the largest working memory, each with its name."""
    parts = [_part(stage.weights_bytes, stage.name) for stage in chain.stages]
    return " + ".join([*parts, _working(chain.most_working)])


def step_formula(step: Step) -> str:
    """What is loaded while the stage runs, each with its name."""
    parts = [_part(stage.weights_bytes, stage.name) for stage in step.kept]
    if not step.stage.is_kept:
        parts.append(_part(step.stage.weights_bytes, step.stage.name))
    return " + ".join([*parts, _working(step.stage)])


def difference(chain: Chain) -> str:
    """What step-by-step loading saves, and which step decides."""
    saved, name = chain.resident_bytes - chain.stepwise_bytes, chain.largest_step.stage.name
    if not saved:
        return f"Loading step by step saves nothing here: the step “{name}” needs as much as everything resident."
    return f"Loading step by step needs {gib(saved)} less. The step “{name}” is the largest and decides."


def _part(size_bytes: int, name: str) -> str:
    return f"{counted(size_bytes, 'byte')} ({name})"


def _working(stage: Stage) -> str:
    return f"{counted(stage.working_bytes, 'byte')} of working memory ({stage.name})"


def given_gib(size_bytes: int) -> str:
    """A figure that was stated in GiB, as it was stated: at least whole, at most two decimals."""
    hundredths = size_bytes * 100 // GIB
    whole, rest = divmod(hundredths, 100)
    return f"{whole:,}.{rest:02d} GiB" if rest else f"{whole:,} GiB"
