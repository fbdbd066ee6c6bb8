"""The catalog in sentences, so that every page says the same of a machine."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from catalog import countries
from catalog.freshness import ago, seen_ago
from catalog.models import FeedAbsence, Machine, MemorySource, MemoryUnit, Tier
from catalog.units import counted_text

COMMUNITY_SENTENCE = (
    "Community machines run on the provider's own hardware; the provider can read the memory of the session."
)

_STATED = {
    MemorySource.DATA_CENTER: "measured (data center)",
    MemorySource.DATASHEET: "nominal (datasheet)",
    MemorySource.PROVIDER_REPORT: "reported by the provider, not verified",
}
_PROVENANCE = {
    MemorySource.DATA_CENTER: "The memory figure was measured by the data center that operates the machine.",
    MemorySource.DATASHEET: (
        "The memory figure is the manufacturer's datasheet, read as GB of 10^9 bytes, so it never promises too much."
    ),
    MemorySource.PROVIDER_REPORT: "The memory figure is reported by the provider, not verified.",
}
EU_LABEL = "EU (27 countries)"
UNKNOWN_MEMORY = "Memory unknown"
_NO_PROVENANCE = "No memory figure is known, so this machine is never recommended for a workload."


class Limit(NamedTuple):
    """Something to know before renting a machine: a code that never changes, and the sentence."""

    code: str
    text: str


def country(code: str) -> str:
    """A country, or the word `EU`, as a filter names it."""
    if code == countries.EU:
        return EU_LABEL
    return countries.names()[code]


def memory(machine: Machine) -> str:
    """The memory of one GPU as it was stated and as it is counted, each with its unit.

    "24 GB nominal (datasheet) = 22.35 GiB counted"
    """
    if machine.gpu_memory_bytes is None or machine.memory_figure is None:
        return UNKNOWN_MEMORY
    figure = _plain(machine.memory_figure)
    stated = f"{figure} {MemoryUnit(machine.memory_unit).value} {_STATED[MemorySource(machine.memory_source)]}"
    return f"{stated} = {counted_text(machine.gpu_memory_bytes)} counted"


def provenance(machine: Machine) -> str:
    """Where the memory figure comes from, in a sentence."""
    return _PROVENANCE[MemorySource(machine.memory_source)] if machine.memory_source else _NO_PROVENANCE


def lots(machine: Machine) -> str:
    """ "3 of 4 lots free"; the noun goes by the number before it: "0 of 1 lot free"."""
    return f"{machine.lots_to_sell:,} of {machine.lots:,} {'lot' if machine.lots == 1 else 'lots'} free"


def seen(machine: Machine, now: datetime) -> str:
    """When its provider's list last had the machine: "Seen 40 s ago"; or who says that it is there."""
    provider = machine.provider
    if not provider.has_feed:
        return "Set by the operator"
    if provider.refreshed_at is None:
        return "Its provider's list was never checked"
    absence = machine.absence
    if machine.online and not (absence and absence.is_whole):
        return seen_ago(provider, now)
    why = absence.get_why_display() if absence and machine.online else FeedAbsence.Why.GONE.label
    return f"{why}, checked {ago(now - provider.refreshed_at)}"


def limits(machine: Machine) -> list[Limit]:
    """What to know of this machine, whatever one wants to run on it."""
    found = [Limit("memory_source", provenance(machine))]
    if machine.max_term_days is not None:
        days = f"{machine.max_term_days} {'day' if machine.max_term_days == 1 else 'days'}"
        found.append(Limit("reservation_limit", f"It is let for at most {days} at a time."))
    if machine.lots == 1:
        found.append(Limit("reservation_limit", "There is a single lot of it."))
    if machine.interruptible:
        found.append(Limit("interruptible", "It is interruptible: the provider may stop it during the term."))
    if machine.country is None:
        found.append(Limit("location_unknown", "Its location is unknown, so it is inside no country you may ask for."))
    if machine.tier == Tier.COMMUNITY:
        found.append(Limit("provider_reads_memory", COMMUNITY_SENTENCE))
    return found


def _plain(figure: Decimal) -> str:
    return f"{figure.normalize():,f}"
