"""What every importable table has in common: rows by their natural key, what would change, all or nothing."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from import_export.instance_loaders import BaseInstanceLoader  # type: ignore[import-untyped]
from import_export.resources import ModelResource  # type: ignore[import-untyped]
from simple_history.utils import bulk_create_with_history
from tablib import Dataset  # type: ignore[import-untyped]

from catalog.importing.reading import Fault, Table
from catalog.importing.writing import Held, Unapplicable, Write, write_rows

CHUNK = 500
MISSING = object()
_EMPTY = "must not be empty."


class Change(NamedTuple):
    """A row that would be created or changed: where it stands in the file, what it is, each value before and after."""

    line: int
    is_new: bool
    label: str
    values: list[tuple[str, str, str]]


@dataclass
class Plan:
    """What a file would do to a table."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    changes: list[Change] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def changes_something(self) -> bool:
        return bool(self.new or self.changed)

    @property
    def digest(self) -> str:
        """The same for the same changes: what was shown can be compared with what would be done later."""
        return hashlib.sha256(repr(self.changes).encode()).hexdigest()


class Planned(NamedTuple):
    instance: Any
    line: int
    changed: tuple[str, ...]


class ByKey(BaseInstanceLoader):
    """The rows of the database that the file is about, read in a few queries before the first row is looked at."""

    def __init__(self, resource: Any, dataset: Any = None) -> None:
        super().__init__(resource, dataset)
        self.found: dict[Any, Any] = resource.load(dataset.dict if dataset is not None else [])

    def get_instance(self, row: Any) -> Any:
        return self.found.get(self.resource.key(row))


class Importable(ModelResource):
    """A table of the catalog: `required` columns name a row; every other column may be left out, and then stays."""

    required: ClassVar[tuple[str, ...]]
    # Columns that only a new row must have.
    needed_when_new: ClassVar[tuple[str, ...]] = ()
    # What else is looked at and moved once a row is held.
    held: ClassVar[Held] = Held()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plan = Plan()
        self._lines: list[int] = []
        self._seen: dict[Any, int] = {}
        self._planned: list[Planned] = []
        self._line = 0
        self._row: Any = {}

    # --- For each table to say ---

    def key(self, row: Any) -> Any:
        """What names a row of the file, equal to a key of what `load` gives."""
        raise NotImplementedError

    def load(self, rows: list[Any]) -> dict[Any, Any]:
        """The instances that the file names, by their key. References that cells name are put into the columns here."""
        raise NotImplementedError

    def faults_of(self, instance: Any) -> Iterator[tuple[str, str]]:
        """What is wrong with the row as it would be: a column and a sentence each."""
        try:
            instance.clean_fields(exclude=[each.name for each in instance._meta.fields if each.is_relation])
        except ValidationError as error:
            for name, problems in error.error_dict.items():
                yield name, self.with_value(name, " ".join(map(_sentence, problems)))

    def with_value(self, column: str, sentence: str) -> str:
        """The sentence with what stands in the cell it is about."""
        cell = self._row.get(column, MISSING)
        if cell is MISSING:
            return f"{sentence} The file has no such column: add it."
        return sentence if sentence == _EMPTY else f"{sentence} {_said(cell)}"

    def settle(self, instance: Any) -> None:
        """Fill in what follows from other columns, once every cell was read."""

    def has(self, name: str) -> bool:
        """Whether the row that is being read says anything in the column."""
        value = self._row.get(name, MISSING)
        return value is not MISSING and bool(value.strip())

    def leaves_empty(self, name: str) -> bool:
        """Whether the row has the column, with nothing in it."""
        return self._row.get(name, MISSING) is not MISSING and not self.has(name)

    # --- Planning -----------------------------------------------------------------------------------------------------

    def plan_table(self, table: Table) -> Plan:
        """Compare every row with what is there. Nothing is written."""
        dataset = Dataset(headers=table.columns)
        for row in table.rows:
            dataset.append([row.get(name, MISSING) for name in table.columns])
        self._lines = table.lines
        self.import_data_inner(dataset, True, False, False, False)
        self.plan.faults.sort(key=lambda fault: fault.line or 0)
        return self.plan

    def columns(self) -> list[str]:
        return [each.column_name for each in self.get_import_fields()]

    def import_field(self, field: Any, instance: Any, row: Any, is_m2m: bool = False, **kwargs: Any) -> None:
        # A row of a JSON list may have fewer names than another.
        if row.get(field.column_name, MISSING) is not MISSING:
            super().import_field(field, instance, row, is_m2m, **kwargs)

    def import_row(self, row: Any, instance_loader: Any, **kwargs: Any) -> Any:
        self._line, self._row = self._lines[kwargs["row_number"] - 1], row
        result = super().import_row(row, instance_loader, **kwargs)
        for error in result.errors:
            # A defect of ours, not of the row: its text is for the log.
            raise error.error
        if result.validation_error is not None:
            shown = {each.attribute: each.column_name for each in self._fields}
            for name, sentences in result.validation_error.message_dict.items():
                self.plan.faults += [Fault(sentence, self._line, shown.get(name, name)) for sentence in sentences]
        return result

    def before_import_row(self, row: Any, **kwargs: Any) -> None:
        empty = {name: [_EMPTY] for name in self.required if not str(row.get(name, "")).strip()}
        absent = {name: ["is missing in this row."] for name in self.required if row.get(name, MISSING) is MISSING}
        if empty or absent:
            raise ValidationError({**empty, **absent})
        first = self._seen.setdefault(self.key(row), self._line)
        if first != self._line:
            raise ValidationError({self.required[-1]: f"names the same row as line {first}."})

    def after_init_instance(self, instance: Any, new: bool, row: Any, **kwargs: Any) -> None:
        instance.before = None if new else self._values(instance)

    def import_instance(self, instance: Any, row: Any, **kwargs: Any) -> None:
        super().import_instance(instance, row, **kwargs)
        self.settle(instance)

    def skip_row(self, instance: Any, original: Any, row: Any, import_validation_errors: Any = None) -> bool:
        if instance.before is None or import_validation_errors or self.changed(instance):
            return False
        self.plan.unchanged += 1
        return True

    def validate_instance(
        self, instance: Any, import_validation_errors: Any = None, validate_unique: bool = True
    ) -> None:
        errors: dict[str, Any] = dict(import_validation_errors or {})
        if instance.before is None:
            errors |= {name: ["is needed for a new row."] for name in self.needed_when_new if not self.has(name)}
        if not errors:
            for name, sentence in self.faults_of(instance):
                errors.setdefault(name, []).append(sentence)
        if errors:
            raise ValidationError(errors)

    def save_instance(self, instance: Any, is_create: bool, row: Any, **kwargs: Any) -> None:
        """Note what would be done; `apply` does it."""
        changed = self.changed(instance)
        self._planned.append(Planned(instance, self._line, changed))
        before, after = instance.before or {}, self._values(instance)
        values = []
        for each in self._fields:
            if (name := each.attribute) in changed:
                values.append((each.column_name, *map(each.widget.render, (before.get(name), after[name]))))
        self.plan.changes.append(Change(self._line, is_create, str(instance), values))
        if is_create:
            self.plan.new += 1
        else:
            self.plan.changed += 1

    def _values(self, instance: Any) -> dict[str, Any]:
        return {name: getattr(instance, name, None) for name in self._attributes}

    def changed(self, instance: Any) -> tuple[str, ...]:
        """The attributes that differ from what is there; all that a new row has."""
        before, after = instance.before or {}, self._values(instance)
        return tuple(name for name, value in after.items() if before.get(name) != value)

    # --- Exporting ----------------------------------------------------------------------------------------------------

    def texts(self, instance: Any) -> list[str]:
        """The row's cells as a file of it has them."""
        return [render(read(instance)) for read, render in self._cells]

    def values(self, instance: Any) -> dict[str, Any]:
        """The row's cells as JSON has them: counts are numbers, amounts are texts, unknown is null."""
        cells = {}
        for each, text in zip(self._fields, self.texts(instance), strict=True):
            value = getattr(instance, each.attribute, None)
            cells[each.column_name] = value if isinstance(value, bool | int | list) else (text or None)
        return cells

    @cached_property
    def _cells(self) -> list[tuple[Callable[[Any], Any], Callable[[Any], str]]]:
        """How each cell is read from an instance and written, found once and not for each of a million cells."""
        own = ((each, getattr(self, f"dehydrate_{each.column_name}", None)) for each in self._fields)
        return [(made, str) if made else (attrgetter(each.attribute), each.widget.render) for each, made in own]

    @cached_property
    def _attributes(self) -> list[str]:
        return [each.attribute for each in self._fields]

    @cached_property
    def _fields(self) -> list[Any]:
        return self.get_import_fields()

    # --- Applying -----------------------------------------------------------------------------------------------------

    def apply(self, *, user: User, reason: str, now: datetime) -> None:
        """Write what was planned, in one transaction, each row with its history.

        Raises: Unapplicable when the table changed meanwhile so that a row cannot be written; then nothing was.
        """
        created = [each.instance for each in self._planned if each.instance.before is None]
        updated = [each for each in self._planned if each.instance.before is not None]
        writes = [Write(each.instance.pk, each.line, *self.values_of(each, now)) for each in updated]
        try:
            with transaction.atomic():
                # Before any row that is there is held.
                self._create(created, user, reason)
                write_rows(self._meta.model, writes, self.held, user=user, reason=reason, now=now)
                self.applied(now)
        except IntegrityError:
            fault = Fault("The catalog was changed at the same time and a row came to be twice. Upload the file again.")
            raise Unapplicable(fault) from None

    def applied(self, now: datetime) -> None:
        """What follows from the rows once they are written."""

    def values_of(self, planned: Planned, now: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is written into a row that is there, by field, and what it was planned to be instead of."""
        instance = planned.instance
        new = {name: getattr(instance, instance._meta.get_field(name).attname) for name in planned.changed}
        was = {name: instance.before[name] for name in planned.changed}
        return new, {name: getattr(value, "pk", value) for name, value in was.items()}

    def _create(self, instances: list[Any], user: User, reason: str) -> None:
        model = self._meta.model
        if not hasattr(model, "history"):
            model._default_manager.bulk_create(instances, batch_size=CHUNK)
            return
        bulk_create_with_history(instances, model, batch_size=CHUNK, default_user=user, default_change_reason=reason)


def _said(cell: str) -> str:
    return f"It is “{cell.strip()[:60]}”." if cell.strip() else "It is empty."


def _sentence(problem: ValidationError) -> str:
    """What is wrong with one value, where Django's own sentence is meant for a form."""
    params = problem.params if isinstance(problem.params, dict) else {}
    limit, most = params.get("limit_value"), params.get("max")
    match problem.code:
        case "null" | "blank":
            return _EMPTY
        case "max_length":
            return f"must have at most {limit:,} characters."
        case "min_value":
            return f"must be {limit:,} or more."
        case "max_value":
            return f"must be {limit:,} or less."
        case "max_digits" | "max_whole_digits":
            return f"must have at most {most} digits{' before the point' if problem.code != 'max_digits' else ''}."
        case "max_decimal_places":
            return f"must have at most {most} digits after the point."
    return " ".join(problem.messages)
