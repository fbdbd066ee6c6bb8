"""What a list changes: the stored machines of its provider go by once, each is found equal, changed, rented or gone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.models import F

from catalog.feeds import Rejection, name_with_id
from catalog.models import Machine, Provider
from catalog.refresh.rows import FACTS, GPU_COUNT, HOST, HOST_GPUS, HOURLY_USD, IDENTITY, TIER, Row
from catalog.refresh.withholding import Withheld, known_of, withheld

_OWN = ("id", "external_id", "name", "lots", "free_lots", "online", "gone_since")
# A price that moves by more is a slip of a unit or of a decimal point, until somebody says otherwise.
JUMP = 10


class Slice(NamedTuple):
    """Which GPUs of a host an offer sells. `named` is empty where nobody said which, and then they may be any."""

    host: str
    gpus: int
    named: str

    @classmethod
    def of(cls, facts: tuple[Any, ...]) -> "Slice":
        return cls(facts[HOST], facts[GPU_COUNT], facts[HOST_GPUS])

    def may_meet(self, other: "Slice") -> bool:
        """Whether the two may have a GPU in common."""
        if self.host != other.host or not (self.named and other.named):
            return self.host == other.host
        return not set(self.named.split()).isdisjoint(other.named.split())

    def is_still(self, told: "Slice") -> bool:
        """Whether a list that tells this of the same offer speaks of the same GPUs; naming them is no change."""
        return self[:2] == told[:2] and self.named in ("", told.named)


class Change(NamedTuple):
    """A machine that is to be as the row says, under a name that is free. `identity`: it is not the same thing now."""

    machine_id: int
    row: Row
    name: str
    identity: bool


@dataclass
class Differences:
    """What is to be written, and the counts of what is not: `stored` machines there are, of which `online` are on sale.

    `unmarked` are off-line already, and not known to be out of the list. `withheld` is what the list keeps anew of
    machines under rent, `back` are those of which it keeps nothing any more; `absent` are all of which the list before
    kept something. `free_before` are the free lots when the list was asked for. `contested` are, by host, the machines
    that the list has no more, or with other GPUs, while it offers others of that host: whoever rents one at this moment
    rents what the others would sell. `moved` are those of them that have other GPUs, with what the list tells of them.
    """

    free_before: Mapping[int, int]

    new: list[tuple[Row, str]] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    unmarked: list[int] = field(default_factory=list)
    contested: dict[str, list[int]] = field(default_factory=dict)
    moved: dict[int, Slice] = field(default_factory=dict)
    withheld: dict[int, Withheld] = field(default_factory=dict)
    back: list[int] = field(default_factory=list)
    absent: Mapping[int, Withheld] = field(default_factory=dict)
    stored: int = 0
    online: int = 0
    unchanged: int = 0
    rented: int = 0
    prices: int = 0
    price_jumps: int = 0


def compare(
    provider: Provider, rows: dict[str, Row], rejections: list[Rejection], free_before: Mapping[int, int]
) -> Differences:
    """The differences between the rows and the provider's machines.

    Rows without a free name, and those whose GPUs are under rent as another machine, join the rejections.
    """
    rows = _without_rented_gpus(provider, rows, rejections)
    found = Differences(free_before, absent=known_of(provider))
    renamed: list[tuple[int, Row, bool]] = []
    matched: set[str] = set()
    names: set[str] = set()
    hosts = {row.facts[HOST] for row in rows.values() if row.online} - {""}
    for stored in _stored(provider):
        machine_id, external_id, name, lots, free_lots, online, gone_since = stored[: len(_OWN)]
        facts = stored[len(_OWN) :]
        names.add(name)
        found.stored += 1
        found.online += online
        row = rows.get(external_id) if external_id is not None else None
        if row is not None:
            matched.add(row.external_id)
            _count_price(found, facts[HOURLY_USD], row.facts[HOURLY_USD])
        if facts[HOST] in hosts and not (row and Slice.of(facts).is_still(Slice.of(row.facts))):
            found.contested.setdefault(facts[HOST], []).append(machine_id)
            if row is not None:
                found.moved[machine_id] = Slice.of(row.facts)
        if free_lots < lots:
            found.rented += 1
            _keep(found, machine_id, withheld(lots, free_lots, facts, row, free_before.get(machine_id, 0)))
            continue
        if row is None:
            # Also a machine that was declared before its provider had a list: it is not in it.
            if online:
                found.gone.append(machine_id)
            else:
                if gone_since is None:
                    found.unmarked.append(machine_id)
                _keep(found, machine_id, None)
            continue
        # Of an offer that cannot be rented the lots say nothing.
        if not row.online and facts[TIER] == row.facts[TIER]:
            row = row._replace(lots=lots)
        if (online, gone_since, lots, facts) == (row.online, None, row.lots, row.facts) and _bears(name, row):
            found.unchanged += 1
            _keep(found, machine_id, None)
        elif _bears(name, row):
            found.changed.append(Change(machine_id, row, name, _is_another(facts, row)))
        else:
            renamed.append((machine_id, row, _is_another(facts, row)))
    # Names are given when all that are taken are known; a name that becomes free now is free the next time.
    for machine_id, row, identity in renamed:
        if free_name := _free_name(row, names, rejections):
            found.changed.append(Change(machine_id, row, free_name, identity))
        else:
            # A rejected row is not on sale, and not under what was true before either.
            found.gone.append(machine_id)
    for external_id, row in rows.items():
        if external_id not in matched and (free_name := _free_name(row, names, rejections)):
            found.new.append((row, free_name))
    return found


def _without_rented_gpus(provider: Provider, rows: dict[str, Row], rejections: list[Rejection]) -> dict[str, Row]:
    """The rows without those that sell GPUs which somebody rents from us as another offer of the same host.

    A list that learns of the rent offers the rest of its host in other slices. An offer beside which the list itself
    has the rented one as it was rented sells other GPUs; else, where either does not say which GPUs it has, they may be
    the same. A list that tells other GPUs of the rented one moves nobody's work to them.
    """
    rented: dict[str, list[tuple[str, Slice]]] = {}
    under_rent = Machine.objects.filter(provider=provider, free_lots__lt=F("lots")).exclude(host="").order_by("pk")
    for external_id, *facts in under_rent.values_list("external_id", *FACTS):
        taken, row = Slice.of(tuple(facts)), rows.get(external_id)
        if external_id is not None and not (row and taken.is_still(Slice.of(row.facts))):
            rented.setdefault(taken.host, []).append((external_id, taken))
    if not rented:
        return rows
    kept = dict(rows)
    for row in rows.values():
        offered = Slice.of(row.facts)
        for external_id, taken in rented.get(offered.host, ()):
            if row.external_id != external_id and offered.may_meet(taken):
                del kept[row.external_id]
                detail = (
                    f"GPUs of its host are under rent as “{external_id}”. It can be listed when that term has ended."
                )
                rejections.append(
                    Rejection(row=row.row, external_id=row.external_id, code="gpus_under_rent", detail=detail)
                )
                break
    return kept


def _stored(provider: Provider) -> Iterator[tuple[Any, ...]]:
    """The provider's machines, a few thousand in memory at a time."""
    machines = Machine.objects.filter(provider=provider).order_by("pk")
    return machines.values_list(*_OWN, *FACTS).iterator(chunk_size=2000)


def _count_price(found: Differences, before: Any, after: Any) -> None:
    found.prices += 1
    if after > before * JUMP or before > after * JUMP:
        found.price_jumps += 1


def _keep(found: Differences, machine_id: int, kept: Withheld | None) -> None:
    """What the list keeps of the machine; nothing is noted where the list before kept the same."""
    if kept == found.absent.get(machine_id):
        return
    if kept is None:
        found.back.append(machine_id)
    else:
        found.withheld[machine_id] = kept


def _is_another(facts: tuple[Any, ...], row: Row) -> bool:
    return facts[IDENTITY] != row.facts[IDENTITY]


def _bears(name: str, row: Row) -> bool:
    """Whether the machine has one of the two names that the row may have: so it keeps the one it was given."""
    return name == row.name or name == name_with_id(row.name, row.external_id)


def _free_name(row: Row, names: set[str], rejections: list[Rejection]) -> str | None:
    for name in (row.name, name_with_id(row.name, row.external_id)):
        if name not in names:
            names.add(name)
            return name
    detail = f"Another machine of this provider is called “{row.name}” already. Give this offer a name of its own."
    rejections.append(Rejection(row=row.row, external_id=row.external_id, code="name_taken", detail=detail))
    return None
