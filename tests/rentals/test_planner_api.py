"""The planner over the API: the figures and words of its page, refused where the page refuses."""

from decimal import Decimal
from typing import Any

import pytest
import time_machine

from catalog.models import Machine
from rentals.models import Order
from tests.factories import make_api_key, make_machine
from tests.rentals.calls import assert_problem, faults, post


@pytest.fixture
def machine(db: None) -> Machine:
    return make_machine(
        name="North 1", lots=2, price_3_days_usd=Decimal("47.14"), price_7_days_usd=Decimal("110.00"),
        price_30_days_usd=Decimal("471.43"),
    )  # fmt: skip


@time_machine.travel("2026-03-27T11:00:00+00:00", tick=False)
def test_days_a_day_or_a_budget_are_planned(acme: Any, machine: Machine) -> None:
    key = make_api_key(acme)
    ten = post("planner", key, {"machine": machine.pk, "lots": 2, "days": 10}).json()
    assert [(term["term_days"], term["orders"], term["price_usd"], term["amount_usd"]) for term in ten["terms"]] == [
        (7, 1, "220.00", "220.00"), (3, 1, "94.28", "94.28"),
    ]  # fmt: skip
    assert (ten["total_usd"], ten["orders"], ten["days"], ten["longer_text"]) == ("314.28", 2, 10, "Not at all")
    assert (ten["starts_at"], ten["ends_at"]) == ("2026-03-27T11:00:00.000000Z", "2026-04-06T11:00:00.000000Z")
    assert (ten["left_usd"], ten["fewest"]["days"]) == (None, 30)
    until = post("planner", key, {"machine": machine.pk, "until": "2026-04-03"}).json()
    assert (until["days"], until["longer_text"]) == (9, "1 day and 11 hours")
    budget = post("planner", key, {"machine": machine.pk, "budget_usd": "600"}).json()
    assert Decimal(budget["total_usd"]) + Decimal(budget["left_usd"]) == 600
    assert (budget["longer_text"], budget["fewest"]) == (None, None)
    month = post("planner", key, {"machine": machine.pk, "days": 30}).json()
    assert (month["total_usd"], month["fewest"]["total_usd"], month["fewest"]["extra_usd"]) == (
        "471.40", "471.43", "0.03",
    )  # fmt: skip
    assert not Order.objects.exists()


@pytest.mark.parametrize("scope", ["read", "order"])
def test_any_key_may_plan_and_nobody_without_one(acme: Any, machine: Machine, scope: str) -> None:
    body = {"machine": machine.pk, "days": 10}
    assert post("planner", make_api_key(acme, scope), body).status_code == 200
    assert_problem(post("planner", None, body), 401, "unauthenticated")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"machine": None}, [("machine", "required")]),
        ({"machine": "1"}, [("machine", "invalid")]),
        ({"days": None}, [("body", "required")]),
        ({"budget_usd": "600.00"}, [("body", "repeated")]),
        ({"days": 0}, [("days", "min_value")]),
        ({"days": 3651}, [("days", "max_value")]),
        ({"days": 1.5}, [("days", "invalid")]),
        ({"lots": 0}, [("lots", "min_value")]),
        ({"days": None, "until": "tomorrow"}, [("until", "invalid")]),
        ({"days": None, "until": "２０２６-04-03"}, [("until", "invalid")]),
        ({"days": None, "until": "2001-01-01"}, [("until", "min_value")]),
        ({"days": None, "until": "9999-01-01"}, [("until", "max_value")]),
        ({"days": None, "budget_usd": 600}, [("budget_usd", "invalid")]),
        ({"days": None, "budget_usd": "47.13"}, [("budget_usd", "min_value")]),
        ({"day": 3}, [("day", "unknown_field")]),
    ],
)
def test_what_cannot_be_planned_is_refused_at_its_field(
    key: Any, machine: Machine, change: Any, expected: list[tuple[str, str]]
) -> None:
    assert faults(post("planner", key, {"machine": machine.pk, "days": 10, **change})) == expected


def test_a_machine_that_is_not_offered_is_refused_as_by_a_quote(key: Any, machine: Machine) -> None:
    Machine.objects.filter(pk=machine.pk).update(listed=False)
    assert_problem(post("planner", key, {"machine": machine.pk, "days": 10}), 409, "off_line")
    for number in (999_999, 2**63, 10**40):
        assert_problem(post("planner", key, {"machine": number, "days": 10}), 404, "not_found")
