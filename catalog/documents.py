"""Rows of the catalog as JSON has them: memory as integer `_bytes` beside `_gib` texts, money as text."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from catalog.links import page_url
from catalog.models import Gpu, Machine, Option
from catalog.pricing import TERMS_DAYS
from catalog.units import to_gib

Document = dict[str, Any]


def machine_document(machine: Machine) -> Document:
    """A listing's facts. A term that it is not sold for has the price null."""
    prices = {days: machine.package_usd(days) for days in TERMS_DAYS}
    return {
        "id": machine.pk,
        "name": machine.name,
        "provider": machine.provider.name,
        "tier": machine.tier,
        "country": machine.country,
        "gpu": machine.gpu.slug,
        "gpu_count": machine.gpu_count,
        "memory_bytes_per_gpu": machine.gpu_memory_bytes,
        "memory_source": machine.memory_source or None,
        "free_lots": machine.lots_to_sell,
        "interruptible": machine.interruptible,
        "max_term_days": machine.max_term_days,
        "prices_usd": {str(days): None if price is None else f"{price:.2f}" for days, price in prices.items()},
        "html_url": page_url("machine", machine.pk),
    }


def listing_document(machine: Machine, now: datetime) -> Document:
    """A machine as the catalog's own address shows it: its facts, and whether it can be had at `now`."""
    memory = machine.gpu_memory_bytes
    hourly = {package.days: f"{package.hourly_usd:.4f}" for package in machine.packages}
    return {
        **machine_document(machine),
        "provider_invented": machine.provider.invented,
        "memory_gib_per_gpu": None if memory is None else f"{to_gib(memory)}",
        "lots": machine.lots,
        "cards": machine.cards,
        "availability": machine.availability(now).value,
        "checked_at": machine.provider.refreshed_at if machine.provider.has_feed else None,
        "package_hourly_usd": {str(days): hourly.get(days) for days in TERMS_DAYS},
    }


def gpu_document(gpu: Gpu) -> Document:
    """A GPU product; figures are per device, null where they are not published."""
    return {
        "slug": gpu.slug,
        "name": gpu.name,
        "vendor": gpu.vendor,
        "architecture": gpu.architecture or None,
        "form_factor": gpu.form_factor or None,
        "devices_per_card": gpu.devices_per_card,
        "memory_type": gpu.memory_type or None,
        "memory_gb_nominal": gpu.memory_gb_nominal,
        "memory_mib_reported": gpu.memory_mib_reported,
        "memory_bandwidth_gb_s": None if gpu.memory_bandwidth_gb_s is None else f"{gpu.memory_bandwidth_gb_s:.1f}",
        "compute_capability": gpu.compute_capability or None,
        "bf16": gpu.bf16,
        "fp8": gpu.fp8,
        "sources": gpu.sources,
        "html_url": f"{page_url('catalog')}?gpu={gpu.slug}",
    }


def option_document(option: Option) -> Document:
    """Something sold beside a machine, with its price for a lot and a day."""
    return {
        "slug": option.slug,
        "name": option.name,
        "description": option.description,
        "price_per_lot_day_usd": _exact(option.price_per_lot_day_usd),
        "max_quantity": option.max_quantity,
        "html_url": page_url("catalog"),
    }


def _exact(amount: Decimal) -> str:
    """At least two decimals, more where the price has more: it is rounded once, for a whole term."""
    whole, _, fraction = f"{amount:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"
