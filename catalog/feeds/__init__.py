"""Feeds of providers: one module per format, bytes in, offers and rejections out (docs/feeds.md)."""

from catalog.feeds import berth_format, runpod, vast
from catalog.feeds.gpu_names import GpuNames
from catalog.feeds.offers import (
    Adapter,
    Feed,
    Memory,
    Merged,
    Offer,
    Rejection,
    Request,
    Unreadable,
    memory_of,
    name_with_id,
    term_cap,
)
from catalog.feeds.places import Place, Places

ADAPTERS: dict[str, Adapter] = {
    adapter.slug: adapter for adapter in (berth_format.ADAPTER, vast.ADAPTER, runpod.ADAPTER)
}

__all__ = [
    "ADAPTERS",
    "Adapter",
    "Feed",
    "GpuNames",
    "Memory",
    "Merged",
    "Offer",
    "Place",
    "Places",
    "Rejection",
    "Request",
    "Unreadable",
    "memory_of",
    "name_with_id",
    "term_cap",
]
