"""Writing what changed: in short transactions, in the order of ids, around the rows that orders hold.

A chunk is short so that an order for one of its machines waits for milliseconds; each looks again, with the rows
locked, which of its machines are free, because an order may have come since they were compared. A worker that dies
leaves whole chunks, and the next run finds the rest by comparing.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from django.db import DatabaseError, DataError, IntegrityError, OperationalError, connection, transaction
from django.db.models import F, Q

from catalog.feeds import Rejection
from catalog.models import FeedAbsence, Machine, Provider
from catalog.refresh.comparing import Change, Differences, Slice
from catalog.refresh.forgetting import LIST_SAYS_SO, forget_earlier_today
from catalog.refresh.rows import FACTS, HOST, Row
from catalog.refresh.turns import Turn
from catalog.refresh.withholding import withheld_since, withhold

logger = logging.getLogger(__name__)

CHUNK = 500
_WRITTEN = ("name", "lots", "free_lots", "online", "gone_since", "updated_at", *FACTS)

Clock = Callable[[], datetime]
Item = TypeVar("Item")
Key = TypeVar("Key", int, str)


class TimeIsUp(Exception):
    """The run has taken as long as one may; what is left is the next run's."""


@dataclass
class Applied:
    """What was written, and what could not be."""

    new: int = 0
    changed: int = 0
    gone: int = 0
    skipped: int = 0
    rented: int = 0
    rejections: list[Rejection] = field(default_factory=list)


@dataclass(frozen=True)
class Applying:
    """One provider's differences on their way into the database, under one turn, until a deadline."""

    provider: Provider
    turn: Turn
    clock: Clock
    deadline: datetime
    applied: Applied = field(default_factory=Applied)

    def apply(self, found: Differences) -> None:
        """Write the differences; `applied` has what was done, also when this ends early.

        Raises: TurnLost, TimeIsUp.
        """
        self._note_withheld(found)
        # What is gone goes first: then nobody can order a slice of a host while it is written as another one.
        for ids in _chunks(sorted(found.gone)):
            self._write_or_split([(pk, None) for pk in ids], found)
        for ids in _chunks(sorted(found.moved)):
            self._take_off(ids)
        for ids in _chunks(found.unmarked):
            with self._step() as now:
                Machine.objects.filter(pk__in=ids, online=False).update(gone_since=now)
        for changes in _chunks(sorted(found.changed)):
            self._write_or_split([(change.machine_id, change) for change in changes], found)
        for rows in _chunks(found.new):
            self._create_or_split(rows, found)

    # --- Machines that are there ---

    def _write_or_split(self, chunk: Sequence[tuple[int, Change | None]], found: Differences) -> None:
        """Write a chunk; when the database refuses a row of it, each row alone, so that the others are not lost."""
        try:
            self._write(chunk, found)
        except (IntegrityError, DataError) as error:
            if len(chunk) == 1:
                self._refused(chunk[0][1], error)
                return
            for one in chunk:
                self._write_or_split([one], found)
        except OperationalError:
            # A row that stayed locked, or a deadlock that the database ended: the next run takes these machines.
            if not connection.is_usable():
                raise
            logger.warning("%d machines of %s could not be written now.", len(chunk), self.provider, exc_info=True)
            self.applied.skipped += len(chunk)

    def _write(self, chunk: Sequence[tuple[int, Change | None]], found: Differences) -> None:
        changes = dict(chunk)
        with self._step() as now:
            contested = _contested({pk: change.row for pk, change in chunk if change is not None}, found)
            listed = _hold_free([pk for pk in changes if pk not in contested])
            gone = [pk for pk in listed if changes[pk] is None]
            changed = [change for pk in listed if (change := changes[pk]) is not None]
            if gone:
                Machine.objects.filter(pk__in=gone).update(online=False, gone_since=now, updated_at=now)
            self._overwrite(changed, listed, now)
            FeedAbsence.objects.filter(pk__in=found.absent.keys() & listed.keys()).delete()
            rented = _note_rented({pk: change for pk, change in chunk if pk not in listed}, found, now)
        self.applied.gone += len(gone)
        self.applied.changed += len(changed)
        self.applied.rented += rented
        self.applied.skipped += len(chunk) - len(listed) - rented

    def _take_off(self, ids: Sequence[int]) -> None:
        """Until they are written, nobody orders machines that have other GPUs now; so they may also trade theirs."""
        with self._step() as now:
            free = Machine.objects.filter(pk__in=_hold_free(list(ids)), online=True)
            free.update(online=False, updated_at=now)

    def _overwrite(self, changed: list[Change], listed: dict[int, bool], now: datetime) -> None:
        """One statement for all: the rows are there and locked, so each "insert" meets its row and updates it."""
        machines = [_machine(self.provider, change.row, change.name, pk=change.machine_id) for change in changed]
        for machine in machines:
            machine.listed = listed[machine.pk]
        Machine.objects.bulk_create(machines, update_conflicts=True, unique_fields=["pk"], update_fields=_WRITTEN)
        # The history says what people decided, and when a machine became another one. What a list says of price and
        # presence moves every minute: a tenth of 100,000 machines a minute would be 14 million rows of history a day.
        another = {change.machine_id for change in changed if change.identity}
        if another:
            forget_earlier_today(another, now)
            Machine.history.bulk_history_create(
                [machine for machine in machines if machine.pk in another],
                update=True,
                default_change_reason=LIST_SAYS_SO,
                default_date=now,
            )

    def _note_withheld(self, found: Differences) -> None:
        if found.withheld or found.back:
            with self._step() as now:
                withhold(found.withheld, now)
                FeedAbsence.objects.filter(pk__in=found.back).delete()

    # --- New machines ---

    def _create_or_split(self, rows: Sequence[tuple[Row, str]], found: Differences) -> None:
        try:
            with self._step():
                contested = _contested({row.external_id: row for row, _ in rows}, found)
                kept = [(row, name) for row, name in rows if row.external_id not in contested]
                Machine.objects.bulk_create([_machine(self.provider, row, name) for row, name in kept])
            self.applied.new += len(kept)
            self.applied.skipped += len(contested)
        except (IntegrityError, DataError) as error:
            if len(rows) == 1:
                self._refuse(rows[0][0], error)
                return
            for one in rows:
                self._create_or_split([one], found)

    # --- Both ---

    @contextmanager
    def _step(self) -> Iterator[datetime]:
        """A transaction that begins by renewing the turn: who has lost it writes nothing."""
        now = self.clock()
        if now >= self.deadline:
            raise TimeIsUp
        with transaction.atomic():
            self.turn.renew(now)
            yield now

    def _refused(self, change: Change | None, error: DatabaseError) -> None:
        if change is None:
            raise error
        self._refuse(change.row, error)

    def _refuse(self, row: Row, error: DatabaseError) -> None:
        logger.warning("The database refused a machine of %s: %s", self.provider, error)
        detail = "The database refused this row: another machine has its name, or a figure breaks a rule of machines."
        self.applied.rejections.append(
            Rejection(row=row.row, external_id=row.external_id, code="conflict", detail=detail)
        )


def _hold_free(ids: list[int]) -> dict[int, bool]:
    """Lock those of the machines that are not under rent and that nobody else holds; whether each is listed.

    The lock leaves the key alone: an order that has only named the machine goes on, and meets us at its stock.
    """
    free = Machine.objects.filter(pk__in=ids, free_lots=F("lots")).order_by("pk")
    return dict(free.select_for_update(skip_locked=True, no_key=True).values_list("pk", "listed"))


def _contested(rows: Mapping[Key, Row], found: Differences) -> set[Key]:
    """Those of the rows whose GPUs somebody rents, or may be about to rent, as a machine that had them before.

    Such a machine was free when it was compared. If it is off-line now, nobody can order it any more; if it is not, and
    was not written with its other GPUs, an order holds it or has taken it, and the next run sees which.
    """
    hosts = {row.facts[HOST] for row in rows.values() if row.online} & found.contested.keys()
    if not hosts:
        return set()
    others = Machine.objects.filter(pk__in=[pk for host in hosts for pk in found.contested[host]])
    taken: dict[str, list[tuple[int, Slice]]] = {}
    for pk, *facts in others.filter(Q(online=True) | Q(free_lots__lt=F("lots"))).values_list("pk", *FACTS):
        if (has := Slice.of(tuple(facts))) != found.moved.get(pk):
            taken.setdefault(has.host, []).append((pk, has))
    return {
        key
        for key, row in rows.items()
        for pk, has in taken.get(row.facts[HOST], ())
        if row.online and pk != key and has.may_meet(Slice.of(row.facts))
    }


def _note_rented(missed: dict[int, Change | None], found: Differences, now: datetime) -> int:
    """Machines that an order took since they were compared: what the list keeps of them is noted, not written."""
    if not missed:
        return 0
    rows = {pk: None if change is None else change.row for pk, change in missed.items()}
    rented = withheld_since(list(missed), rows, found.free_before)
    withhold({pk: kept for pk, kept in rented.items() if kept}, now)
    return len(rented)


def _machine(provider: Provider, row: Row, name: str, pk: int | None = None) -> Machine:
    facts = dict(zip(FACTS, row.facts, strict=True))
    return Machine(
        pk=pk,
        provider=provider,
        external_id=row.external_id,
        name=name,
        lots=row.lots,
        free_lots=row.lots,
        online=row.online,
        **facts,
    )


def _chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]
