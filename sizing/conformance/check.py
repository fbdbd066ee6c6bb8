"""Vectors against the engine: each passes, or differs at a named place."""

from dataclasses import dataclass
from typing import Any

from sizing.conformance.evaluate import OPTIONAL, UnknownInput, evaluate
from sizing.conformance.vectors import Vector


@dataclass(frozen=True)
class Difference:
    """One figure that is not as expected. `place` is its path in `expect`, such as `lines.kv_cache.bytes`."""

    place: str
    expected: Any
    actual: Any

    def __str__(self) -> str:
        return f"{self.place}: expected {_shown(self.expected)}, actual {_shown(self.actual)}"


@dataclass(frozen=True)
class Result:
    vector: Vector
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        return not self.differences


ABSENT = object()


def check(vector: Vector) -> Result:
    """The vector's expected figures beside the engine's, every difference in the order of the vector."""
    try:
        actual = evaluate(vector.kind, vector.inputs)
    except UnknownInput as error:
        return Result(vector, (Difference("inputs", "inputs that the kind takes", str(error)),))
    # Optional figures are compared where the vector states them; all others must be stated.
    actual = {name: value for name, value in actual.items() if name not in OPTIONAL or name in vector.expect}
    return Result(vector, tuple(_differences("", vector.expect, actual)))


def _differences(place: str, expected: Any, actual: Any) -> list[Difference]:
    if _are_lines(expected) and _are_lines(actual):
        # Lines go by their code, so that a line too many does not make all later ones differ.
        return _differences(place, _by_code(expected), _by_code(actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        found = []
        for name in dict.fromkeys([*expected, *actual]):
            inner = f"{place}.{name}" if place else str(name)
            found += _differences(inner, expected.get(name, ABSENT), actual.get(name, ABSENT))
        return found
    same = type(expected) is type(actual) and expected == actual
    return [] if same else [Difference(place, expected, actual)]


def _are_lines(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and "code" in each for each in value)


def _by_code(lines: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {str(line["code"]): dict(line) for line in lines}
    for line in found.values():
        line.pop("code")
    # The order of the lines is part of the answer.
    found["order"] = " ".join(str(line["code"]) for line in lines)
    return found


def _shown(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    return f"{value:,}" if type(value) is int else str(value)
