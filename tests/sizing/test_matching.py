"""The rules of an answer, one by one. B109 and the like number faults reported of other products in public."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.countries import eu_members
from catalog.models import Machine
from catalog.units import GB, GIB
from sizing.answers import HardLimits, Preferences
from sizing.engine.errors import InvalidWorkload
from tests.factories import make_ai_model, make_gpu, make_provider
from tests.sizing.asking import FEED, NOW, ask, left_out, names, offer

pytestmark = pytest.mark.django_db


# --- What is recommended, in what order -------------------------------------------------------------------------------


def test_prices_are_numbers_not_texts_b109() -> None:
    for price in ("12.00", "9.00", "3.50", "20.00", "10.00", "4.50"):
        offer(price, price)
    assert names(ask().recommended) == ["3.50", "4.50", "9.00", "10.00", "12.00", "20.00"]


def test_cheapest_first_across_tiers_b111() -> None:
    offer("a", "100.00", tier="community")
    offer("b", "90.00")
    offer("c", "80.00", tier="community")
    assert names(ask().recommended) == ["c", "b", "a"]


def test_the_amount_paid_orders_not_the_price_of_a_gpu_b113() -> None:
    offer("two GPUs", "134.40", gpu_count=2)
    offer("one GPU", "80.64", gpu_memory_bytes=48 * GIB)
    assert names(ask().recommended) == ["one GPU", "two GPUs"]


def test_the_order_is_by_the_price_for_the_term() -> None:
    offer("cheap week", "10.00", price_30_days_usd=Decimal("90.00"))
    offer("cheap month", "20.00", price_30_days_usd=Decimal("80.00"))
    assert names(ask(term_days=30).recommended) == ["cheap month", "cheap week"]


def test_equal_prices_go_by_headroom_then_secure_then_id() -> None:
    offer("first", "10.00")
    offer("community", "10.00", tier="community")
    offer("second", "10.00")
    offer("roomy community", "10.00", tier="community", gpu_memory_bytes=48 * GIB)
    assert names(ask().recommended) == ["roomy community", "first", "second", "community"]


def test_fifty_are_listed_and_all_are_counted() -> None:
    gpu, provider = make_gpu(), make_provider()
    for number in range(53):
        offer(f"{number}", f"{100 - number}.00", gpu=gpu, provider=provider)
    answer = ask()
    assert answer.recommended_count == 53
    assert names(answer.recommended) == [f"{number}" for number in range(52, 2, -1)]


def test_a_candidate_carries_its_figures() -> None:
    offer("machine", "110.00", lots=3)
    (candidate,) = ask(lots=2).recommended
    assert candidate.need_bytes_per_gpu == 20_990_613_914
    assert candidate.headroom_bytes == 24 * GIB - 20_990_613_914
    assert (candidate.package_usd, candidate.order_total_usd) == (Decimal("110.00"), Decimal("220.00"))
    assert candidate.confidence.level == "high"


def test_24_gib_is_recommended_and_24_gb_of_a_datasheet_is_not() -> None:
    offer("24 GiB", "10.00", gpu_memory_bytes=24 * GIB)
    offer("24 GB", "10.00", gpu_memory_bytes=24 * GB, memory_source="datasheet")
    answer = ask(context=32_768)
    assert names(answer.recommended) == ["24 GiB"]
    assert left_out(answer) == {"too_small": 1}


def test_all_of_the_memory_counts_and_no_second_margin_hides_b049() -> None:
    machine = offer("to the byte", "10.00", gpu_memory_bytes=20_990_613_914)
    (candidate,) = ask().recommended
    assert candidate.headroom_bytes == 0
    assert candidate.confidence.reasons == ("narrow_margin",)
    Machine.objects.filter(pk=machine.pk).update(gpu_memory_bytes=20_990_613_913)
    assert ask().recommended == ()


# --- Splits -----------------------------------------------------------------------------------------------------------


def test_28_heads_use_4_of_8_gpus_b036() -> None:
    qwen = make_ai_model(
        "qwen2-7b",
        parameters=7_615_616_512,
        attention_heads=28,
        intermediate_size=18_944,
        cache_groups=[{"layers": 28, "elements_per_token": 1024, "kv_heads": 4, "window": None}],
    )
    offer("8 × 8", "10.00", gpu_count=8, gpu_memory_bytes=8 * GIB)
    assert [candidate.gpus_used for candidate in ask(qwen).recommended] == [4]


def test_40_heads_use_2_of_3_gpus_b038() -> None:
    llama = make_ai_model(
        "llama-2-13b",
        parameters=13_015_864_320,
        attention_heads=40,
        intermediate_size=13_824,
        max_context=4096,
        cache_groups=[{"layers": 40, "elements_per_token": 10_240, "kv_heads": 40, "window": None}],
    )
    offer("3 × 24", "10.00", gpu_count=3)
    (candidate,) = ask(llama).recommended
    assert candidate.gpus_used == 2
    assert candidate.confidence.reasons == ("multi_gpu",)
    Machine.objects.update(gpu_memory_bytes=14 * GIB)
    assert left_out(ask(llama)) == {"illegal_split": 1}


def test_a_copied_cache_is_not_divided_b043() -> None:
    qwen = make_ai_model(
        "qwen3-235b",
        parameters=235_093_634_560,
        attention_heads=64,
        intermediate_size=None,
        expert_intermediate_size=1536,
        cache_groups=[{"layers": 94, "elements_per_token": 1024, "kv_heads": 4, "window": None}],
    )
    offer("8 × A100 40", "10.00", gpu_count=8, gpu_memory_bytes=40 * GIB)
    offer("8 × L40S", "20.00", gpu_count=8, gpu_memory_bytes=46_068 * 2**20)
    answer = ask(qwen, precision_bits=8, context=32_768, requests=4)
    assert names(answer.recommended) == ["8 × L40S"]
    assert answer.recommended[0].confidence.reasons == ("quantized", "multi_gpu", "narrow_margin", "kv_copied")


def test_one_gpu_is_used_whenever_one_suffices() -> None:
    offer("4 × 24", "10.00", gpu_count=4)
    assert ask().recommended[0].gpus_used == 1


# --- What is not considered -------------------------------------------------------------------------------------------


def test_each_machine_counts_once_under_its_first_reason() -> None:
    faults: dict[str, dict[str, Any]] = {
        "outside_countries": {"country": None},
        "off_line": {"online": False},
        "out_of_stock": {"free_lots": 0},
        "term_not_offered": {"max_term_days": 6},
        "memory_unknown": {"gpu_memory_bytes": None},
        "too_small": {"gpu_memory_bytes": 8 * GIB},
    }
    worse: dict[str, Any] = {}
    for fault in reversed(faults.values()):
        worse = {**worse, **fault}
        offer(f"{len(worse)}", "10.00", **worse)
    offer("dear", "1000.00")
    offer("unlisted", "10.00", listed=False)
    answer = ask(countries=("EU",), budget_usd=Decimal(500))
    assert [(one.code, one.count) for one in answer.not_considered] == [(code, 1) for code in faults]


def test_machines_that_only_miss_a_preference_are_not_among_the_left_out() -> None:
    offer("dear", "1000.00")
    answer = ask(budget_usd=Decimal(500))
    assert answer.not_considered == ()
    assert names(answer.machine_alternatives) == ["dear"]


def test_a_machine_without_stock_is_passed_over_for_the_next_b120() -> None:
    offer("sold out", "10.00", free_lots=0)
    offer("next", "20.00")
    answer = ask()
    assert names(answer.recommended) == ["next"]
    assert left_out(answer) == {"out_of_stock": 1}


def test_as_many_lots_as_asked_must_be_free() -> None:
    offer("two", "10.00", lots=3, free_lots=2)
    assert ask(lots=2).recommended_count == 1
    assert left_out(ask(lots=3)) == {"out_of_stock": 1}


def test_a_trial_needs_an_explicit_price() -> None:
    offer("trial", "110.00", price_3_days_usd=Decimal("47.14"))
    offer("no trial", "1.00")
    answer = ask(term_days=3)
    assert [(candidate.machine.name, candidate.package_usd) for candidate in answer.recommended] == [
        ("trial", Decimal("47.14"))
    ]
    assert left_out(answer) == {"term_not_offered": 1}


def test_a_list_counts_while_it_is_younger_than_five_minutes() -> None:
    provider = make_provider(**FEED, refreshed_at=NOW)
    offer("community", "10.00", provider=provider, tier="community")
    fresh = ask(now=NOW + timedelta(minutes=4, seconds=59))
    stale = ask(now=NOW + timedelta(minutes=5))
    assert fresh.recommended_count == 1
    assert left_out(stale) == {"off_line": 1}


# --- Countries --------------------------------------------------------------------------------------------------------


def test_with_eu_nothing_outside_or_of_unknown_location_is_named() -> None:
    outside = [offer(f"{country}", "1.00", country=country) for country in ("NO", "GB", "CH", "GF", "US", None)]
    dear_outside = offer("dear outside", "5000.00", country="US")
    inside = [offer(f"in {country}", "10.00", country=country) for country in sorted(eu_members())]
    answer = ask(countries=("EU",), budget_usd=Decimal(100))
    assert {candidate.machine.country for candidate in answer.recommended} == eu_members()
    assert answer.recommended_count == len(inside) == 27
    assert answer.machine_alternatives == ()
    assert left_out(answer) == {"outside_countries": len(outside) + 1}
    assert dear_outside.name not in repr(answer)


def test_without_countries_an_unknown_location_is_allowed() -> None:
    offer("somewhere", "10.00", country=None)
    assert names(ask().recommended) == ["somewhere"]


def test_other_countries_are_suggested_by_a_count_alone() -> None:
    offer("elsewhere", "1.00", country="US")
    offer("small", "1.00", country="DE", gpu_memory_bytes=8 * GIB)
    answer = ask(countries=("EU",))
    (change,) = [change for change in answer.changes if change.field == "countries"]
    assert (change.value, change.machines, change.cheapest_package_usd) == ((), 1, None)
    assert answer.nearest_miss is not None
    assert answer.nearest_miss.machine.name == "small"
    assert "elsewhere" not in repr(answer)


# --- Money ------------------------------------------------------------------------------------------------------------


def test_a_budget_of_exactly_the_total_is_enough() -> None:
    offer("machine", "16.78", lots=3)
    assert ask(lots=3, budget_usd=Decimal("50.34")).recommended_count == 1
    answer = ask(lots=3, budget_usd=Decimal("50.33"))
    assert [[(miss.code, miss.by) for miss in one.misses] for one in answer.machine_alternatives] == [
        [("budget_usd", Decimal("0.01"))]
    ]


@pytest.mark.parametrize("lots", [1, 3, 7])
@pytest.mark.parametrize("price", ["0.10", "0.30", "0.70", "16.78", "110.10", "9999999999.99"])
def test_the_budget_is_compared_to_the_cent(price: str, lots: int) -> None:
    offer("machine", price, lots=lots)
    total = Decimal(price) * lots
    assert ask(lots=lots, budget_usd=total).recommended_count == 1
    assert ask(lots=lots, budget_usd=total - Decimal("0.01")).recommended_count == 0


@pytest.mark.parametrize(("most", "week"), [("0.1", "16.80"), ("0.3", "50.40"), ("0.7", "117.60"), ("1.1", "184.80")])
def test_a_maximum_per_hour_of_exactly_the_package_is_enough(most: str, week: str) -> None:
    offer("machine", week)
    offer("a cent more", str(Decimal(week) + Decimal("0.01")))
    answer = ask(max_hourly_usd=Decimal(most))
    assert names(answer.recommended) == ["machine"]
    assert names(answer.machine_alternatives) == ["a cent more"]


def test_the_maximum_per_hour_is_compared_unrounded() -> None:
    """110.00 / 168 = 0.654761..., which pages show as 0.6548."""
    offer("machine", "110.00")
    assert ask(max_hourly_usd=Decimal("0.6548")).recommended_count == 1
    assert ask(max_hourly_usd=Decimal("0.654762")).recommended_count == 1
    answer = ask(max_hourly_usd=Decimal("0.654761"))
    assert answer.machine_alternatives[0].misses[0].by == Decimal("0.0001")


def test_the_maximum_per_hour_is_for_one_lot() -> None:
    offer("machine", "16.80", lots=5)
    assert ask(lots=5, max_hourly_usd=Decimal("0.1")).recommended_count == 1


def test_amounts_beyond_every_price_are_no_limit() -> None:
    offer("machine", "9999999999.99")
    assert ask(budget_usd=Decimal("1e30"), max_hourly_usd=Decimal("1e30")).recommended_count == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("budget_usd", Decimal("-0.01")),
        ("max_hourly_usd", Decimal("NaN")),
        ("budget_usd", Decimal("Infinity")),
        ("tier", "gold"),
        ("term_days", 8),
        ("lots", 0),
    ],
)
def test_a_preference_that_means_nothing_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidWorkload) as refusal:
        Preferences(**{field: value})
    assert refusal.value.field == field


def test_absurd_lots_and_models_are_answered_not_overflown() -> None:
    offer("machine", "10.00")
    assert left_out(ask(lots=10**30)) == {"out_of_stock": 1}
    huge = make_ai_model("huge", parameters=2**63 - 1)
    answer = ask(huge, precision_bits=16)
    assert left_out(answer) == {"too_small": 1}
    assert answer.nearest_miss is not None
    assert answer.changes == ()


# --- Alternatives -----------------------------------------------------------------------------------------------------


def test_alternatives_name_each_miss_and_come_with_fewest_first() -> None:
    offer("all three", "200.00", tier="community")
    offer("tier", "100.00", tier="community")
    offer("two", "150.00")
    answer = ask(budget_usd=Decimal("120.00"), max_hourly_usd=Decimal("0.7"), tier="secure")
    assert answer.recommended == ()
    assert [
        (one.machine.name, [(miss.code, miss.by) for miss in one.misses]) for one in answer.machine_alternatives
    ] == [
        ("tier", [("tier", None)]),
        ("two", [("budget_usd", Decimal("30.00")), ("max_hourly_usd", Decimal("0.1929"))]),
        (
            "all three",
            [("budget_usd", Decimal("80.00")), ("max_hourly_usd", Decimal("0.4905")), ("tier", None)],
        ),
    ]


def test_at_most_twenty_alternatives() -> None:
    gpu, provider = make_gpu(), make_provider()
    for number in range(23):
        offer(f"{number}", f"{number + 10}.00", gpu=gpu, provider=provider)
    answer = ask(budget_usd=Decimal("5.00"))
    assert names(answer.machine_alternatives) == [f"{number}" for number in range(20)]


def test_a_lower_precision_is_offered_when_it_opens_more_machines() -> None:
    offer("24", "110.00")
    offer("16", "70.00", gpu_memory_bytes=16 * GIB)
    offer("8", "30.00", gpu_memory_bytes=8 * GIB)
    eight, four = ask().precision_alternatives
    assert (eight.precision_bits, eight.additional_machines, eight.cheapest_package_usd) == (8, 1, Decimal("70.00"))
    assert (four.precision_bits, four.additional_machines, four.cheapest_package_usd) == (4, 2, Decimal("30.00"))
    assert eight.estimate.workload.precision_bits == 8


def test_a_lower_precision_that_opens_nothing_is_not_offered() -> None:
    offer("24", "110.00")
    offer("too dear", "300.00", gpu_memory_bytes=16 * GIB)
    offer("off-line", "10.00", gpu_memory_bytes=16 * GIB, online=False)
    assert ask(budget_usd=Decimal(200)).precision_alternatives == ()


# --- A caller's limits ------------------------------------------------------------------------------------------------


def test_a_callers_limits_are_hard_and_are_among_the_constraints() -> None:
    offer("community", "10.00", tier="community")
    offer("american", "10.00", country="US")
    offer("german", "20.00")
    answer = ask(tier="any", limits=HardLimits(tiers=("secure",), countries=("EU",)))
    assert names(answer.recommended) == ["german"]
    assert answer.machine_alternatives == ()
    assert left_out(answer) == {"outside_countries": 1, "outside_policy": 1}
    applied = {constraint.code: constraint.value for constraint in answer.constraints}
    assert (applied["policy_tiers"], applied["policy_countries"]) == (("secure",), ("EU",))


def test_countries_are_those_that_question_and_limits_share() -> None:
    for country in ("DE", "FR", "US"):
        offer(country, "10.00", country=country)
    limits = HardLimits(countries=("DE", "US"))
    assert names(ask(countries=("EU",), limits=limits).recommended) == ["DE"]
    assert ask(countries=("FR",), limits=limits).recommended_count == 0
    assert ask(limits=HardLimits(countries=())).recommended_count == 0


def test_everything_taken_into_account_is_stated() -> None:
    answer = ask(countries=("EU",), budget_usd=Decimal("300.00"))
    applied = {constraint.code: constraint.value for constraint in answer.constraints}
    assert applied == {
        "task": "run",
        "model": "llama-3.1-8b",
        "precision_bits": 16,
        "context": 4096,
        "requests": 1,
        "reserve_bytes": 0,
        "kv_cache_bits": 16,
        "margin_percent": 20,
        "runtime_bytes": GIB,
        "one_machine": True,
        "max_split": 16,
        "term_days": 7,
        "lots": 1,
        "tier": "any",
        "countries": ("EU",),
        "countries_covered": 27,
        "unknown_location": "outside",
        "budget_usd": Decimal("300.00"),
        "max_hourly_usd": None,
        "known_figures": True,
        "available": 300,
        "narrow_margin_percent": 10,
        "order": "package_usd",
        "max_recommended": 50,
        "max_alternatives": 20,
    }


# --- Same data, same answer -------------------------------------------------------------------------------------------


def test_the_fingerprint_does_not_depend_on_the_time_but_on_what_it_means() -> None:
    offer("machine", "10.00", provider=make_provider(**FEED, refreshed_at=NOW), tier="community")
    first, second, stale = (ask(now=NOW + timedelta(minutes=minutes)) for minutes in (0, 4, 5))
    assert first.fingerprint == second.fingerprint
    assert first.recommended == second.recommended
    assert stale.fingerprint != first.fingerprint
    assert first.fingerprint.startswith("sha256:")


def test_the_same_question_in_other_words_has_the_same_fingerprint() -> None:
    one = ask(budget_usd=Decimal("300"), countries=("US", "EU"))
    other = ask(budget_usd=Decimal("300.00"), countries=("EU", "US"))
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    "changed",
    [{"precision_bits": 8}, {"context": 4097}, {"lots": 2}, {"term_days": 30}, {"countries": ("EU",)}],
)
def test_another_question_has_another_fingerprint(changed: dict[str, Any]) -> None:
    assert ask(**changed).fingerprint != ask().fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        {"free_lots": 1},
        {"online": False},
        {"listed": False},
        {"price_30_days_usd": Decimal("99.99")},
        {"gpu_memory_bytes": 23 * GIB},
        {"country": None},
        {"name": "renamed"},
    ],
)
def test_every_change_of_a_machine_changes_the_version_of_the_catalog(changed: dict[str, Any]) -> None:
    machine = offer("machine", "10.00", lots=2)
    before = ask()
    Machine.objects.filter(pk=machine.pk).update(**changed)
    after = ask()
    assert after.catalog_version != before.catalog_version
    assert after.fingerprint != before.fingerprint


def test_an_edited_model_changes_the_fingerprint() -> None:
    llama = make_ai_model()
    before = ask(llama)
    llama.parameters += 1
    assert ask(llama).fingerprint != before.fingerprint


# --- Queries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machines", [1, 40])
def test_an_answer_takes_three_queries_however_many_machines(machines: int) -> None:
    gpu, provider = make_gpu(), make_provider()
    for number in range(machines):
        offer(f"cheap {number}", "10.00", gpu=gpu, provider=provider)
        offer(f"dear {number}", "1000.00", gpu=gpu, provider=provider)
    llama = make_ai_model()
    with CaptureQueriesContext(connection) as queries:
        answer = ask(llama, budget_usd=Decimal(100))
        assert all(one.machine.gpu.name and one.machine.provider.name for one in answer.recommended)
    assert len(queries) == 3


@pytest.mark.parametrize("machines", [1, 40])
def test_an_empty_answer_takes_a_bounded_number_of_queries(machines: int) -> None:
    gpu, provider = make_gpu(), make_provider()
    for number in range(machines):
        offer(f"{number}", "10.00", gpu=gpu, provider=provider, gpu_memory_bytes=(8 * GIB) + number)
    llama = make_ai_model()
    with CaptureQueriesContext(connection) as queries:
        ask(llama, context=131_072, requests=100, lots=7, countries=("EU",), tier="community", budget_usd=Decimal(1))
    assert len(queries) == 8
