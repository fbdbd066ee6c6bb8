"""The memory bar's numbers: parts that follow each other, marks next to the need, never two GPUs end to end."""

from decimal import Decimal

import pytest

from catalog.units import GB, GIB
from sizing.bars import MARKS, ROW_HEIGHT, TICKS_FROM, Size, Tick, memory_bar
from sizing.engine.estimate import estimate, split_estimates
from sizing.engine.shapes import CacheGroup, LanguageModel
from sizing.engine.workloads import RunModel
from sizing.explain import LABELS

LLAMA = LanguageModel("Llama 3.1 8B", 8_030_261_248, 32, (CacheGroup(32, 2048, kv_heads=8),), 131_072, 14_336)
SIZES = [Size(size, f"{size / GIB:.2f} GiB") for size in (16 * GB, 24 * GB, 24 * GIB, 16 * GIB, 48 * GB, 80 * GB)]


def test_the_parts_follow_each_other_and_end_at_the_need():
    bar = memory_bar(estimate(RunModel(LLAMA)), LABELS, SIZES)
    assert [(part.code, part.gib) for part in bar.segments] == [
        ("weights", "14.96"),
        ("kv_cache", "0.50"),
        ("margin", "3.09"),
        ("runtime", "1.00"),
    ]
    ends = [Decimal(part.x) + Decimal(part.width) for part in bar.segments]
    for end, following in zip(ends, bar.segments[1:], strict=False):
        assert abs(end - Decimal(following.x)) <= Decimal("0.01")
    assert abs(ends[-1] - Decimal(bar.free.x)) <= Decimal("0.01")


def test_the_marks_are_the_size_below_and_the_ones_from_the_need_on():
    bar = memory_bar(estimate(RunModel(LLAMA)), LABELS, SIZES)
    assert [(tick.label, tick.holds) for tick in bar.ticks] == [
        ("16.00 GiB", False),
        ("22.35 GiB", True),
        ("44.70 GiB", True),
    ]
    assert len({tick.row for tick in bar.ticks}) == len(bar.ticks) <= MARKS


@pytest.mark.parametrize("sizes", [[], SIZES[:1], [Size(10**15, "huge")]])
def test_everything_stays_inside_the_bar(sizes):
    for need in split_estimates(RunModel(LLAMA, context=131_072, requests=100_000)):
        bar = memory_bar(need, LABELS, sizes)
        parts = [*bar.segments, *([bar.free] if bar.free else [])]
        assert all(0 <= Decimal(part.x) <= 100 and Decimal(part.x) + Decimal(part.width) <= 100 for part in parts)
        assert all(0 <= Decimal(tick.x) <= 100 for tick in bar.ticks)


def test_a_split_is_drawn_for_one_of_its_gpus():
    need = estimate(RunModel(LLAMA), 2)
    bar = memory_bar(need, LABELS, SIZES)
    assert bar.title == "GPU memory needed on each of 2 GPUs: 10.27 GiB"


def test_the_description_says_in_words_what_is_drawn():
    bar = memory_bar(estimate(RunModel(LLAMA)), LABELS, SIZES)
    assert "CUDA runtime 1.00 GiB" in bar.description
    assert "16.00 GiB is too small; 22.35 GiB holds it" in bar.description


def test_the_line_of_a_size_leaves_out_the_rows_of_other_labels() -> None:
    for row in range(3):
        tick = Tick(label="24.00 GiB", x="50.00", holds=True, row=row, anchor="end")
        for other in set(range(3)) - {row}:
            text = range(TICKS_FROM + other * ROW_HEIGHT + 3, TICKS_FROM + other * ROW_HEIGHT + 18)
            assert not set(text) & set(range(tick.line_from, tick.line_end))
