"""What of a listing under rent its list still offers: the row stays as it is, and some free lots are not sold.

The provider counts its free lots without those that are under rent from us, and an order that came after the list was
asked for is not known to it yet.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, cast

from django.db.models import F

from catalog.models import FeedAbsence, Machine, Provider
from catalog.pricing import TERMS_DAYS
from catalog.refresh.rows import FACTS, IDENTITY, Row

Why = FeedAbsence.Why

_WORDS = {
    "gpu_id": "another GPU",
    "gpu_count": "another number of GPUs",
    "tier": "another tier",
    "country": "another country",
    "gpu_memory_bytes": "another memory",
    "memory_source": "memory from another source",
}


class Withheld(NamedTuple):
    """How many of a machine's free lots are not to be sold, and why. `detail`: which terms are stricter."""

    lots: int
    why: str
    detail: str = ""


def withheld(
    lots: int, free_lots: int, facts: tuple[Any, ...], row: Row | None, free_before: int = 0
) -> Withheld | None:
    """What the list, with this row for the machine or none, keeps of a machine under rent; None when nothing.

    `free_before`: its free lots when the list was asked for; those that an order took since are in the list's count.
    """
    if row is None or not row.rentable:
        return Withheld(lots, Why.GONE)
    if stricter := _stricter(facts, row.facts):
        return Withheld(lots, Why.TERMS, "; ".join(stricter)[:300])
    missing = lots - row.lots if row.free is None else max(free_lots, free_before) - row.free
    return Withheld(missing, Why.FEWER) if missing > 0 else None


def _stricter(stored: tuple[Any, ...], told: tuple[Any, ...]) -> list[str]:
    """Which of the list's terms are worse for who rents than those that are stored; another machine counts as worse."""
    before, now = dict(zip(FACTS, stored, strict=True)), dict(zip(FACTS, told, strict=True))
    # What was unknown and is known now (staff explained its place) makes no other machine of it.
    known = [name for name in FACTS[IDENTITY] if name in _WORDS and before[name] not in (None, "")]
    found = [_WORDS[name] for name in known if before[name] != now[name]]
    if now["interruptible"] and not before["interruptible"]:
        found.append("interruptible")
    if now["hourly_usd"] > before["hourly_usd"]:
        found.append(f"{now['hourly_usd'].normalize():f} USD an hour instead of {before['hourly_usd'].normalize():f}")
    for days in TERMS_DAYS:
        # A longest term that only nears the end of the offer, and still has every term in it, takes nothing away.
        asked, offered = _package(before, days), _package(now, days)
        if asked is None:
            continue
        if offered is None:
            found.append(f"no term of {days} days")
        elif offered > asked:
            found.append(f"{offered:.2f} USD for {days} days instead of {asked:.2f}")
    return found


def _package(facts: Mapping[str, Any], days: int) -> Decimal | None:
    longest, price = facts["max_term_days"], facts[f"price_{days}_days_usd"]
    return None if longest is not None and days > longest else cast(Decimal | None, price)


def free_lots_of(provider: Provider) -> dict[int, int]:
    """The free lots of its machines that have several, by machine: where one is rented, others may still be free."""
    return dict(Machine.objects.filter(provider=provider, lots__gt=1).values_list("pk", "free_lots"))


def known_of(provider: Provider) -> dict[int, Withheld]:
    """What the list before kept, by machine."""
    absences = FeedAbsence.objects.filter(machine__provider=provider)
    return {one.pk: Withheld(one.lots, one.why, one.detail) for one in absences}


def withhold(these: Mapping[int, Withheld], now: datetime) -> None:
    FeedAbsence.objects.bulk_create(
        [FeedAbsence(machine_id=pk, since=now, **one._asdict()) for pk, one in sorted(these.items())],
        update_conflicts=True,
        unique_fields=["machine"],
        update_fields=["lots", "why", "detail", "since"],
    )


def withheld_since(
    pks: list[int], rows: Mapping[int, Row | None], free_before: Mapping[int, int]
) -> dict[int, Withheld | None]:
    """For those of the machines that are under rent now, what the list keeps of each, or None."""
    under_rent = Machine.objects.filter(pk__in=pks, free_lots__lt=F("lots")).order_by("pk")
    return {
        pk: withheld(lots, free_lots, tuple(facts), rows[pk], free_before.get(pk, 0))
        for pk, lots, free_lots, *facts in under_rent.values_list("pk", "lots", "free_lots", *FACTS)
    }
