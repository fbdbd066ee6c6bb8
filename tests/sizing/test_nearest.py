"""What an answer says when nothing is recommended: the nearest miss, changes that help, which empty answer it is."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from catalog.models import Machine
from catalog.units import GIB
from sizing.engine.errors import UnsizableModel
from tests.factories import make_ai_model, make_provider
from tests.sizing.asking import FEED, NOW, ask, changes, offer

pytestmark = pytest.mark.django_db


def test_the_nearest_miss_says_what_is_needed_and_what_there_is_b117() -> None:
    offer("16", "10.00", gpu_memory_bytes=16 * GIB)
    offer("19", "90.00", gpu_memory_bytes=19 * GIB)
    offer("19 too", "10.00", gpu_memory_bytes=19 * GIB)
    offer("unknown", "10.00", gpu_memory_bytes=None)
    answer = ask()
    assert answer.empty == "nothing_holds_it"
    assert answer.nearest_miss is not None
    assert answer.nearest_miss.machine.name == "19"
    assert answer.nearest_miss.estimate.per_gpu_bytes == 20_990_613_914
    assert answer.nearest_miss.lacking_bytes == 20_990_613_914 - 19 * GIB
    assert answer.nearest_miss.largest_memory_bytes == 19 * GIB


def test_the_nearest_miss_is_judged_by_its_largest_legal_split() -> None:
    offer("one", "10.00", gpu_memory_bytes=19 * GIB)
    offer("two", "10.00", gpu_count=2, gpu_memory_bytes=10 * GIB)
    nearest = ask().nearest_miss
    assert nearest is not None
    assert (nearest.machine.name, nearest.estimate.gpus) == ("two", 2)


def test_changes_are_the_smallest_that_help() -> None:
    offer("19", "10.00", gpu_memory_bytes=19 * GIB)
    answer = ask(context=8192, requests=2)
    assert [(change.field, change.machines, change.cheapest_package_usd) for change in answer.changes] == [
        ("precision_bits", 1, Decimal("10.00")),
        ("precision_bits", 1, Decimal("10.00")),
        ("context", 1, Decimal("10.00")),
    ]
    context = changes(answer)["context"]
    assert ask(context=context, requests=2).recommended_count == 1
    assert ask(context=context + 1, requests=2).recommended_count == 0


def test_a_shorter_context_is_not_suggested_when_the_weights_alone_are_too_much() -> None:
    offer("8", "10.00", gpu_memory_bytes=8 * GIB)
    assert [(change.field, change.value) for change in ask(requests=2).changes] == [("precision_bits", 4)]


def test_raising_a_preference_is_suggested_to_the_smallest_value() -> None:
    offer("cheaper", "110.00")
    offer("dearer", "120.00")
    offer("community", "90.00", tier="community")
    answer = ask(tier="secure", max_hourly_usd=Decimal("0.6"))
    assert changes(answer) == {"tier": "any", "max_hourly_usd": Decimal("0.6548")}
    answer = ask(budget_usd=Decimal("50"))
    assert changes(answer) == {"budget_usd": Decimal("90.00")}
    assert answer.empty == "budget_below_one_term"


def test_other_terms_and_fewer_lots_are_suggested_when_they_help() -> None:
    offer("month only by price", "200.00", price_3_days_usd=Decimal("80.00"), max_term_days=7, lots=2)
    answer = ask(term_days=30)
    assert [(change.field, change.value) for change in answer.changes] == [("term_days", 3), ("term_days", 7)]
    answer = ask(lots=5)
    assert [(change.field, change.value) for change in answer.changes] == [("lots", 2)]
    assert answer.empty == "filters_too_narrow"


def test_fewer_lots_must_be_within_the_budget_too() -> None:
    offer("many", "100.00", lots=9)
    assert changes(ask(lots=5, budget_usd=Decimal("350.00"))) == {"budget_usd": Decimal("500.00"), "lots": 3}


def test_no_change_is_suggested_when_none_helps() -> None:
    offer("tiny", "10.00", gpu_memory_bytes=GIB)
    answer = ask()
    assert answer.changes == ()
    assert answer.nearest_miss is not None


def test_an_empty_catalog_is_an_answer() -> None:
    answer = ask()
    assert (answer.recommended_count, answer.not_considered, answer.nearest_miss, answer.changes) == (0, (), None, ())
    assert answer.empty == "none_on_line"


def test_the_empty_answers_are_told_apart() -> None:
    feed = make_provider(**FEED, refreshed_at=NOW - timedelta(minutes=12))
    machine = offer("machine", "110.00", provider=feed, tier="community")
    stale = ask()
    assert stale.empty == "stale_lists"
    assert stale.stale is not None
    assert (stale.stale.machines, stale.stale.refreshed_at) == (1, NOW - timedelta(minutes=12))

    situations: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("none_on_line", {"online": False}, {}),
        ("none_in_stock", {"free_lots": 0}, {}),
        ("filters_too_narrow", {}, {"lots": 2}),
        ("filters_too_narrow", {}, {"countries": ("US",)}),
        ("filters_too_narrow", {}, {"tier": "secure"}),
        ("filters_too_narrow", {"max_term_days": 7}, {"term_days": 30}),
        ("budget_below_one_term", {}, {"budget_usd": Decimal("109.99")}),
        ("nothing_holds_it", {"gpu_memory_bytes": 8 * GIB}, {}),
        ("nothing_holds_it", {"gpu_memory_bytes": None, "memory_source": ""}, {}),
    ]
    usual = {"online": True, "free_lots": 1, "max_term_days": None, "provider": make_provider()}
    for empty, fields, question in situations:
        usual |= {"gpu_memory_bytes": 24 * GIB, "memory_source": "provider_report"}
        Machine.objects.filter(pk=machine.pk).update(**{**usual, **fields})
        answer = ask(**question)
        assert (answer.empty, answer.stale) == (empty, None)


def test_a_model_with_an_unknown_figure_has_no_answer() -> None:
    with pytest.raises(UnsizableModel) as refusal:
        ask(make_ai_model(cache_groups=[]))
    assert refusal.value.field == "cache_groups"
