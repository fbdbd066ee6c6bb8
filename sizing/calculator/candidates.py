"""GPUs to examine: products of the catalog of which one can be had now and holds an envelope. No recommendation."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Count, OuterRef, Subquery

from catalog.models import Gpu, Machine

MAX_CANDIDATES = 20
TERM_DAYS = 7


@dataclass(frozen=True)
class Candidate:
    """A GPU product with the cheapest machine that has it, and how many machines have it.

    Units: `headroom_bytes` per GPU of that machine; `package_usd` for one lot and TERM_DAYS.
    """

    machine: Machine
    machines: int
    headroom_bytes: int
    package_usd: Decimal


@dataclass(frozen=True)
class Candidates:
    """At most MAX_CANDIDATES of them, cheapest package first; `count` is how many products there are."""

    count: int
    listed: tuple[Candidate, ...]
    nominal_sizes_gb: tuple[int, ...]


def candidates(need_bytes: int, *, now: datetime) -> Candidates:
    """Products whose counted memory of one GPU is at least `need_bytes`. Unknown memory is never enough."""
    holding = Machine.objects.available(now=now).sold_for(TERM_DAYS).with_memory(need_bytes)
    counts = dict(holding.order_by().values_list("gpu").annotate(Count("id")))
    cheapest = holding.filter(gpu=OuterRef("pk")).cheapest_first(TERM_DAYS).values("pk")[:1]
    chosen = Gpu.objects.annotate(cheapest=Subquery(cheapest)).filter(cheapest__isnull=False).values("cheapest")
    machines = Machine.objects.filter(pk__in=chosen).cheapest_first(TERM_DAYS).with_facts()[:MAX_CANDIDATES]
    sizes = Gpu.objects.filter(memory_gb_nominal__isnull=False).values_list("memory_gb_nominal", flat=True)
    return Candidates(
        len(counts),
        tuple(
            Candidate(
                machine,
                counts[machine.gpu_id],
                (machine.gpu_memory_bytes or 0) - need_bytes,
                machine.price_7_days_usd,
            )
            for machine in machines
        ),
        tuple(sorted({size for size in sizes if size is not None})),
    )
