"""All outcomes of a file, counted: by task and precision, what was compared how often and how far off."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import TypeVar

from sizing.observed.compare import NO_SUCH_MODEL, NotCompared, Outcome, Reading, Verdict, compare
from sizing.observed.missing import is_large
from sizing.observed.reading import READINGS, TASKS, Observation

Row = TypeVar("Row", Reading, Verdict)


@dataclass(frozen=True)
class Errors:
    """How far readings are off. Shares of what was observed; p90 is the nearest rank, the median of two the middle."""

    readings: tuple[Reading, ...]

    @property
    def count(self) -> int:
        return len(self.readings)

    @property
    def _sizes(self) -> list[Fraction]:
        return sorted(abs(reading.error) for reading in self.readings)

    @property
    def median(self) -> Fraction:
        sizes, middle = self._sizes, self.count // 2
        return sizes[middle] if self.count % 2 else (sizes[middle - 1] + sizes[middle]) / 2

    @property
    def p90(self) -> Fraction:
        return self._sizes[-(-9 * self.count // 10) - 1]

    @property
    def worst(self) -> Reading:
        return max(self.readings, key=lambda reading: abs(reading.error))

    @property
    def too_low(self) -> int:
        """How many of our figures are below what was observed."""
        return sum(reading.error < 0 for reading in self.readings)


@dataclass(frozen=True)
class Verdicts:
    verdicts: tuple[Verdict, ...]

    @property
    def right(self) -> int:
        return sum(verdict.right for verdict in self.verdicts)

    @property
    def false_fits(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.fits_by_us and not verdict.fitted)

    @property
    def false_refusals(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.fitted and not verdict.fits_by_us)


@dataclass(frozen=True)
class Summary:
    """Every outcome once: compared and clear, compared and ambiguous, or not compared."""

    outcomes: tuple[Outcome, ...]

    @property
    def readings(self) -> tuple[Reading, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Reading) and not each.observation.ambiguous)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, Verdict) and not each.observation.ambiguous)

    @property
    def ambiguous(self) -> tuple[Reading | Verdict, ...]:
        return tuple(each for each in self.outcomes if not isinstance(each, NotCompared) and each.observation.ambiguous)

    @property
    def not_compared(self) -> tuple[NotCompared, ...]:
        return tuple(each for each in self.outcomes if isinstance(each, NotCompared))

    @property
    def unknown_names(self) -> dict[str, list[str]]:
        """Names that match none of our models, with the ids of their entries."""
        found: dict[str, list[str]] = {}
        for each in self.not_compared:
            if each.code == NO_SUCH_MODEL:
                found.setdefault(each.observation.model, []).append(each.observation.id)
        return found

    @property
    def unanswered(self) -> dict[str, list[str]]:
        """Why entries of our own models are not compared, with their ids."""
        found: dict[str, list[str]] = {}
        for each in self.not_compared:
            if each.code != NO_SUCH_MODEL:
                found.setdefault(each.reason, []).append(each.observation.id)
        return found

    @property
    def large(self) -> tuple[Reading, ...]:
        return tuple(reading for reading in self.readings if is_large(reading))

    @property
    def cache_readings(self) -> tuple[Reading, ...]:
        return tuple(
            each
            for each in self.outcomes
            if isinstance(each, Reading) and each.observation.quantity in ("kv_cache", "kv_tokens")
        )

    @property
    def weights_at_16_bits(self) -> Errors:
        return Errors(
            tuple(
                reading
                for reading in self.readings
                if reading.observation.quantity == "weights" and reading.observation.precision_bits == 16
            )
        )

    def errors(self) -> Iterator[tuple[str, int, str, Errors]]:
        """By task and precision: all readings together, then each quantity when there are several."""
        for task, bits, rows in _by_task_and_bits(self.readings):
            quantities = [name for name in READINGS if any(row.observation.quantity == name for row in rows)]
            if len(quantities) > 1:
                yield task, bits, "all", Errors(rows)
            for name in quantities:
                yield task, bits, name, Errors(tuple(row for row in rows if row.observation.quantity == name))

    def verdict_counts(self) -> Iterator[tuple[str, int, Verdicts]]:
        for task, bits, rows in _by_task_and_bits(self.verdicts):
            yield task, bits, Verdicts(rows)


def summarize(observations: Iterable[Observation]) -> Summary:
    return Summary(tuple(compare(observation) for observation in observations))


def _by_task_and_bits(rows: Iterable[Row]) -> Iterator[tuple[str, int, tuple[Row, ...]]]:
    def place(row: Row) -> tuple[int, int]:
        return TASKS.index(row.observation.task), -row.observation.precision_bits

    for (task, bits), group in groupby(sorted(rows, key=place), key=place):
        yield TASKS[task], -bits, tuple(group)
