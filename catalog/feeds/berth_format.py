"""Berth's own format: `{"offers": [...]}`, the unit in each field's name, unknown fields refused (docs/feeds.md)."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from catalog.feeds import fields, offers
from catalog.feeds.adapting import read_rows
from catalog.feeds.fields import Fault
from catalog.feeds.texts import shown

# Field, bytes of its unit, and the unit as pages show it.
_MEMORY = (
    ("gpu_memory_bytes", 1, "bytes"),
    ("gpu_memory_mib", 2**20, "MiB"),
    ("gpu_memory_gib", 2**30, "GiB"),
    ("gpu_memory_gb", 10**9, "GB"),
)


class Row(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Every field of the format. A misspelled one would be a figure that is silently left out."""

    id: Any = None
    name: Any = None
    gpu: Any = None
    gpu_count: Any = None
    gpu_memory_bytes: Any = None
    gpu_memory_mib: Any = None
    gpu_memory_gib: Any = None
    gpu_memory_gb: Any = None
    tier: Any = None
    place: Any = None
    hourly_usd: Any = None
    price_3_days_usd: Any = None
    price_7_days_usd: Any = None
    price_30_days_usd: Any = None
    lots: Any = None
    free_lots: Any = None
    rentable: Any = None
    interruptible: Any = None
    available_until: Any = None
    host: Any = None
    host_gpu_count: Any = None
    gpu_ids: Any = None


def read(body: bytes, *, now: datetime) -> offers.Feed:
    """Raises: offers.Unreadable."""
    return read_rows(body, "offers", row=Row, offers_of=_offers, now=now)


def request(secret: str) -> offers.Request:
    headers = {"Accept": "application/json"}
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    return offers.Request(headers=headers)


def _offers(row: Row, number: int, now: datetime) -> Iterator[offers.Offer]:
    external_id = fields.identifier(row.id, "id", "id")
    gpu_name = fields.gpu_name(row.gpu, "gpu")
    count = fields.gpu_count(row.gpu_count, "gpu_count")
    hourly = fields.hourly_usd(_price(row.hourly_usd, "hourly_usd"), "hourly_usd", count)
    tier = _tier(row.tier)
    memory, unit = _memory(row)
    lots = 1 if row.lots is None else fields.lots(row.lots, "lots", least=1)
    free_lots = None if row.free_lots is None else fields.lots(row.free_lots, "free_lots", least=0)
    if tier == offers.COMMUNITY and lots != 1:
        raise Fault("lots_invalid", f"“lots” is {lots}; a community offer is one machine: give each a row of its own.")
    if free_lots is not None and free_lots > lots:
        raise Fault("lots_invalid", f"“free_lots” is {free_lots}, more than the {lots} of “lots”.")
    ends_at = fields.moment(row.available_until, "available_until")
    cap = offers.term_cap(ends_at, now)
    host, host_gpus, gpu_ids = _host(row, count, lots)
    name = f"{gpu_name} × {count}, offer {external_id}" if row.name is None else None
    yield offers.Offer(
        row=number,
        external_id=external_id,
        name=name or fields.text(row.name, "name", "name", fields.LONGEST_NAME),
        gpu_name=gpu_name,
        gpu_count=count,
        gpu_memory_bytes=memory,
        memory_unit=unit,
        tier=tier,
        place=fields.place(row.place, "place"),
        hourly_usd=hourly,
        price_3_days_usd=_package(row.price_3_days_usd, hourly, 3),
        price_7_days_usd=_package(row.price_7_days_usd, hourly, 7),
        price_30_days_usd=_package(row.price_30_days_usd, hourly, 30),
        lots=lots,
        free_lots=free_lots,
        rentable=fields.flag(row.rentable, "rentable", default=True) and cap != 0,
        interruptible=fields.flag(row.interruptible, "interruptible", default=False),
        ends_at=ends_at,
        max_term_days=cap or None,
        host=host,
        gpu_ids=gpu_ids,
        host_gpus=host_gpus,
    )


def _price(value: Any, field: str) -> Decimal:
    if value is not None and not isinstance(value, str):
        raise Fault("price_not_text", f'“{field}” is {shown(value)}; give the amount in quotes, such as "0.40".')
    return fields.price(value, field)


def _package(value: Any, hourly: Decimal, days: int) -> Decimal | None:
    field = f"price_{days}_days_usd"
    return None if value is None else fields.package_usd(_price(value, field), field, hourly, days)


def _tier(value: Any) -> str:
    if value in (offers.SECURE, offers.COMMUNITY):
        return value
    raise Fault("tier_unknown", f"“tier” is {shown(value)}; give “secure” or “community”.")


def _memory(row: Row) -> tuple[int | None, str]:
    given = [(field, size, unit) for field, size, unit in _MEMORY if getattr(row, field) is not None]
    if len(given) > 1:
        names = " and ".join(f"“{field}”" for field, _, _ in given)
        raise Fault("memory_invalid", f"The memory is given as {names}: give it once.")
    if not given:
        return None, "bytes"
    field, size, unit = given[0]
    return fields.memory(getattr(row, field), field, size), unit


def _host(row: Row, count: int, lots: int) -> tuple[str | None, int | None, frozenset[str] | None]:
    if row.host is None:
        if row.gpu_ids is not None or row.host_gpu_count is not None:
            raise Fault("host_missing", "“gpu_ids” and “host_gpu_count” need “host”: whose GPUs are they?")
        return None, None, None
    if lots != 1:
        raise Fault("host_invalid", "“host” names one machine, so “lots” must be 1.")
    host = fields.identifier(row.host, "host", "host")
    total = None if row.host_gpu_count is None else fields.lots(row.host_gpu_count, "host_gpu_count", least=count)
    if row.gpu_ids is None:
        return host, total, None
    ids = (
        [fields.identifier(one, "gpu_ids", "gpu_ids", least=0) for one in row.gpu_ids]
        if type(row.gpu_ids) is list
        else []
    )
    if len(set(ids)) != count:
        raise Fault("gpu_ids_invalid", f"“gpu_ids” must name each of the {count} GPUs once.")
    return host, total, frozenset(ids)


ADAPTER = offers.Adapter(slug="berth", label="Berth offers", read=read, request=request)
