"""Vast.ai's bundles: `{"offers": [...]}`. Prices are per whole offer, memory is MiB per GPU (docs/feeds.md)."""

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from catalog.feeds import fields, offers
from catalog.feeds.adapting import read_rows
from catalog.feeds.fields import Fault
from catalog.feeds.texts import shown

# The service's own limit, when none is asked for, is 64. An answer as long as this one may have been cut.
MOST_ASKED = 20_000
_MIB = 2**20


class Row(msgspec.Struct, kw_only=True):
    """The fields that count, of about 94. `verification` is quality and no tier; `public_ipaddr` is never read."""

    id: Any = None
    machine_id: Any = None
    hosting_type: Any = None
    gpu_name: Any = None
    num_gpus: Any = None
    gpu_frac: Any = None
    gpu_ids: Any = None
    gpu_ram: Any = None
    gpu_total_ram: Any = None
    dph_total: Any = None
    is_bid: Any = None
    rentable: Any = None
    rented: Any = None
    end_date: Any = None
    duration: Any = None
    geolocation: Any = None


def read(body: bytes, *, now: datetime) -> offers.Feed:
    """Raises: offers.Unreadable."""
    return read_rows(body, "offers", row=Row, offers_of=_offers, now=now, most_asked=MOST_ASKED)


def request(secret: str) -> offers.Request:
    question = {"rentable": {"eq": True}, "type": "on-demand", "order": [["dph_total", "asc"]], "limit": MOST_ASKED}
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    return offers.Request(method="POST", headers=headers, content=json.dumps(question).encode())


def _offers(row: Row, number: int, now: datetime) -> Iterator[offers.Offer]:
    external_id = fields.identifier(row.id, "id", "id")
    amount = fields.price(row.dph_total, "dph_total")
    # Without it nobody can see that two offers are slices of one machine.
    host = fields.identifier(row.machine_id, "machine_id", "host")
    gpu_name = fields.gpu_name(row.gpu_name, "gpu_name")
    count = fields.gpu_count(row.num_gpus, "num_gpus")
    ends_at = _end(row, now)
    cap = offers.term_cap(ends_at, now)
    rentable = fields.flag(row.rentable, "rentable", default=False)
    rented = fields.flag(row.rented, "rented", default=False)
    yield offers.Offer(
        row=number,
        external_id=external_id,
        name=f"{gpu_name} × {count}, offer {external_id}",
        gpu_name=gpu_name,
        gpu_count=count,
        gpu_memory_bytes=_memory(row, count),
        memory_unit="MiB",
        tier=_tier(row.hosting_type),
        place=fields.place(row.geolocation, "geolocation"),
        hourly_usd=fields.hourly_usd(amount, "dph_total", count),
        rentable=rentable and not rented and cap != 0,
        interruptible=fields.flag(row.is_bid, "is_bid", default=False),
        ends_at=ends_at,
        max_term_days=cap or None,
        host=host,
        gpu_ids=_gpu_ids(row.gpu_ids, count),
        host_gpus=_host_gpus(row.gpu_frac, count),
    )


def _memory(row: Row, count: int) -> int | None:
    per_gpu = fields.memory(row.gpu_ram, "gpu_ram", _MIB)
    if per_gpu is not None:
        return per_gpu
    # The total is documented as the figure per GPU times their number.
    return fields.memory(row.gpu_total_ram, "gpu_total_ram", _MIB, gpus=count)


def _tier(hosting_type: Any) -> str:
    if hosting_type is None or (hosting_type == 0 and not isinstance(hosting_type, bool)):
        return offers.COMMUNITY
    if hosting_type == 1 and not isinstance(hosting_type, bool):
        return offers.SECURE
    raise Fault(
        "tier_unknown",
        f"“hosting_type” is {shown(hosting_type)}; 1 is a data center, 0 or null somebody's own hardware.",
    )


def _end(row: Row, now: datetime) -> datetime | None:
    """The earlier of the date and of the seconds left: where the two disagree, no more than both is promised."""
    ends = [fields.epoch(row.end_date, "end_date"), fields.seconds_left(row.duration, "duration", now)]
    return min((end for end in ends if end is not None), default=None)


def _gpu_ids(value: Any, count: int) -> frozenset[str] | None:
    """Which GPUs of the machine these are; None when the list does not name as many as are offered."""
    if not isinstance(value, list) or len(value) != count:
        return None
    try:
        ids = frozenset(fields.identifier(one, "gpu_ids", "gpu_ids", least=0) for one in value)
    except Fault:
        return None
    return ids if len(ids) == count else None


def _host_gpus(fraction: Any, count: int) -> int | None:
    """How many GPUs the whole machine has; less than it has rather than more."""
    if isinstance(fraction, bool) or not isinstance(fraction, int | Decimal) or not 0 < fraction <= 1:
        return None
    whole = count / Decimal(fraction)
    # A third is written 0.333: near a whole number, it is meant.
    near = whole.to_integral_value()
    return int(near) if abs(whole - near) < Decimal("0.02") else int(whole)


ADAPTER = offers.Adapter(slug="vast", label="Vast.ai bundles", read=read, request=request)
