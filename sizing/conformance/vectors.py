"""The files of conformance vectors: read, checked in form, merged. What the figures mean is `evaluate`'s question."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

DIRECTORY = Path(__file__).parent.parent / "vectors"
FORMAT = "berth-vectors/1"
FILE_FIELDS = {"format", "title", "vectors"}
VECTOR_FIELDS = {"id", "kind", "origin", "sources", "inputs", "expect"}

Document = dict[str, Any]


class MalformedVectors(Exception):
    """A file is not in the documented format. The message names the file, the vector and the field."""


@dataclass(frozen=True)
class Vector:
    """One question with its answer.

    Units: every memory figure is in bytes; a `gib` is the text that is printed.
    """

    id: str
    kind: str
    origin: str
    sources: tuple[str, ...]
    inputs: Document
    expect: Document

    def document(self) -> Document:
        return {
            "id": self.id,
            "kind": self.kind,
            "origin": self.origin,
            "sources": list(self.sources),
            "inputs": self.inputs,
            "expect": self.expect,
        }


@dataclass(frozen=True)
class VectorFile:
    name: str
    title: str
    vectors: tuple[Vector, ...]


def own_files() -> tuple[Path, ...]:
    """The project's files, in the order of their names."""
    return tuple(sorted(DIRECTORY.glob("*.json")))


def load(paths: Iterable[Path]) -> tuple[VectorFile, ...]:
    """Every file, in form; an id is used once in all of them.

    Raises: MalformedVectors.
    """
    files = tuple(_read(path) for path in paths)
    seen: dict[str, str] = {}
    for file in files:
        for vector in file.vectors:
            if vector.id in seen:
                raise MalformedVectors(f"{file.name}, {vector.id}: the id is used in {seen[vector.id]} already.")
            seen[vector.id] = file.name
    return files


@lru_cache(maxsize=1)
def own() -> tuple[VectorFile, ...]:
    """The project's own vectors, read once."""
    return load(own_files())


def by_id(files: Iterable[VectorFile]) -> dict[str, Vector]:
    return {vector.id: vector for file in files for vector in file.vectors}


@lru_cache(maxsize=1)
def merged() -> tuple[Document, str]:
    """The project's vectors as one document, and the digest of their content."""
    vectors = [vector.document() for file in own() for vector in file.vectors]
    canonical = json.dumps(vectors, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return {"format": FORMAT, "digest": f"sha256:{digest}", "count": len(vectors), "vectors": vectors}, digest


def _read(path: Path) -> VectorFile:
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_float=_no_float, parse_constant=_no_float)
    except (OSError, ValueError, RecursionError) as error:
        raise MalformedVectors(f"{path.name}: cannot be read: {error}") from error
    if not isinstance(document, dict) or set(document) != FILE_FIELDS:
        raise MalformedVectors(f"{path.name}: must be an object with {_listed(FILE_FIELDS)}.")
    if document["format"] != FORMAT:
        raise MalformedVectors(f"{path.name}, format: must be {FORMAT}.")
    if not isinstance(document["title"], str) or not isinstance(document["vectors"], list):
        raise MalformedVectors(f"{path.name}: title must be a text and vectors a list.")
    vectors = tuple(_vector(path.name, number, row) for number, row in enumerate(document["vectors"], start=1))
    return VectorFile(path.name, document["title"], vectors)


def _vector(file: str, number: int, row: object) -> Vector:
    if not isinstance(row, dict):
        raise MalformedVectors(f"{file}, vector {number}: must be an object.")
    place = f"{file}, {row.get('id', f'vector {number}')}"
    if set(row) != VECTOR_FIELDS:
        wrong = sorted(set(row) ^ VECTOR_FIELDS)
        raise MalformedVectors(f"{place}: {wrong[0]} is {'missing' if wrong[0] in VECTOR_FIELDS else 'not known'}.")
    for field, kind in (("id", str), ("kind", str), ("origin", str), ("inputs", dict), ("expect", dict)):
        if not isinstance(row[field], kind) or not row[field]:
            raise MalformedVectors(f"{place}, {field}: must be {'a text' if kind is str else 'an object'}.")
    sources = row["sources"]
    if not isinstance(sources, list) or not all(isinstance(source, str) for source in sources):
        raise MalformedVectors(f"{place}, sources: must be a list of texts.")
    return Vector(row["id"], row["kind"], row["origin"], tuple(sources), row["inputs"], row["expect"])


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"{text} is no whole number; figures with a fraction are texts")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
