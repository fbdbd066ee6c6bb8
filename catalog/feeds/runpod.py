"""RunPod's GPU types: `{"data": {"gpuTypes": [...]}}`. Prices are per GPU, memory is decimal GB (docs/feeds.md).

A GPU type is a product with list prices, and a list price is no stock. What can be rented now stands in `lowestPrice`.
Our own question asks for it once per tier; an answer that has it once tells the tier by whose list price it is.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from catalog.feeds import fields, offers
from catalog.feeds.adapting import read_rows
from catalog.feeds.fields import Fault
from catalog.feeds.texts import shown

_GB = 10**9
_STOCK = ("High", "Medium", "Low")
_LOWEST = "{ uninterruptablePrice stockStatus countryCode maxUnreservedGpuCount availableGpuCounts }"
QUERY = f"""query {{ gpuTypes {{
  id memoryInGb secureCloud communityCloud securePrice communityPrice
  maxGpuCountSecureCloud maxGpuCountCommunityCloud minPodGpuCount nodeGroupDatacenters {{ id }}
  secureLowest: lowestPrice(input: {{gpuCount: 1, secureCloud: true}}) {_LOWEST}
  communityLowest: lowestPrice(input: {{gpuCount: 1, secureCloud: false}}) {_LOWEST}
}} }}"""


class Row(msgspec.Struct, kw_only=True):
    """The fields that count. `id` is the long name, which tells a form factor where `displayName` does not."""

    id: Any = None
    memoryInGb: Any = None
    secureCloud: Any = None
    communityCloud: Any = None
    securePrice: Any = None
    communityPrice: Any = None
    maxGpuCountSecureCloud: Any = None
    maxGpuCountCommunityCloud: Any = None
    minPodGpuCount: Any = None
    nodeGroupDatacenters: Any = None
    lowestPrice: Any = None
    secureLowest: Any = None
    communityLowest: Any = None


def read(body: bytes, *, now: datetime) -> offers.Feed:
    """Raises: offers.Unreadable."""
    return read_rows(body, "data", "gpuTypes", row=Row, offers_of=_offers, now=now)


def request(secret: str) -> offers.Request:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    return offers.Request(method="POST", headers=headers, content=json.dumps({"query": QUERY}).encode())


def _offers(row: Row, number: int, now: datetime) -> Iterator[offers.Offer | Fault]:
    """One offer for each tier in stock; a type without any says so."""
    stock = [
        (tier, lowest)
        for tier, lowest in (
            (offers.SECURE, row.secureLowest),
            (offers.COMMUNITY, row.communityLowest),
            (None, row.lowestPrice),
        )
        if _in_stock(lowest)
    ]
    if not stock:
        yield Fault("not_in_stock", "“lowestPrice” has no price with a “stockStatus”: a list price is no stock.")
    for tier, lowest in stock:
        try:
            yield _offer(row, number, tier, lowest)
        except Fault as fault:
            yield fault


def _in_stock(lowest: Any) -> bool:
    if lowest is None:
        return False
    if not isinstance(lowest, dict):
        raise Fault("stock_invalid", f"“lowestPrice” is {shown(lowest)}; an object is expected, or null.")
    status = lowest.get("stockStatus")
    if status is not None and status not in _STOCK:
        raise Fault("stock_invalid", f"“stockStatus” is {shown(status)}; known are {', '.join(_STOCK)} and null.")
    return status is not None and lowest.get("uninterruptablePrice") is not None


def _offer(row: Row, number: int, tier: str | None, lowest: dict[str, Any]) -> offers.Offer:
    name = fields.identifier(row.id, "id", "id")
    per_gpu = fields.price(lowest["uninterruptablePrice"], "uninterruptablePrice")
    sold = _tiers_sold(row)
    tier = tier or _tier_of(per_gpu, row, sold)
    _check_sold(tier, row, sold)
    count = _count(row, tier, lowest)
    place = _place(row, tier, lowest)
    return offers.Offer(
        row=number,
        external_id="/".join([name, tier, place or "-", str(count)]),
        name=f"{fields.gpu_name(name, 'id')} × {count}, {tier}{f', {place}' if place else ''}",
        gpu_name=fields.gpu_name(name, "id"),
        gpu_count=count,
        gpu_memory_bytes=fields.memory(row.memoryInGb, "memoryInGb", _GB),
        memory_unit="GB",
        tier=tier,
        place=place,
        hourly_usd=fields.hourly_usd(per_gpu * count, "uninterruptablePrice", count),
    )


class _Listed(NamedTuple):
    """What a type says of one tier; 0 and null as its price mean that it is not sold."""

    tier: str
    switch: str
    on: Any
    field: str
    price: Any


def _listed(row: Row) -> tuple[_Listed, _Listed]:
    return (
        _Listed(offers.SECURE, "secureCloud", row.secureCloud, "securePrice", row.securePrice),
        _Listed(offers.COMMUNITY, "communityCloud", row.communityCloud, "communityPrice", row.communityPrice),
    )


def _tiers_sold(row: Row) -> dict[str, Decimal]:
    """The tiers that are switched on and have a list price."""
    return {
        one.tier: fields.price(one.price, one.field)
        for one in _listed(row)
        if fields.flag(one.on, one.switch, default=False) and not fields.is_nothing(one.price)
    }


def _check_sold(tier: str, row: Row, sold: dict[str, Decimal]) -> None:
    if tier in sold:
        return
    one = next(one for one in _listed(row) if one.tier == tier)
    if one.on:
        why = f"“{one.field}” is {shown(one.price)}: that means not sold"
    else:
        why = f"“{one.switch}” is {shown(one.on)}: that tier is switched off"
    raise Fault("not_sold", f"The type is in stock as {tier}, but {why}.")


def _tier_of(per_gpu: Decimal, row: Row, sold: dict[str, Decimal]) -> str:
    """The tier whose list price this is."""
    tiers = [tier for tier, listed in sold.items() if listed == per_gpu]
    if len(tiers) == 1:
        return tiers[0]
    off = next((one for one in _listed(row) if one.price == per_gpu), None)
    if tiers:
        why = "the list price of both tiers, so nothing says which is meant"
    elif off:
        why = f"the list price of {off.tier}, but “{off.switch}” is {shown(off.on)}: that tier is switched off"
    else:
        why = f"the list price of no tier (secure {shown(row.securePrice)}, community {shown(row.communityPrice)})"
    raise Fault("tier_unknown", f"“uninterruptablePrice” is {per_gpu}, {why}.")


def _count(row: Row, tier: str, lowest: dict[str, Any]) -> int:
    """The largest number of GPUs that one machine has free now: smaller ones would sell the same GPUs again."""
    counts = lowest.get("availableGpuCounts")
    if not counts:
        return fields.gpu_count(1 if row.minPodGpuCount is None else row.minPodGpuCount, "minPodGpuCount")
    if not isinstance(counts, list):
        raise Fault("gpu_count_invalid", f"“availableGpuCounts” is {shown(counts)}; a list of numbers is expected.")
    most = row.maxGpuCountSecureCloud if tier == offers.SECURE else row.maxGpuCountCommunityCloud
    limits = [limit for limit in (most, lowest.get("maxUnreservedGpuCount"), offers.MOST_GPUS) if limit is not None]
    free = [
        count
        for count in (fields.gpu_count(count, "availableGpuCounts") for count in counts)
        if all(count <= fields.whole(limit, "maxGpuCount", "gpu_count") for limit in limits)
    ]
    if not free:
        raise Fault("not_in_stock", "No number of “availableGpuCounts” is within the type's limits.")
    return max(free)


def _place(row: Row, tier: str, lowest: dict[str, Any]) -> str | None:
    """A Secure type is in its data center when there is but one; else what the answer says of the country."""
    centers = row.nodeGroupDatacenters
    if tier == offers.SECURE and isinstance(centers, list) and len(centers) == 1 and isinstance(centers[0], dict):
        return fields.place(centers[0].get("id"), "nodeGroupDatacenters")
    return fields.place(lowest.get("countryCode"), "countryCode")


ADAPTER = offers.Adapter(slug="runpod", label="RunPod GPU types", read=read, request=request)
