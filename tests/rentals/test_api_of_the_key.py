"""What a key brings along: its organization's own models and policy in sizing, the policy and the usage to read."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from rentals.cancellations import cancel_order
from rentals.models import OrganizationPolicy
from tests.factories import make_ai_model, make_api_key, make_machine, make_order, make_own_model, make_user
from tests.rentals.calls import assert_problem, faults, get, post

WORKLOAD = {"task": "run", "model": "llama-3.1-8b"}


@pytest.fixture
def machine(db: None) -> Any:
    make_ai_model()
    return make_machine(price_7_days_usd=Decimal("110.00"), lots=20)


@pytest.mark.parametrize("address", ["sizing", "recommendations"])
def test_own_models_are_sized_for_their_organization_alone(acme: Any, globex: Any, machine: Any, address: str) -> None:
    own = make_own_model(acme)
    key, other = make_api_key(acme, "read"), make_api_key(globex)
    body = {"workload": {"task": "run", "model": f"own:{own.slug}"}}
    answer = post(address, key, body)
    assert answer.status_code == 200, answer.content
    memory = answer.json().get("memory", answer.json())
    assert memory["lines"][0]["formula"].startswith("8,030,261,248")
    for stranger in (other, None):
        assert faults(post(address, stranger, body)) == [("workload.model", "unknown_model")]
    never = post(address, other, {"workload": {"task": "run", "model": "own:nothing"}})
    # What belongs to somebody else is answered as what nobody has, but for the name that was asked.
    assert never.json()["errors"][0]["code"] == "unknown_model"


def test_recommendations_keep_to_the_policy_of_the_key(acme: Any, globex: Any, machine: Any, now: datetime) -> None:
    make_machine(country="US", price_7_days_usd=Decimal("90.00"))
    OrganizationPolicy.objects.create(organization=acme, countries=["DE"], max_order_usd=200, changed_at=now)
    asked = {"workload": WORKLOAD}
    inside = post("recommendations", make_api_key(acme), asked).json()
    assert [one["machine"]["id"] for one in inside["recommended"]] == [machine.pk]
    assert "/o/acme/launch/result/?" in inside["html_url"]
    for answer in (post("recommendations", make_api_key(globex), asked), post("recommendations", None, asked)):
        assert len(answer.json()["recommended"]) == 2
    assert "/o/globex/" in post("recommendations", make_api_key(globex), asked).json()["html_url"]


def test_the_policy_is_read_with_what_is_ordered_this_month(
    acme: Any, globex: Any, machine: Any, now: datetime
) -> None:
    key = make_api_key(acme, "read")
    free = get("policy", key).json()
    assert {name: free[name] for name in ("tiers", "countries", "max_order_usd", "changed_at", "month_usd")} == {
        "tiers": None, "countries": None, "max_order_usd": None, "changed_at": None, "month_usd": "0.00",
    }  # fmt: skip
    OrganizationPolicy.objects.create(
        organization=acme, tiers=["secure"], countries=["EU"], max_order_usd=Decimal("500"), changed_at=now
    )
    OrganizationPolicy.objects.create(organization=globex, tiers=["community"], changed_at=now)
    make_order(acme, machine, lots=2)
    found = get("policy", key).json()
    assert (found["tiers"], found["countries"], found["max_order_usd"]) == (["secure"], ["EU"], "500.00")
    assert (found["max_month_usd"], found["month_usd"], found["order_role"]) == (None, "220.00", "member")
    assert found["html_url"] == "http://testserver/o/acme/policy/"
    assert "“read”" in assert_problem(get("policy", make_api_key(acme, "order")), 403, "forbidden")["detail"]


def test_usage_is_the_statement_of_a_month(acme: Any, globex: Any, machine: Any) -> None:
    key = make_api_key(acme, "read")
    november, december = datetime(2026, 11, 30, 23, 59, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
    first = make_order(acme, machine, placement={"now": november})
    make_order(acme, machine, lots=2, placement={"now": december})
    make_order(globex, machine, placement={"now": november})
    cancel_order(first.pk, reason="It broke.", credit_usd=Decimal("110.00"), actor=make_user(is_staff=True),
           now=december + timedelta(hours=1))  # fmt: skip
    month = get("usage?month=2026-11", key).json()
    assert (month["month"], month["ordered_usd"], month["credited_usd"], month["total_usd"]) == (
        "2026-11", "110.00", "0.00", "110.00",
    )  # fmt: skip
    assert [(one["what"], one["order"], one["amount_usd"]) for one in month["entries"]] == [
        ("order", str(first.pk), "110.00")
    ]
    later = get("usage?month=2026-12", key).json()
    assert [(one["what"], one["amount_usd"]) for one in later["entries"]] == [
        ("order", "220.00"),
        ("credit", "-110.00"),
    ]
    assert later["total_usd"] == "110.00"
    assert get("usage", key).json()["month"] == f"{timezone.now():%Y-%m}"
    assert get("usage?month=2031-01", key).json()["entries"] == []


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ("month=2026-13", "month", "invalid"),
        ("month=2026-1", "month", "invalid"),
        ("month=%00", "month", "invalid"),
        ("month=", "month", "invalid"),
        ("month=2026-01&month=2026-02", "month", "repeated"),
        ("mont=2026-01", "mont", "unknown_field"),
        ("limit=5", "limit", "unknown_field"),
    ],
)
def test_another_month_is_refused_by_name(acme: Any, query: str, field: str, code: str) -> None:
    assert faults(get(f"usage?{query}", make_api_key(acme))) == [(field, code)]


def test_addresses_without_parameters_name_the_one_that_was_given(acme: Any, machine: Any) -> None:
    key = make_api_key(acme)
    for path in ("policy", "key", "organization", f"machines/{machine.pk}", "errors", "sizing/vectors"):
        problem = assert_problem(get(f"{path}?colour=1", key), 400, "invalid")
        assert [error["field"] for error in problem["errors"]] == ["colour"]
    for path in ("sizing", "recommendations", "calculator", "calculator/stages", "models/read", "quotes", "orders"):
        assert faults(post(f"{path}?colour=1", key, {})) == [("colour", "unknown_field")]
