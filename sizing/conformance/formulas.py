"""The page of formulas: a template in words, its figures taken from the vectors by name.

A placeholder is `{{ vector-id path }}`, its path as in the vector's document: `inputs.model.parameters`,
`expect.lines.kv_cache.gib`. Whole numbers get thousands separators. `{{ lines vector-id }}` is a table of the vector's
lines.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sizing.conformance.vectors import Vector, by_id, own

TEMPLATE = Path(__file__).parent / "formulas.template.md"
PAGE = Path(__file__).parent.parent.parent / "docs" / "formulas.md"
_PLACEHOLDER = re.compile(r"\{\{ (\S+) (\S+) \}\}")


class UnknownFigure(Exception):
    """A placeholder names a vector or a figure that there is not."""


def page() -> str:
    """The page as it must be committed.

    Raises: UnknownFigure.
    """
    return render(TEMPLATE.read_text(encoding="utf-8"), by_id(own()))


def render(template: str, vectors: Mapping[str, Vector]) -> str:
    def filled(match: re.Match[str]) -> str:
        first, second = match.groups()
        if first == "lines":
            return _table(_vector(vectors, second))
        return _figure(_vector(vectors, first), second)

    return _PLACEHOLDER.sub(filled, template)


def _vector(vectors: Mapping[str, Vector], name: str) -> Vector:
    if name not in vectors:
        raise UnknownFigure(f"there is no vector {name}")
    return vectors[name]


def _figure(vector: Vector, path: str) -> str:
    found: Any = vector.document()
    for step in path.split("."):
        try:
            found = _step(found, step)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise UnknownFigure(f"{vector.id} has no {path}") from error
    if isinstance(found, list):
        return ", ".join(map(str, found))
    return f"{found:,}" if type(found) is int else str(found)


def _step(found: Any, step: str) -> Any:
    if isinstance(found, list) and not step.isdigit():
        return next((line for line in found if line["code"] == step), {})
    return found[int(step)] if isinstance(found, list) else found[step]


def _table(vector: Vector) -> str:
    rows = [(line["code"], line) for line in vector.expect["lines"]]
    rows.append(("total", vector.expect["total"]))
    table = ["| line | bytes | GiB |", "| --- | ---: | ---: |"]
    table += [f"| `{code}` | {size['bytes']:,} | {size['gib']} |" for code, size in rows]
    return "\n".join(table)
