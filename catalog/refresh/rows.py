"""Offers to rows of the catalog: GPU names and places resolved, packages priced, every rule of a machine checked."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from catalog.checks import machine_problems
from catalog.feeds import Feed, GpuNames, Offer, Places, Rejection, memory_of
from catalog.models import FeedQuestion, Gpu
from catalog.pricing import package_price

# What a list says of a machine, in the order of `Row.facts`; its name, lots and presence have rules of their own.
FACTS = (
    "gpu_id",
    "gpu_count",
    "tier",
    "country",
    "gpu_memory_bytes",
    "memory_unit",
    "memory_source",
    "place_raw",
    "interruptible",
    "max_term_days",
    "hourly_usd",
    "price_3_days_usd",
    "price_7_days_usd",
    "price_30_days_usd",
    "host",
    "host_gpus",
)
TIER = FACTS.index("tier")
HOURLY_USD = FACTS.index("hourly_usd")
GPU_COUNT, HOST, HOST_GPUS = FACTS.index("gpu_count"), FACTS.index("host"), FACTS.index("host_gpus")
# Of these, what the machine is; the rest is what it costs and for how long.
IDENTITY = slice(0, FACTS.index("memory_source") + 1)


class Row(NamedTuple):
    """One machine as its list has it now. `lots` are those that can be rented now, 1 when none can.

    `free`: how many the provider counts as free, without those under rent from us; None when it does not count.
    """

    row: int
    external_id: str
    name: str
    lots: int
    online: bool
    facts: tuple[Any, ...]
    rentable: bool = True
    free: int | None = None


@dataclass
class Resolved:
    """The rows by the provider's own names of them, what was refused, and what nobody understands yet.

    `questions` are counted by kind and spelling; `examples` has an offer of each.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    questions: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)


def resolve(feed: Feed) -> Resolved:
    """Every offer of the list as a row, or a rejection that says why not."""
    resolved = Resolved(rejections=list(feed.rejections))
    names, places, prices = GpuNames.load(), Places.load(), _Packages()
    nominal: dict[int, int | None] = dict(Gpu.objects.values_list("pk", "memory_gb_nominal"))
    # Consumed from the end, so that offers and rows are never all in memory together.
    feed.offers.reverse()
    while feed.offers:
        offer = feed.offers.pop()
        gpu_id = names.find(offer.gpu_name, offer.gpu_memory_bytes)
        if gpu_id is None:
            # A name that is known and fits no single GPU is for the provider to mend, or for staff to add a GPU.
            if not names.knows(offer.gpu_name):
                _ask(resolved, FeedQuestion.Kind.GPU, offer.gpu_name, offer)
            why = names.why_none(offer.gpu_name, offer.gpu_memory_bytes)
            resolved.rejections.append(_rejection(offer, *why))
            continue
        row = _row(offer, gpu_id, nominal.get(gpu_id), _country(resolved, places, offer), prices)
        problem = _problem(row, resolved)
        if problem is None:
            resolved.rows[row.external_id] = row
        else:
            resolved.rejections.append(_rejection(offer, *problem))
    return resolved


class _Packages:
    """Package prices by price per hour: a long list repeats its prices, and equal ones may be one object."""

    def __init__(self) -> None:
        self._known: dict[Decimal, tuple[Decimal, Decimal, Decimal]] = {}

    def of(self, hourly_usd: Decimal) -> tuple[Decimal, Decimal, Decimal]:
        """The hourly price, the week and the month."""
        known = self._known.get(hourly_usd)
        if known is None:
            known = self._known[hourly_usd] = (hourly_usd, package_price(hourly_usd, 7), package_price(hourly_usd, 30))
        return known


def _row(offer: Offer, gpu_id: int, nominal_gb: int | None, country: str | None, prices: _Packages) -> Row:
    memory = memory_of(offer, nominal_gb)
    hourly_usd, week, month = prices.of(offer.hourly_usd)
    # The provider may have rented some lots elsewhere. Of the catalog's lots only our own orders may be missing.
    lots = offer.lots if offer.free_lots is None else offer.free_lots
    facts = (
        gpu_id,
        offer.gpu_count,
        offer.tier,
        country,
        memory.size_bytes,
        memory.unit,
        memory.source,
        (offer.place or "")[:200],
        offer.interruptible,
        offer.max_term_days,
        hourly_usd,
        offer.price_3_days_usd,
        week if offer.price_7_days_usd is None else offer.price_7_days_usd,
        month if offer.price_30_days_usd is None else offer.price_30_days_usd,
        (offer.host or "")[:200],
        " ".join(sorted(offer.gpu_ids or ())),
    )
    online = offer.rentable and lots > 0
    return Row(offer.row, offer.external_id, offer.name, max(lots, 1), online, facts, offer.rentable, offer.free_lots)


def _country(resolved: Resolved, places: Places, offer: Offer) -> str | None:
    if not offer.place or not offer.place.strip():
        return None
    place = places.find(offer.place)
    if not place.understood:
        _ask(resolved, FeedQuestion.Kind.PLACE, offer.place, offer)
    return place.country


def _problem(row: Row, resolved: Resolved) -> tuple[str, str] | None:
    """Why the row cannot be a machine. Adapters have checked it; a new one that forgets must not sell nonsense."""
    if row.external_id in resolved.rows:
        other = resolved.rows[row.external_id].row
        return "duplicate", f"Row {other} has the same id “{row.external_id}”."
    values = dict(zip(FACTS, row.facts, strict=True))
    for problem in machine_problems({**values, "name": row.name, "lots": row.lots, "free_lots": row.lots}):
        return f"invalid_{problem.field}", f"{problem.field} {problem.message}"
    return None


def _ask(resolved: Resolved, kind: FeedQuestion.Kind, raw: str, offer: Offer) -> None:
    question = (kind.value, raw[:200])
    resolved.questions[question] += 1
    resolved.examples.setdefault(question, f"{offer.name} ({offer.external_id})"[:300])


def _rejection(offer: Offer, code: str, detail: str) -> Rejection:
    return Rejection(row=offer.row, external_id=offer.external_id, code=code, detail=detail)
