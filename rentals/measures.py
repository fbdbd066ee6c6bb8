"""How many orders were placed, and how many refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

from prometheus_client import Counter

from catalog.measures import REGISTRY
from catalog.models import Tier
from rentals.errors import RentalError

if TYPE_CHECKING:
    from rentals.ordering import Placement

ORDERS = Counter("berth_orders", "Orders placed, by tier.", ["tier"], registry=REGISTRY)
REFUSALS = Counter("berth_refusals", "Orders refused, by the code of the refusal.", ["code"], registry=REGISTRY)
REPLAYS = Counter("berth_replays", "Answers given again to a request that was repeated.", registry=REGISTRY)

# There from the first moment on: a rate of a series that appears with its first event misses that event.
for _tier in Tier.values:
    ORDERS.labels(_tier)

P = ParamSpec("P")


def counted(place: Callable[P, Placement]) -> Callable[P, Placement]:
    """Counts what came of it once it is committed; a refusal stays the same refusal."""

    @wraps(place)
    def placed(*args: P.args, **kwargs: P.kwargs) -> Placement:
        try:
            placement = place(*args, **kwargs)
        except RentalError as error:
            REFUSALS.labels(error.code).inc()
            raise
        if placement.replayed:
            REPLAYS.inc()
        else:
            ORDERS.labels(placement.order.machine_facts["tier"]).inc()
        return placement

    return placed
