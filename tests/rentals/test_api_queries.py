"""How many statements an address takes: as many for many rows as for one."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import (
    make_ai_model,
    make_api_key,
    make_endpoint,
    make_machine,
    make_order,
    make_own_model,
    make_search,
    make_ssh_key,
)
from tests.rentals.calls import call
from tests.tenancy import statements

WORKLOAD = {"task": "run", "model": "llama-3.1-8b"}
ASKED = {"workload": WORKLOAD, "preferences": {"tier": "secure", "budget_usd": "300.00"}}
# Who asks, and inside which rules.
SET_UP = ('"rentals_apikey"', "rentals_api_key(", '"rentals_organization"', '"rentals_organizationpolicy"')
# The most that each may take after the key and its organization were found.
MOST = {
    ("POST", "recommendations"): 4,
    ("POST", "sizing"): 1,
    ("POST", "calculator"): 3,
    ("POST", "quotes"): 5,
    ("POST", "planner"): 5,
    ("GET", "machines"): 5,
    ("GET", "gpus"): 1,
    ("GET", "options"): 1,
    ("GET", "models"): 1,
    ("GET", "orders"): 3,
    ("GET", "members"): 2,
    ("GET", "audit"): 2,
    ("GET", "usage"): 3,
    ("GET", "policy"): 3,
    ("GET", "ssh-keys"): 2,
    ("GET", "webhooks"): 2,
    ("GET", "own-models"): 2,
    ("GET", "saved-searches"): 2,
    ("GET", "webhooks/{endpoint}/deliveries"): 3,
}


@pytest.mark.parametrize("address", MOST, ids=" ".join)
def test_statements_do_not_grow_with_rows(acme: Any, address: tuple[str, str]) -> None:
    make_ai_model()
    key = make_api_key(acme)
    machine = make_machine(price_7_days_usd=Decimal("110.00"), lots=100)
    make_machine(tier="community", price_7_days_usd=Decimal("90.00"))
    endpoint = make_endpoint(acme, "https://example.com/0")
    make_order(acme, machine)
    method, path = address[0], address[1].format(endpoint=endpoint.pk)

    def keep(number: int) -> None:
        make_ssh_key(acme, f"{number}@laptop")
        make_search(acme, f"search {number}")
        make_own_model(acme, f"Model {number}")
        make_endpoint(acme, f"https://example.com/{number}", events=["order.ended"])

    keep(1)
    bodies = {
        "recommendations": ASKED, "sizing": {"workload": WORKLOAD}, "calculator": {"parameters": 7_000_000_000},
        "quotes": {"machine": machine.pk, "term_days": 7}, "planner": {"machine": machine.pk, "days": 45},
    }  # fmt: skip

    def count() -> int:
        with CaptureQueriesContext(connection) as counted:
            assert call(method, path, key, bodies.get(path)).status_code == 200
        asked = statements(counted.captured_queries)
        return len([each for each in asked if not any(f"FROM {table}" in each for table in SET_UP)])

    count()
    few = count()
    for number in range(12):
        make_machine(price_7_days_usd=Decimal(100 + number))
        make_machine(tier="community", price_7_days_usd=Decimal(80 + number))
        make_order(acme, machine)
    for number in range(2, 8):
        keep(number)
    assert count() == few
    assert few <= MOST[address]
