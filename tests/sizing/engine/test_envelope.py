"""The calculator's sums: nothing hidden in them. The published table is in the conformance vectors."""

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.engine.envelope import FORMATS_BITS, MAX_PARAMETERS, STATES, Envelope, ReserveEntry, weights_only
from sizing.engine.errors import InvalidWorkload

bits = st.sampled_from(FORMATS_BITS)
parameters = st.integers(1, MAX_PARAMETERS)


@st.composite
def entries(draw: st.DrawFn) -> ReserveEntry:
    state = draw(st.sampled_from(STATES))
    return ReserveEntry("An entry", "a reason", state, None if state == "unknown" else draw(st.integers(0, 10**15)))


@given(parameters, bits)
def test_weights_are_the_exact_share_of_bytes_rounded_up(parameters: int, bits: int) -> None:
    assert weights_only(parameters, bits) == ceil(Fraction(parameters * bits, 8))


@given(parameters, bits, st.lists(entries(), max_size=20))
def test_an_envelope_is_weights_and_known_entries_and_nothing_else(
    parameters: int, bits: int, found: list[ReserveEntry]
) -> None:
    envelope = Envelope(parameters, bits, tuple(found))
    figures = [entry.bytes for entry in found if entry.bytes is not None]
    assert envelope.total_bytes == weights_only(parameters, bits) + sum(figures)
    assert envelope.is_complete is (len(figures) == len(found))
    assert [entry for entry in found if entry.state == "unknown"] == list(envelope.unknown)


@given(parameters, bits, st.lists(entries(), max_size=5))
def test_every_format_has_the_same_entries(parameters: int, bits: int, found: list[ReserveEntry]) -> None:
    envelope = Envelope(parameters, bits, tuple(found))
    formats = envelope.in_every_format()
    assert [one.bits for one in formats] == list(FORMATS_BITS)
    assert {one.reserve_bytes for one in formats} == {envelope.reserve_bytes}
    assert envelope in formats


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"state": "guessed"}, "state"),
        ({"state": "unknown"}, "bytes"),
        ({"bytes": None}, "bytes"),
        ({"bytes": -1}, "bytes"),
        ({"name": "  "}, "name"),
        ({"name": ""}, "name"),
        ({"reason": " "}, "reason"),
    ],
)
def test_an_entry_that_says_too_little_or_too_much_is_refused(values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        ReserveEntry(**{"name": "Cache", "reason": "four users", "state": "measured", "bytes": 1, **values})
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"parameters": 0}, "parameters"),
        ({"parameters": MAX_PARAMETERS + 1}, "parameters"),
        ({"bits": 2}, "bits"),
        ({"entries": (ReserveEntry("A", "b", "unknown", None),) * 21}, "entries"),
    ],
)
def test_an_envelope_outside_what_is_computed_is_refused(values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        Envelope(**{"parameters": 7, **values})
    assert refused.value.field == field
