"""Writing what was planned into rows that orders use too: everything is laid out beside them, and then they are held.

Twenty thousand rows that are written one by one are held for many seconds, in which orders for them wait. Here they are
locked in the order of their keys, compared with what was planned for, written and put into the history by four
statements.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import connection, models

from catalog.importing.reading import Fault

_BESIDE = "import_beside"


class Unapplicable(Exception):
    """What was planned cannot be done any more. Attributes: `fault`."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Write(NamedTuple):
    """New values of a row by field, what some of these fields had when it was planned, and its line in the file."""

    key: int
    line: int
    values: Mapping[str, Any]
    was: Mapping[str, Any]


class Held(NamedTuple):
    """Fields that are read of a row once it is held, and who says then that it cannot be written.

    `moved` fields change by as much as the field that is named for each.
    """

    fields: tuple[str, ...] = ()
    check: Callable[[Write, tuple[Any, ...]], None] = lambda write, values: None
    moved: Mapping[str, str] = {}


def write_rows(
    model: type[models.Model], writes: Collection[Write], held: Held, *, user: User, reason: str, now: datetime
) -> None:
    """Write the rows, each with its history, inside of the caller's transaction.

    Raises: Unapplicable when one of them is gone, or has another value than was planned for.
    """
    if not writes:
        return
    names = set[str]().union(*(write.values for write in writes))
    fields = [field for field in model._meta.concrete_fields if field.name in names]
    compared = set[str]().union(*(write.was for write in writes))
    table = _Table(model, fields, [field for field in fields if field.name in compared])
    table.lay_out(writes)
    table.hold(writes, held)
    table.compare(writes)
    table.write(held.moved)
    if hasattr(model, "history"):
        table.remember(user=user, reason=reason, now=now)
    table.clear()


class _Table:
    """The statements for one table. Beside it, three columns a field: new value, old one, if it is written."""

    def __init__(self, model: Any, fields: list[Any], compared: list[Any]) -> None:
        self.model, self.fields, self.compared = model, fields, compared
        self.name, self.key = _quoted(model._meta.db_table), _quoted(model._meta.pk.column)
        self.joined = f"{self.name}.{self.key} = {_BESIDE}.{self.key}"

    def lay_out(self, writes: Collection[Write]) -> None:
        columns = [
            f"{_quoted(field.column)} AS new_{number}, {_quoted(field.column)} AS old_{number}, (1 = 1) AS has_{number}"
            for number, field in enumerate(self.fields)
        ]
        with connection.cursor() as cursor:
            cursor.execute(
                f"CREATE TEMPORARY TABLE {_BESIDE} AS"
                f" SELECT {self.key}, {', '.join(columns)} FROM {self.name} WHERE 1 = 0"
            )
            places = ", ".join(["%s"] * (1 + 3 * len(self.fields)))
            cursor.executemany(f"INSERT INTO {_BESIDE} VALUES ({places})", [self._row(write) for write in writes])
            cursor.execute(f"CREATE UNIQUE INDEX {_BESIDE}_key ON {_BESIDE} ({self.key})")

    def _row(self, write: Write) -> list[Any]:
        row: list[Any] = [write.key]
        for field in self.fields:
            has = field.name in write.values
            new, old = write.values.get(field.name), write.was.get(field.name)
            row += [_prepared(field, new) if has else None, _prepared(field, old) if has else None, has]
        return row

    def hold(self, writes: Collection[Write], held: Held) -> None:
        """By their key, so that rows are locked in the order in which everybody locks them."""
        read = [self.key, *(_quoted(self.model._meta.get_field(name).column) for name in held.fields)]
        # Who refers to a row may go on: its key does not change.
        lock = " FOR NO KEY UPDATE" if connection.vendor == "postgresql" else ""
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {', '.join(read)} FROM {self.name}"
                f" WHERE {self.key} IN (SELECT {self.key} FROM {_BESIDE}) ORDER BY {self.key}{lock}"
            )
            found = {row[0]: row[1:] for row in cursor.fetchall()}
        for write in writes:
            if write.key not in found:
                raise Unapplicable(Fault("was deleted meanwhile. Upload the file again.", write.line))
            held.check(write, found[write.key])

    def compare(self, writes: Collection[Write]) -> None:
        differs = "IS DISTINCT FROM" if connection.vendor == "postgresql" else "IS NOT"
        others = [
            f"({_BESIDE}.has_{number} AND {self.name}.{_quoted(field.column)} {differs} {_BESIDE}.old_{number})"
            for number, field in enumerate(self.fields)
            if field in self.compared
        ]
        if not others:
            return
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {_BESIDE}.{self.key} FROM {_BESIDE} JOIN {self.name} ON {self.joined}"
                f" WHERE {' OR '.join(others)} ORDER BY 1 LIMIT 1"
            )
            found = cursor.fetchone()
        if found:
            line = next(write.line for write in writes if write.key == found[0])
            raise Unapplicable(Fault("was changed by somebody else at this moment. Upload the file again.", line))

    def write(self, moved: Mapping[str, str]) -> None:
        sets = [
            f"{_quoted(field.column)} = CASE WHEN {_BESIDE}.has_{number} THEN {_BESIDE}.new_{number}"
            f" ELSE {self.name}.{_quoted(field.column)} END"
            for number, field in enumerate(self.fields)
        ]
        numbers = {field.name: number for number, field in enumerate(self.fields)}
        for along, name in moved.items():
            if name in numbers:
                column, other = (_quoted(self.model._meta.get_field(each).column) for each in (along, name))
                sets.append(
                    f"{column} = CASE WHEN {_BESIDE}.has_{numbers[name]}"
                    f" THEN {self.name}.{column} + {_BESIDE}.new_{numbers[name]} - {self.name}.{other}"
                    f" ELSE {self.name}.{column} END"
                )
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {self.name} SET {', '.join(sets)} FROM {_BESIDE} WHERE {self.joined}")

    def remember(self, *, user: User, reason: str, now: datetime) -> None:
        history = self.model.history.model
        kept = [_quoted(field.column) for field in history.tracked_fields]
        added = {"history_date": now, "history_type": "~", "history_user": user.pk, "history_change_reason": reason}
        own = [history._meta.get_field(name) for name in added]
        columns = ", ".join([*kept, *(_quoted(field.column) for field in own)])
        read = ", ".join([*(f"{self.name}.{column}" for column in kept), *["%s"] * len(own)])
        values = [_prepared(field, value) for field, value in zip(own, added.values(), strict=True)]
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {_quoted(history._meta.db_table)} ({columns})"
                f" SELECT {read} FROM {self.name} JOIN {_BESIDE} ON {self.joined} ORDER BY {self.name}.{self.key}",
                values,
            )

    def clear(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {_BESIDE}")


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)


def _prepared(field: Any, value: Any) -> Any:
    return None if value is None else field.get_db_prep_save(value, connection)
