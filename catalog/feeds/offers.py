"""What every feed becomes: offers that can be listed, rows that were refused and why, rows that say the same twice.

Adapters turn bytes into a `Feed`; nothing here knows the database, so GPU names and places stay as they were spelled.
Units: memory in bytes per GPU, prices in USD per hour for the whole offer (one lot).
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple, Protocol

import msgspec

SECURE, COMMUNITY = "secure", "community"
PROVIDER_REPORT, DATASHEET = "provider_report", "datasheet"

MOST_BYTES = 64 * 2**20
MOST_ROWS = 200_000
MOST_GPUS = 16

# The dearest GPU on published lists costs under 10 USD an hour; ten times that is a slip of the keyboard, not an offer.
MOST_USD_PER_GPU_HOUR = Decimal(100)
# A tenth of a cent does not pay for the electricity of an idle GPU (10 W at 0.10 USD per kWh).
LEAST_USD_PER_GPU_HOUR = Decimal("0.001")

# No GPU has more, and a figure above it is in another unit than the adapter reads.
MOST_MEMORY_BYTES = 2 * 2**40
LEAST_MEMORY_BYTES = 2**28

# Of a machine's name, and of the provider's own name of it.
LONGEST_NAME, LONGEST_EXTERNAL_ID = 160, 120
LONGEST_TERM_DAYS = 30
# An order may come as late as a listing counts as fresh, and its term must still end in time.
ORDER_SLACK = timedelta(minutes=5)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One row that can be listed. Texts are clean of control characters and cut to the length of their columns.

    `gpu_memory_bytes` is what the feed reports, None when it does not; `memory_of` says what is to be counted.
    `max_term_days` is None when the end is unknown or lies beyond the longest term: such a limit binds nobody, and
    would have to be rewritten every day. `lots` is 1 for Community. `free_lots` is None when the feed does not count.
    `place` is as received, for `Places.find`. `host` is the physical machine, `gpu_ids` say which GPUs of
    it these are, `host_gpus` how many it has: what tells whether two offers sell the same GPUs.
    """

    row: int
    external_id: str
    name: str
    gpu_name: str
    gpu_count: int
    gpu_memory_bytes: int | None
    memory_unit: str
    tier: str
    place: str | None
    hourly_usd: Decimal
    price_3_days_usd: Decimal | None = None
    price_7_days_usd: Decimal | None = None
    price_30_days_usd: Decimal | None = None
    lots: int = 1
    free_lots: int | None = None
    rentable: bool = True
    interruptible: bool = False
    ends_at: datetime | None = None
    max_term_days: int | None = None
    host: str | None = None
    gpu_ids: frozenset[str] | None = None
    host_gpus: int | None = None


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """One row that was refused. Rows count from 1; the code is stable, the detail names field, value and fix."""

    row: int
    external_id: str | None
    code: str
    detail: str


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """One row that another stands for: the same id again (`duplicate`) or GPUs sold with it (`overlap`)."""

    row: int
    external_id: str
    code: str
    kept: str


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """A body that was read: every row seen is an offer, a rejection or merged into an offer.

    `truncated` says that the answer is as long as was asked for: there may be more, and what is missing is not gone.
    """

    seen: int
    offers: list[Offer]
    rejections: list[Rejection]
    merged: list[Merged] = []
    truncated: bool = False


class Unreadable(Exception):
    """The whole body is refused: nothing in it may be applied."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """How a feed is asked for: what goes to `outgoing.fetch` beside the address."""

    method: str = "GET"
    headers: Mapping[str, str] = {}
    content: bytes | None = None


class Reader(Protocol):
    def __call__(self, body: bytes, *, now: datetime) -> Feed: ...


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """One format: bytes in, offers and rejections out. `request` builds the question from the provider's secret.

    Raises: Unreadable (by `read`).
    """

    slug: str
    label: str
    read: Reader
    request: Callable[[str], Request]


class Memory(NamedTuple):
    """A memory per GPU as a machine stores it: a figure always has its source, and an unknown one has none."""

    size_bytes: int | None
    unit: str
    source: str


def memory_of(offer: Offer, nominal_gb: int | None) -> Memory:
    """The memory to count for an offer whose GPU has `nominal_gb` on its datasheet.

    Community: what the machine reports, as a report. Secure: no operator of ours measured it, so it is never
    "data center"; the datasheet's decimal reading counts, or the report where that is smaller.
    """
    reported = offer.gpu_memory_bytes
    if offer.tier == COMMUNITY:
        return Memory(reported, offer.memory_unit, PROVIDER_REPORT) if reported else Memory(None, "bytes", "")
    if nominal_gb is None:
        return Memory(None, "bytes", "")
    nominal = nominal_gb * 10**9
    if reported is not None and reported < nominal:
        return Memory(reported, offer.memory_unit, DATASHEET)
    return Memory(nominal, "GB", DATASHEET)


def term_cap(ends_at: datetime | None, now: datetime) -> int | None:
    """The whole days an order may still run, or None when the end does not shorten any term. 0: nothing is left."""
    if ends_at is None:
        return None
    days = (ends_at - now - ORDER_SLACK) // timedelta(days=1)
    return None if days >= LONGEST_TERM_DAYS else max(days, 0)


def to_six_places(amount: Decimal) -> Decimal:
    """A price per hour as the catalog keeps it."""
    return amount.quantize(Decimal("0.000001"), rounding=ROUND_HALF_UP)


def name_with_id(name: str, external_id: str) -> str:
    """The name that no other offer of the provider has, within the length of a machine's name.

    >>> name_with_id("RTX 4090", "7"), len(name_with_id("x" * 160, "7"))
    ('RTX 4090 (7)', 160)
    """
    end = f" ({external_id})"
    return name[: max(LONGEST_NAME - len(end), 1)].rstrip() + end
