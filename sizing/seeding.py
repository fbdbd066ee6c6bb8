"""The models' seed file to rows: everything is checked first, then upserted by slug in one transaction.

Running it again changes only what the file says differently and removes nothing; with `only_new` it leaves every row
that is there as staff made it.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import IntegrityError, transaction

from catalog.seeding import Row, SeedError
from sizing.models import AiModel

MODELS = Path(__file__).parent / "seeds" / "models.json"


def load(path: Path = MODELS, *, only_new: bool = False) -> Counter[str]:
    """Load the file; the counts are of rows `created`, `updated` and `unchanged`.

    Raises: SeedError, with every problem found, before anything is written.
    """
    rows = _read(path)
    problems = _problems(rows, path.name)
    if problems:
        raise SeedError(problems)
    try:
        with transaction.atomic():
            return _write(rows, only_new=only_new)
    except IntegrityError as error:
        # Staff may have given another model the name that the file wants to use.
        raise SeedError([f"{path.name}: a model that is already there stands in the way: {error}"]) from error


def _read(path: Path) -> list[Row]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SeedError([f"{path.name}: cannot be read: {error}"]) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SeedError([f"{path.name}: must be a list of objects, one a model."])
    return rows


def _problems(rows: list[Row], file: str) -> list[str]:
    problems: list[str] = []
    seen: dict[tuple[str, Any], int] = {}
    for number, row in enumerate(rows, start=1):
        found = _row_problems(row)
        for name in ("slug", "name"):
            first = seen.setdefault((name, str(row.get(name))), number)
            if name in row and first != number:
                found.append((name, f"the same as in row {first}."))
        problems += [f"{file}, row {number}, {name}: {message}" for name, message in found]
    return problems


def _row_problems(row: Row) -> list[tuple[str, str]]:
    """What is wrong with one row, as pairs of field and sentence."""
    found: list[tuple[str, str]] = []
    for name, value in row.items():
        try:
            kind = AiModel._meta.get_field(name).get_internal_type()
        except FieldDoesNotExist:
            found.append((name, "is not a field of this file."))
            continue
        if name == "id":
            found.append((name, "is given by the database."))
        # A number that is written as a float or in quotes may not be the number that was meant.
        elif "Integer" in kind and value is not None and type(value) is not int:
            found.append((name, f"{value!r} must be a whole number or null."))
        elif kind in ("CharField", "URLField") and not isinstance(value, str):
            found.append((name, f"{value!r} must be a text."))
    if found:
        return found
    try:
        model = AiModel(**row)
        model.clean_fields()
        model.clean()
    except ValidationError as error:
        return [(name, " ".join(messages)) for name, messages in error.message_dict.items()]
    return []


def _write(rows: list[Row], *, only_new: bool) -> Counter[str]:
    """Create what is missing and, unless `only_new`, change what differs. Saved one by one, so that history has it."""
    counts: Counter[str] = Counter(created=0, updated=0, unchanged=0)
    there = {model.slug: model for model in AiModel.objects.all()}
    for row in rows:
        model = there.get(row["slug"])
        if model is None:
            AiModel.objects.create(**row)
            counts["created"] += 1
            continue
        differing = [name for name, value in row.items() if getattr(model, name) != value]
        if only_new or not differing:
            counts["unchanged"] += 1
            continue
        for name in differing:
            setattr(model, name, row[name])
        model.save(update_fields=differing)
        counts["updated"] += 1
    return counts
