"""What must hold of a machine before it may be sold: the same rules for seed files, imports and feeds.

The database repeats most of them as constraints; these say which field is wrong, for rows that no form has seen.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, TypeGuard

from catalog import countries
from catalog.models import MemorySource, MemoryUnit, Tier
from catalog.units import GIB
from catalog.visible import is_plain_line

MAX_GPUS = 16
MAX_LOTS = 100_000
MAX_TERM_DAYS = 365
# Beyond these a figure is a slip of a unit or of a decimal point, not an offer.
MAX_HOURLY_USD = Decimal(10_000)
MAX_PACKAGE_USD = MAX_HOURLY_USD * 24 * 30
MAX_MEMORY_BYTES = 4096 * GIB

# Looked up once: Django builds `.values` anew each time, and a list of 100,000 offers asks for each.
_TIERS = tuple(Tier.values)
_UNITS = tuple(MemoryUnit.values)
SOURCES_OF_TIER = {
    Tier.SECURE: (MemorySource.DATA_CENTER, MemorySource.DATASHEET),
    Tier.COMMUNITY: (MemorySource.PROVIDER_REPORT,),
}


class Problem(NamedTuple):
    """One broken rule: the field it is about, and a sentence that says what is right."""

    field: str
    message: str


def machine_problems(row: Mapping[str, Any]) -> list[Problem]:
    """Every rule that the row of a machine breaks; a sound row has none.

    Shape: keys are field names of Machine, amounts are Decimal, memory is whole bytes; a key left out is unknown.
    """
    return [*_identity(row), *_counts(row), *_memory(row), *_prices(row)]


def _identity(row: Mapping[str, Any]) -> Iterator[Problem]:
    name = row.get("name")
    if not isinstance(name, str) or not name.strip():
        yield Problem("name", "must be a text that is not empty.")
    elif len(name) > 160 or not is_plain_line(name):
        yield Problem("name", "must be at most 160 printable characters, with something to see.")
    if row.get("tier") not in _TIERS:
        yield Problem("tier", f"must be one of {', '.join(Tier.values)}.")
    country = row.get("country")
    if country is not None and country not in countries.names():
        yield Problem("country", "must be an ISO 3166-1 alpha-2 code such as DE, or null when unknown.")


def _counts(row: Mapping[str, Any]) -> Iterator[Problem]:
    if not _is_whole(row.get("gpu_count"), 1, MAX_GPUS):
        yield Problem("gpu_count", f"must be a whole number from 1 to {MAX_GPUS}.")
    lots = row.get("lots")
    if not _is_whole(lots, 1, MAX_LOTS):
        yield Problem("lots", f"must be a whole number from 1 to {MAX_LOTS:,}.")
        return
    assert isinstance(lots, int)
    if not _is_whole(row.get("free_lots"), 0, lots):
        yield Problem("free_lots", f"must be a whole number from 0 to the {lots} lots.")
    if row.get("tier") == Tier.COMMUNITY and lots != 1:
        yield Problem("lots", "must be 1: a Community machine is one lot.")
    longest = row.get("max_term_days")
    if longest is not None and not _is_whole(longest, 1, MAX_TERM_DAYS):
        yield Problem("max_term_days", f"must be a whole number from 1 to {MAX_TERM_DAYS}, or null.")


def _memory(row: Mapping[str, Any]) -> Iterator[Problem]:
    size, source = row.get("gpu_memory_bytes"), row.get("memory_source") or ""
    if size is not None and not _is_whole(size, 1, MAX_MEMORY_BYTES):
        yield Problem("gpu_memory_bytes", f"must be whole bytes from 1 to {MAX_MEMORY_BYTES:,}, or null when unknown.")
    if size is None and source:
        yield Problem("memory_source", "must be empty while the memory is unknown.")
    if size is not None and not source:
        yield Problem("memory_source", "must say where the memory figure comes from.")
    if source and row.get("tier") in _TIERS and source not in SOURCES_OF_TIER[Tier(row["tier"])]:
        known = " or ".join(SOURCES_OF_TIER[Tier(row["tier"])])
        yield Problem("memory_source", f"must be {known} for the tier {row['tier']}.")
    if row.get("memory_unit", MemoryUnit.BYTES) not in _UNITS:
        yield Problem("memory_unit", f"must be one of {', '.join(_UNITS)}.")


def _prices(row: Mapping[str, Any]) -> Iterator[Problem]:
    hourly = row.get("hourly_usd")
    if not _is_amount(hourly, MAX_HOURLY_USD):
        yield Problem("hourly_usd", f"must be above 0 and at most {MAX_HOURLY_USD:,}.")
    elif hourly != round(hourly, 6):
        yield Problem("hourly_usd", "must have at most six decimals.")
    for field in ("price_7_days_usd", "price_30_days_usd", "price_3_days_usd"):
        amount = row.get(field)
        if amount is None and field == "price_3_days_usd":
            continue
        if not _is_amount(amount, MAX_PACKAGE_USD):
            yield Problem(field, f"must be above 0 and at most {MAX_PACKAGE_USD:,}.")
        elif amount != round(amount, 2):
            yield Problem(field, "must be whole cents.")


def _is_whole(value: Any, least: int, most: int) -> bool:
    # True is an int to Python, but no count.
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_amount(value: Any, most: Decimal) -> TypeGuard[Decimal]:
    return isinstance(value, Decimal) and value.is_finite() and 0 < value <= most
