"""What to say when nothing is recommended: the machine that lacks least, and the changes that truly help."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from django.db.models import Max, Min, Q, QuerySet

from catalog.models import Machine
from catalog.pricing import TERMS_DAYS
from catalog.querysets import lots_to_sell
from sizing.answers import ANY_TIER, Change, NearestMiss
from sizing.engine.fit import Device, Rejection, fit, largest
from sizing.engine.workloads import lower_precisions, precision_of, shrinkable
from sizing.survey import Found, Search, Survey

MAX_CHANGES = 8


def nearest_miss(search: Search) -> NearestMiss | None:
    """The machine that passes every hard rule but the fit and lacks the least memory; the smaller id among equals."""
    devices = largest_devices(search.eligible())
    attempts = [fit(search.question.workload, device) for device in devices]
    rejections = [attempt for attempt in attempts if isinstance(attempt, Rejection)]
    if not rejections or len(rejections) < len(attempts):
        return None
    nearest = min(rejections, key=lambda rejection: rejection.lacking_bytes)
    equals = Q(pk__in=[])
    for rejection in rejections:
        if rejection.lacking_bytes == nearest.lacking_bytes:
            device = rejection.device
            equals |= Q(gpu_count=device.gpu_count, gpu_memory_bytes=device.memory_bytes)
    machine = search.eligible().filter(equals).select_related("gpu", "provider", "feed_absence").order_by("id").first()
    if machine is None:  # It went away between two questions to the database.
        return None
    best = next(one for one in rejections if one.device.gpu_count == machine.gpu_count)
    return NearestMiss(machine, best.estimate, best.lacking_bytes, max(one.device.memory_bytes for one in rejections))


def largest_devices(machines: QuerySet[Machine]) -> list[Device]:
    """For each number of GPUs the machine with most memory: what it cannot hold, no other with as many GPUs can."""
    largest = machines.order_by().values_list("gpu_count").annotate(Max("gpu_memory_bytes")).order_by("gpu_count")
    return [Device(gpu_count, memory_bytes) for gpu_count, memory_bytes in largest]


def helpful_changes(search: Search, survey: Survey) -> tuple[Change, ...]:
    """Single changes after which at least one machine is recommended, each verified by asking again with it.

    Preferences come first, because they give up nothing of the work itself; then the workload; then what is rented. The
    countries come last and say only how many machines: one outside them is never described.
    """
    changes = []
    for field, value, found in _candidates(search, survey):
        if found.machines:
            price = None if field == "countries" else found.cheapest_package_usd
            changes.append(Change(field, value, found.machines, price))
    return tuple(changes[:MAX_CHANGES])


def _candidates(search: Search, survey: Survey) -> Iterator[tuple[str, object, Found]]:
    """Each change worth a try, with what is found after it."""
    preferences = search.question.preferences
    workload = search.question.workload

    def ask(field: str, value: object) -> tuple[str, object, Found]:
        return field, value, search.changed(**{field: value}).survey().missing()

    if preferences.tier != ANY_TIER:
        yield "tier", ANY_TIER, survey.missing(["tier"])
    for field, needed in (("max_hourly_usd", _hourly_needed), ("budget_usd", _budget_needed)):
        cheapest = survey.missing([field]).cheapest_package_usd
        if cheapest is not None:
            yield ask(field, needed(search, cheapest))
    for lower in lower_precisions(workload):
        bits = precision_of(lower)
        yield "precision_bits", bits, survey.missing(precision_bits=bits)
    devices = largest_devices(search.preferred())
    for field in shrinkable(workload):
        asked = getattr(workload, field)
        most = max((largest(workload, field, asked, device) or 0 for device in devices), default=0)
        if 0 < most < asked:
            yield ask(field, most)
    lots = _most_lots(search)
    if 0 < lots < preferences.lots:
        yield ask("lots", lots)
    for days in TERMS_DAYS:
        if days != preferences.term_days:
            yield ask("term_days", days)
    if preferences.countries:
        yield ask("countries", ())


def _hourly_needed(search: Search, package_usd: Decimal) -> Decimal:
    """The smallest maximum per hour, to four decimals, that admits a package."""
    hourly = Fraction(package_usd) / search.hours
    return Decimal(-(-hourly.numerator * 10_000 // hourly.denominator)).scaleb(-4)


def _budget_needed(search: Search, package_usd: Decimal) -> Decimal:
    return package_usd * search.question.preferences.lots


def _most_lots(search: Search) -> int:
    """The most lots of one machine that are free and within the budget, everything else as asked; 0 for none."""
    budget = search.question.preferences.budget_usd
    if search.question.preferences.lots == 1:
        return 0
    single = search.changed(lots=1, budget_usd=None).recommended()
    cheapest = (
        single.order_by()
        .annotate(free=lots_to_sell())
        .values_list("free")
        .annotate(Min(search.price))
        .values_list("free", f"{search.price}__min")
    )
    return max(
        (free if budget is None else min(free, int(budget // price)) for free, price in cheapest),
        default=0,
    )
