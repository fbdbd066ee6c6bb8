"""Terms one after the other, against every combination there is."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rentals.planner import MAX_DAYS, Plan, cheapest_cover, covered_days, fewest_cover, longest_within

PUBLISHED = {3: Decimal("47.14"), 7: Decimal("110.00"), 30: Decimal("471.43")}
cents = st.integers(1, 200_000).map(lambda number: Decimal(number) / 100)
price_lists = st.one_of(
    st.fixed_dictionaries({3: cents, 7: cents, 30: cents}), st.fixed_dictionaries({7: cents, 30: cents})
)


def every_plan(prices, most):
    """All combinations that last at most `most` days, as (days, total, number of terms)."""
    terms = sorted(prices)
    for counts in product(*(range(most // term + 1) for term in terms)):
        days = sum(term * count for term, count in zip(terms, counts, strict=True))
        if days <= most:
            total = sum((prices[term] * count for term, count in zip(terms, counts, strict=True)), Decimal(0))
            yield days, total, counts


def sound(plan: Plan, prices):
    assert plan.days == sum(plan.terms)
    assert plan.total_usd == sum(prices[term] for term in plan.terms)
    assert list(plan.terms) == sorted(plan.terms, reverse=True)


@given(price_lists, st.integers(1, 75))
@settings(max_examples=150, deadline=None)
def test_no_combination_that_covers_the_days_is_better(prices, days):
    plan = cheapest_cover(prices, days)
    sound(plan, prices)
    every = [(total, -length, sum(counts)) for length, total, counts in every_plan(prices, days + 29) if length >= days]
    assert (plan.total_usd, -plan.days, len(plan.terms)) == min(every)
    few = fewest_cover(prices, days)
    sound(few, prices)
    assert (len(few.terms), few.total_usd, -few.days) == min((number, total, length) for total, length, number in every)


@given(price_lists, st.integers(1, 150_000).map(lambda number: Decimal(number) / 100))
@settings(max_examples=60, deadline=None)
def test_no_combination_within_the_budget_is_longer(prices, budget):
    # Small enough for the table of all combinations.
    prices = {term: price + Decimal(50 * term) for term, price in prices.items()}
    plan = longest_within(prices, budget)
    every = [(length, -total, -sum(counts)) for length, total, counts in every_plan(prices, 40) if total <= budget]
    longest = max(every)
    if plan is None:
        assert longest[0] == 0
        return
    sound(plan, prices)
    assert (plan.days, -plan.total_usd, -len(plan.terms)) == longest


@pytest.mark.parametrize(
    ("days", "terms", "total"),
    [
        (1, (3,), "47.14"),
        (3, (3,), "47.14"),
        (4, (3, 3), "94.28"),
        (6, (3, 3), "94.28"),
        (7, (7,), "110.00"),
        (10, (7, 3), "157.14"),
        # Ten times three days are three cents less than thirty: each price is rounded by itself.
        (30, (3,) * 10, "471.40"),
        (31, (7, *(3,) * 8), "487.12"),
    ],
)
def test_the_published_prices(days, terms, total):
    plan = cheapest_cover(PUBLISHED, days)
    assert (plan.terms, plan.total_usd) == (terms, Decimal(total))


def test_a_longer_term_that_costs_less_is_taken_and_the_overshoot_shows():
    plan = cheapest_cover({3: Decimal("100.00"), 7: Decimal("50.00"), 30: Decimal("400.00")}, 2)
    assert (plan.terms, plan.days) == ((7,), 7)


def test_of_equally_cheap_plans_the_longest_with_the_fewest_terms():
    plan = cheapest_cover({3: Decimal(5), 7: Decimal(10), 30: Decimal(10)}, 5)
    assert plan.terms == (30,)


def test_a_budget_pays_for_whole_terms_only():
    assert longest_within(PUBLISHED, Decimal("47.13")) is None
    assert longest_within(PUBLISHED, Decimal("47.14")).terms == (3,)
    assert longest_within(PUBLISHED, Decimal("600.00")).days == 38
    assert longest_within(PUBLISHED, Decimal(10) ** 9).days == MAX_DAYS


@pytest.mark.parametrize("days", [0, -1, MAX_DAYS + 1])
def test_days_without_a_plan_are_refused(days):
    with pytest.raises(ValueError, match="days must be"):
        cheapest_cover(PUBLISHED, days)


@pytest.mark.parametrize("prices", [{}, {7: Decimal(0)}])
def test_a_term_without_a_price_is_refused(prices):
    with pytest.raises(ValueError, match="price"):
        longest_within(prices, Decimal(1))


def test_the_end_is_days_of_24_hours_and_a_begun_day_counts():
    start = datetime(2026, 3, 27, 11, tzinfo=UTC)
    assert Plan((7, 3), 10, Decimal(1)).ends_at(start) == start + timedelta(seconds=10 * 86_400)
    assert covered_days(start, start + timedelta(days=7)) == 7
    assert covered_days(start, start + timedelta(days=7, microseconds=1)) == 8
    assert covered_days(start, start + timedelta(hours=1)) == 1
