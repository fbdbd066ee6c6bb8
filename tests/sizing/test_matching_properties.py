"""Over random catalogs and questions the answer equals a brute-force list: one machine at a time, in plain Python."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from django.db import transaction
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from catalog.countries import expand
from catalog.models import Machine
from catalog.units import GIB
from sizing.answers import NOT_CONSIDERED, Answer, Candidate, HardLimits, Preferences, Question
from sizing.engine.estimate import estimate, splits
from sizing.engine.fit import Device, Fit, fit
from sizing.engine.workloads import (
    MAX_REQUESTS,
    Notebook,
    RunModel,
    Workload,
    lower_precisions,
    precision_of,
    shrinkable,
)
from sizing.matching import recommend
from sizing.models import AiModel
from tests.factories import make_gpu, make_provider
from tests.sizing.seed_shapes import IMAGE, SPEECH, fine_tune, images, transcribe
from tests.sizing.seed_shapes import MODELS as SEEDED

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
# A seed has no simpler neighbour: looking for one only takes minutes before a failure is told.
ENOUGH = settings(max_examples=60, deadline=None, phases=set(Phase) - {Phase.shrink})
FEWER = settings(ENOUGH, max_examples=30)


def model(name: str, parameters: int, heads: int, kv_heads: int | None, width: int | None) -> AiModel:
    elements = 2 * kv_heads * 128 if kv_heads else 576
    groups = [{"layers": 32, "elements_per_token": elements, "kv_heads": kv_heads, "window": None}]
    return AiModel(
        slug=name,
        name=name,
        parameters=parameters,
        attention_heads=heads,
        cache_groups=groups,
        intermediate_size=width,
        max_context=131_072,
    )


MODELS = (
    model("plain", 8_030_261_248, 32, 8, 14_336),
    model("forty-heads", 13_015_864_320, 40, 40, 13_824),
    model("copied-cache", 7_615_616_512, 28, 4, 18_944),
    model("latent-cache", 15_706_484_224, 16, None, None),
    model("seventy", 70_553_706_496, 64, 8, 28_672),
)


# --- Random questions and catalogs ------------------------------------------------------------------------------------

AMOUNTS = ["0.10", "16.80", "50.40", "110.00", "110.01"]
Case = tuple[Question, HardLimits, list[dict[str, Any]]]


def mostly(random: Random, usual: Any, *others: Any) -> Any:
    """The usual value four times in five."""
    return usual if random.random() < 0.8 else random.choice(others)


def language_question(random: Random) -> tuple[AiModel, RunModel]:
    chosen = random.choice(MODELS)
    return chosen, RunModel(
        chosen.shape(),
        precision_bits=random.choice([16, 16, 8, 4]),
        context=random.choice([1, 4096, 4096, 32_768, 131_072]),
        requests=mostly(random, 1, 2, 16, 300),
    )


def other_question(random: Random) -> tuple[AiModel | None, Workload]:
    """A workload of a task that uses one GPU."""
    bits = random.choice([16, 16, 8, 4])
    kind = random.choice(["fine_tune", "fine_tune", "image", "speech", "notebook"])
    if kind == "fine_tune":
        slug = random.choice(["smollm2-360m", "llama-3.1-8b", "phi-4", "llama-3.1-70b"])
        length, batch = random.choice([64, 2048, 8192]), random.choice([1, 1, 8])
        return SEEDED[slug], fine_tune(slug, bits, length, batch, random.choice([1, 16, 256]))
    if kind == "image":
        slug = random.choice(list(IMAGE))
        return SEEDED[slug], images(slug)
    if kind == "speech":
        slug = random.choice(list(SPEECH))
        return SEEDED[slug], transcribe(slug, bits, random.choice([1, 2, 64, 1000]))
    return None, Notebook(random.choice([8 * GIB, 24 * GIB, 24 * 10**9, 200 * GIB]), "so many GiB")


def random_question(random: Random) -> Question:
    ai_model, workload = random.choice([language_question, other_question])(random)
    budgets = ["0.05", "16.79", "50.34", "110", "220.00", "329.99", "330.00"]
    hourly = ["0.0001", "0.1", "0.0999", "0.3", "0.65", "0.654762"]
    preferences = Preferences(
        budget_usd=random.choice([None, Decimal(random.choice(budgets))]),
        max_hourly_usd=random.choice([None, Decimal(random.choice(hourly))]),
        tier=random.choice(["any", "any", "secure", "community"]),
        countries=mostly(random, (), ("EU",), ("EU", "US"), ("US",)),
        term_days=random.choice([3, 7, 7, 30]),
        lots=random.choice([1, 1, 2, 3]),
    )
    return Question(ai_model, workload, preferences)


def random_machine(random: Random, workload: Workload, scarce: bool) -> dict[str, Any]:
    """Its memory is ordinary, unknown, or within a byte of what a split needs, legal or not.

    `scarce` leaves out the ample ones.
    """
    community = random.random() < 0.4
    need = estimate(
        random.choice([workload, workload, *lower_precisions(workload)]), random.choice([1, 1, 2, 3, 4, 7, 8])
    )
    edge = need.per_gpu_bytes + random.choice([-1, 0, 1])
    ordinary = random.choice([8 * GIB, 16 * GIB, 24 * 10**9, 24 * GIB, *([] if scarce else [80 * GIB, 180 * GIB])])
    memory = mostly(random, random.choice([edge, ordinary, ordinary]), None, GIB) if not scarce else ordinary
    lots = 1 if community else random.randint(1, 4)
    price = {days: Decimal(random.choice(AMOUNTS)) for days in (3, 7, 30)}
    return {
        "gpu_count": random.choice([1, 1, 2, 3, 4, 7, 8, 16]),
        "gpu_memory_bytes": memory,
        "memory_source": "" if memory is None else "provider_report" if community else "data_center",
        "tier": "community" if community else "secure",
        "country": random.choice([None, "DE", "DE", "FR", "US", "GB", "GF", "NO"]),
        "lots": lots,
        "free_lots": mostly(random, lots, 0),
        "listed": mostly(random, True, False),
        "online": mostly(random, True, False),
        "max_term_days": mostly(random, None, 3, 7, 29, 30),
        "price_3_days_usd": mostly(random, price[3], None),
        "price_7_days_usd": price[7],
        "price_30_days_usd": price[30],
        "provider": mostly(random, "declared", "fresh", "fresh", "stale", "never"),
        "gpu": mostly(random, "NVIDIA", "AMD"),
    }


def random_case(seed: int, size: int) -> Case:
    """A question, a caller's limits and so many machines. They come from a seed: value by value, most of what would be
    drawn is a catalog in which nothing is available."""
    random = Random(seed)
    question = random_question(random)
    limits = HardLimits(
        tiers=mostly(random, None, ("secure",), ("secure", "community")),
        countries=mostly(random, None, ("DE", "US"), ()),
    )
    scarce = random.random() < 0.3
    return question, limits, [random_machine(random, question.workload, scarce) for _ in range(size)]


cases = st.builds(random_case, seed=st.integers(0, 2**32 - 1), size=st.integers(10, 40))


@contextmanager
def catalog_of(rows: list[dict[str, Any]]) -> Iterator[None]:
    """The machines in the database, which is empty again afterwards."""
    with transaction.atomic():
        feed = {"feed_format": "json", "feed_url": "https://example.com/feed.json"}
        rows_of_providers = {
            "declared": make_provider("declared"),
            "fresh": make_provider("fresh", **feed, refreshed_at=NOW - timedelta(minutes=4, seconds=59)),
            "stale": make_provider("stale", **feed, refreshed_at=NOW - timedelta(minutes=5)),
            "never": make_provider("never", **feed),
        }
        rows_of_gpus = {vendor: make_gpu(vendor.lower(), vendor=vendor) for vendor in ("NVIDIA", "AMD")}
        add(rows, rows_of_providers, rows_of_gpus)
        yield
        transaction.set_rollback(True)


def add(rows: list[dict[str, Any]], providers: Any = None, gpus: Any = None) -> None:
    from catalog.models import Gpu, Provider

    providers = providers or {provider.slug: provider for provider in Provider.objects.all()}
    gpus = gpus or {gpu.vendor: gpu for gpu in Gpu.objects.all()}
    first = Machine.objects.count()
    Machine.objects.bulk_create(
        Machine(
            **{**row, "provider": providers[row["provider"]], "gpu": gpus[row["gpu"]]},
            name=f"Machine {number}",
            hourly_usd=Decimal("0.5"),
        )
        for number, row in enumerate(rows, start=first)
    )


# --- Brute force ------------------------------------------------------------------------------------------------------


@dataclass
class Verdict:
    """What plain reading of the rules says about one listed machine."""

    machine: Machine
    reason: str
    outcome: Any
    misses: tuple[str, ...]
    price: Decimal | None

    @property
    def rank(self) -> tuple[Any, ...]:
        return self.price, -self.outcome.headroom_bytes, self.machine.tier != "secure", self.machine.pk


def verdict(machine: Machine, question: Question, limits: HardLimits) -> Verdict:
    wished, workload = question.preferences, question.workload
    price = {3: machine.price_3_days_usd, 7: machine.price_7_days_usd, 30: machine.price_30_days_usd}[wished.term_days]
    age = None if machine.provider.refreshed_at is None else NOW - machine.provider.refreshed_at
    outcome = None
    if machine.gpu_memory_bytes is not None:
        outcome = fit(workload, Device(machine.gpu_count, machine.gpu_memory_bytes))
    choices = [wished.countries or None, limits.countries]
    if any(chosen is not None and machine.country not in expand(chosen) for chosen in choices):
        reason = "outside_countries"
    elif limits.tiers is not None and machine.tier not in limits.tiers:
        reason = "outside_policy"
    elif not machine.online or (machine.provider.feed_url and (age is None or age >= timedelta(minutes=5))):
        reason = "off_line"
    elif machine.free_lots < wished.lots:
        reason = "out_of_stock"
    elif price is None or (machine.max_term_days is not None and machine.max_term_days < wished.term_days):
        reason = "term_not_offered"
    elif outcome is None:
        reason = "memory_unknown"
    else:
        reason = "" if isinstance(outcome, Fit) else outcome.code
    misses = []
    if reason == "":
        assert price is not None
        if wished.budget_usd is not None and price * wished.lots > wished.budget_usd:
            misses.append("budget_usd")
        hourly = Fraction(price) / (24 * wished.term_days)
        if wished.max_hourly_usd is not None and hourly > Fraction(wished.max_hourly_usd):
            misses.append("max_hourly_usd")
        if wished.tier not in ("any", machine.tier):
            misses.append("tier")
    return Verdict(machine, reason, outcome, tuple(misses), price)


def verdicts(question: Question, limits: HardLimits) -> list[Verdict]:
    listed = Machine.objects.filter(listed=True).select_related("provider")
    return [verdict(machine, question, limits) for machine in listed]


def recommendable(question: Question, limits: HardLimits) -> list[Verdict]:
    return [one for one in verdicts(question, limits) if not one.reason and not one.misses]


def with_change(question: Question, field: str, value: Any) -> Question:
    if hasattr(question.workload, field):
        return replace(question, workload=replace(question.workload, **{field: value}))
    return replace(question, preferences=replace(question.preferences, **{field: value}))


def facts(candidate: Candidate) -> tuple[Any, ...]:
    misses = tuple(miss.code for miss in candidate.misses)
    return candidate.machine.pk, candidate.gpus_used, candidate.headroom_bytes, candidate.package_usd, misses


def expected(one: Verdict) -> tuple[Any, ...]:
    return one.machine.pk, one.outcome.estimate.gpus, one.outcome.headroom_bytes, one.price, one.misses


# --- Properties -------------------------------------------------------------------------------------------------------


@given(cases)
@ENOUGH
def test_the_answer_equals_a_brute_force_list(case: Case) -> None:
    question, limits, rows = case
    with catalog_of(rows):
        answer = recommend(question, now=NOW, limits=limits)
        every = verdicts(question, limits)
        fitting = [one for one in every if not one.reason]
        best = sorted((one for one in fitting if not one.misses), key=lambda one: one.rank)
        others = sorted((one for one in fitting if one.misses), key=lambda one: (len(one.misses), *one.rank))

        assert answer.recommended_count == len(best)
        assert [facts(candidate) for candidate in answer.recommended] == [expected(one) for one in best]
        assert [facts(candidate) for candidate in answer.machine_alternatives] == [expected(one) for one in others[:20]]
        counted = Counter(one.reason for one in every if one.reason)
        assert [(left.code, left.count) for left in answer.not_considered] == [
            (code, counted[code]) for code in NOT_CONSIDERED if counted[code]
        ]
        check_precisions(answer, limits)
        check_nearest(answer, every, fitting)
        check_changes(answer, limits)
        check_places(answer)
        assert recommend(question, now=NOW, limits=limits) == answer


def check_precisions(answer: Answer, limits: HardLimits) -> None:
    wanted = []
    for bits in (8, 4):
        if bits < (precision_of(answer.question.workload) or 0):
            lower = recommendable(with_change(answer.question, "precision_bits", bits), limits)
            if len(lower) > answer.recommended_count:
                wanted.append((bits, len(lower) - answer.recommended_count, min(one.price for one in lower)))
    assert [
        (alternative.precision_bits, alternative.additional_machines, alternative.cheapest_package_usd)
        for alternative in answer.precision_alternatives
    ] == wanted


def check_nearest(answer: Answer, every: list[Verdict], fitting: list[Verdict]) -> None:
    rejected = [one for one in every if one.reason in ("illegal_split", "too_small")]
    if fitting or not rejected:
        assert answer.nearest_miss is None
        return
    nearest = min(rejected, key=lambda one: (one.outcome.lacking_bytes, one.machine.pk))
    assert answer.nearest_miss is not None
    assert answer.nearest_miss.machine == nearest.machine
    assert answer.nearest_miss.lacking_bytes == nearest.outcome.lacking_bytes
    assert answer.nearest_miss.estimate == nearest.outcome.estimate
    assert answer.nearest_miss.estimate.gpus == splits(answer.question.workload, nearest.machine.gpu_count)[-1]


def check_changes(answer: Answer, limits: HardLimits) -> None:
    """Each change gives what it says, is the smallest of its kind, and none of a fixed kind is missing."""
    question = answer.question
    if answer.recommended_count:
        assert answer.changes == ()
        return
    smaller_step = {
        "context": 1,
        "requests": 1,
        "sequence_length": 1,
        "batch_size": 1,
        "rank": 1,
        "streams": 1,
        "lots": 1,
        "budget_usd": Decimal("-0.01"),
        "max_hourly_usd": Decimal("-0.0001"),
    }
    for change in answer.changes:
        then = recommendable(with_change(question, change.field, change.value), limits)
        assert change.machines == len(then) > 0
        prices = [one.price for one in then]
        assert change.cheapest_package_usd == (None if change.field == "countries" else min(prices))
        if change.field in smaller_step:
            assert isinstance(change.value, (int, Decimal))
            gentler = change.value + smaller_step[change.field]
            assert not recommendable(with_change(question, change.field, gentler), limits)
    if len(answer.changes) == 8:
        return
    offered = [(change.field, change.value) for change in answer.changes]
    tries: list[tuple[str, Any]] = [("term_days", days) for days in (3, 7, 30)]
    tries += [("precision_bits", bits) for bits in (8, 4) if bits < (precision_of(question.workload) or 0)]
    tries += [(field, 1) for field in shrinkable(question.workload)]
    tries += [("tier", "any"), ("countries", ()), ("lots", 1)]
    tries += [("budget_usd", Decimal(10**6)), ("max_hourly_usd", Decimal(10**6))]
    for field, value in tries:
        if recommendable(with_change(question, field, value), limits):
            assert field in dict(offered)
            # Of a count or an amount the gentlest value that helps is offered, not the one tried here.
            assert field in smaller_step or (field, value) in offered


def check_places(answer: Answer) -> None:
    shown = [candidate.machine for candidate in (*answer.recommended, *answer.machine_alternatives)]
    shown += [answer.nearest_miss.machine] if answer.nearest_miss else []
    for chosen in (answer.question.preferences.countries, answer.limits.countries):
        if chosen:
            assert {machine.country for machine in shown} <= expand(chosen)


@given(cases, st.integers(0, 2**32 - 1))
@FEWER
def test_a_machine_that_does_not_fit_or_is_dearer_never_changes_the_first_place(case: Case, seed: int) -> None:
    question, limits, rows = case
    with catalog_of(rows):
        before = recommend(question, now=NOW, limits=limits)
        random = Random(seed)
        newcomer = random_machine(random, question.workload, scarce=False)
        if not before.recommended or random.random() < 0.5:
            source = "provider_report" if newcomer["tier"] == "community" else "data_center"
            newcomer |= {"gpu_memory_bytes": 1, "memory_source": source}
            price = Decimal("0.01")
        else:
            price = before.recommended[0].package_usd + Decimal("0.01")
        add([newcomer | {f"price_{days}_days_usd": price for days in (3, 7, 30)}])
        after = recommend(question, now=NOW, limits=limits)
        assert [candidate.machine for candidate in after.recommended[:1]] == [
            candidate.machine for candidate in before.recommended[:1]
        ]


@given(cases, st.integers(2, 50))
@FEWER
def test_more_work_never_makes_a_machine_fit(case: Case, times: int) -> None:
    question, limits, rows = case
    field = {"requests", "batch_size", "streams"} & set(shrinkable(question.workload))
    assume(field)
    name = field.pop()
    more = with_change(question, name, min(getattr(question.workload, name) * times, MAX_REQUESTS))
    with catalog_of(rows):
        fits = {candidate.machine.pk for candidate in recommend(question, now=NOW, limits=limits).recommended}
        still = {candidate.machine.pk for candidate in recommend(more, now=NOW, limits=limits).recommended}
        assert still <= fits
