"""The catalog: what can be rented, from whom and for how much. It knows no tenant and no workload."""

from catalog.models.feeds import FeedAbsence, FeedQuestion, FeedRejection, FeedRun, FeedState, PlaceAlias
from catalog.models.gpus import SLUG, Gpu, GpuAlias, slug_validator
from catalog.models.imports import ImportDraft
from catalog.models.listings import (
    DEMO_FEED,
    Availability,
    Machine,
    MemorySource,
    MemoryUnit,
    Provider,
    Tier,
    known_country,
)
from catalog.models.options import Option

__all__ = [
    "DEMO_FEED",
    "SLUG",
    "Availability",
    "FeedAbsence",
    "FeedQuestion",
    "FeedRejection",
    "FeedRun",
    "FeedState",
    "Gpu",
    "GpuAlias",
    "ImportDraft",
    "Machine",
    "MemorySource",
    "MemoryUnit",
    "Option",
    "PlaceAlias",
    "Provider",
    "Tier",
    "known_country",
    "slug_validator",
]
