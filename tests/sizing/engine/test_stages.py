"""A chain of stages: step by step never needs more than everything at once, and the largest step decides."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.engine.errors import InvalidWorkload
from sizing.engine.stages import Chain, Stage

sizes = st.integers(0, 10**15)
stages = st.builds(Stage, st.sampled_from("abc"), sizes, sizes, st.sampled_from(["kept", "step"]))
chains = st.builds(Chain, st.lists(stages, min_size=1, max_size=20).map(tuple))

EXAMPLE = Chain(
    (
        Stage("Preprocess", 0, 1, "kept"),
        Stage("Encode images", 10, 4, "step"),
        Stage("Prepare context", 2, 2, "kept"),
        Stage("Generate", 20, 8, "step"),
    )
)


def test_a_chain_of_four_stages_adds_up_as_by_hand() -> None:
    assert EXAMPLE.resident_bytes == (0 + 10 + 2 + 20) + 8
    assert [step.total_bytes for step in EXAMPLE.steps] == [2 + 1, 2 + 10 + 4, 2 + 2, 2 + 20 + 8]
    assert (EXAMPLE.stepwise_bytes, EXAMPLE.largest_step.stage.name) == (30, "Generate")


@given(chains)
def test_step_by_step_never_needs_more_than_everything_at_once(chain: Chain) -> None:
    assert chain.stepwise_bytes <= chain.resident_bytes


@given(chains, st.randoms())
def test_the_order_of_stages_changes_no_figure(chain: Chain, random: Any) -> None:
    shuffled = list(chain.stages)
    random.shuffle(shuffled)
    again = Chain(tuple(shuffled))
    assert (again.resident_bytes, again.stepwise_bytes) == (chain.resident_bytes, chain.stepwise_bytes)


@given(chains)
def test_when_everything_is_kept_both_ways_need_the_same(chain: Chain) -> None:
    kept = Chain(tuple(Stage(stage.name, stage.weights_bytes, stage.working_bytes) for stage in chain.stages))
    assert kept.stepwise_bytes == kept.resident_bytes == chain.resident_bytes


@given(chains)
def test_every_step_holds_what_is_kept_and_its_own(chain: Chain) -> None:
    for step in chain.steps:
        loaded = {id(stage): stage.weights_bytes for stage in (*chain.kept, step.stage)}
        assert step.total_bytes == sum(loaded.values()) + step.stage.working_bytes
        assert step.total_bytes <= chain.stepwise_bytes


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": " "}, "name"),
        ({"load": "sometimes"}, "load"),
        ({"weights_bytes": -1}, "weights_bytes"),
        ({"working_bytes": -1}, "working_bytes"),
    ],
)
def test_a_stage_that_cannot_be_is_refused(values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        Stage(**{"name": "Encode", "weights_bytes": 1, "working_bytes": 1, **values})
    assert refused.value.field == field


@pytest.mark.parametrize("number", [0, 21])
def test_a_chain_has_one_to_twenty_stages(number: int) -> None:
    with pytest.raises(InvalidWorkload):
        Chain((Stage("Encode", 1, 1),) * number)
