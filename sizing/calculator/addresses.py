"""One address for one question of the calculator, and the API request that asks the same."""

from collections.abc import Iterable
from typing import Any

from catalog.units import to_gib
from sizing.calculator.forms import EnvelopeQuestion, plain
from sizing.engine.stages import KEPT, STEP, Chain

Pairs = list[tuple[str, str]]

# The examples that the empty pages link to.
EXAMPLE: Pairs = [
    ("parameters", "7"), ("parameter_unit", "billions"), ("bits", "16"), ("purpose", "inference"),
    ("reserve_1_name", "Cache, activations and runtime"), ("reserve_1_gib", "6"),
    ("reserve_1_reason", "an example, to be replaced by your own entries"), ("reserve_1_state", "estimated"),
]  # fmt: skip
STAGES_EXAMPLE = [
    ("Encode images", "1.5", "2", STEP),
    ("Prepare context", "0.5", "0.5", KEPT),
    ("Generate the answer", "14.5", "4", STEP),
]


def envelope_pairs(question: EnvelopeQuestion) -> Pairs:
    """The question as names and values in the order of its address."""
    envelope = question.envelope
    pairs = [
        ("parameters", question.typed),
        ("parameter_unit", question.unit),
        ("bits", str(envelope.bits)),
        ("purpose", question.purpose),
    ]
    for number, entry in enumerate(envelope.entries, 1):
        figure = [] if entry.bytes is None else [(f"reserve_{number}_gib", given(entry.bytes))]
        pairs += [
            (f"reserve_{number}_name", entry.name),
            *figure,
            (f"reserve_{number}_reason", entry.reason),
            (f"reserve_{number}_state", entry.state),
        ]
    return pairs


def envelope_request(question: EnvelopeQuestion) -> dict[str, Any]:
    """The body of the API request that asks this very question."""
    envelope = question.envelope
    reserve = [
        {
            "name": entry.name,
            "gib": None if entry.bytes is None else given(entry.bytes),
            "reason": entry.reason,
            "state": entry.state,
        }
        for entry in envelope.entries
    ]
    return {
        "parameters": envelope.parameters,
        "bits": envelope.bits,
        "purpose": question.purpose,
        "reserve": reserve,
    }


def chain_pairs(chain: Chain) -> Pairs:
    """The chain as names and values in the order of its address."""
    return stage_pairs((stage["name"], stage["weights_gib"], stage["working_memory_gib"], stage["load"])
                       for stage in chain_request(chain)["stages"])  # fmt: skip


def chain_request(chain: Chain) -> dict[str, Any]:
    """The body of the API request that asks for this very chain."""
    return {
        "stages": [
            {
                "name": stage.name,
                "weights_gib": given(stage.weights_bytes),
                "working_memory_gib": given(stage.working_bytes),
                "load": stage.load,
            }
            for stage in chain.stages
        ]
    }


def stage_pairs(stages: Iterable[tuple[str, str, str, str]]) -> Pairs:
    """Stages as name, weights, working memory and loading, numbered from 1."""
    names = ("name", "weights_gib", "working_memory_gib", "load")
    return [
        (f"stage_{number}_{name}", value)
        for number, values in enumerate(stages, 1)
        for name, value in zip(names, values, strict=True)
    ]


def given(size_bytes: int) -> str:
    """A figure as it was given: GiB with the decimals it has, at most two."""
    return plain(to_gib(size_bytes))


def changed(pairs: Pairs, name: str, value: str) -> Pairs:
    """The question with one of its values changed."""
    return [(one, value if one == name else given) for one, given in pairs]
