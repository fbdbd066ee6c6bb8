"""The planner's page: at today's prices, exact, and it reserves nothing."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from catalog.models import Machine
from rentals.models import Order
from tests.factories import make_machine, make_member, make_user

PAGE = "/o/acme/planner/"


@pytest.fixture
def machine(db):
    return make_machine(
        name="North 1", lots=2, price_3_days_usd=Decimal("47.14"), price_7_days_usd=Decimal("110.00"),
        price_30_days_usd=Decimal("471.43"),
    )  # fmt: skip


@pytest.fixture
def read(client, acme):
    def get(status=200, **query):
        # Each time: a session does not last until the year a test travels to.
        client.force_login(acme.owner)
        response = client.get(PAGE, query)
        assert response.status_code == status
        return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())).replace("&#x27;", "'")

    return get


def test_days_are_covered_by_the_cheapest_terms(client, read, machine):
    text = read(machine=machine.pk, lots=2, days=10)
    for words in ("10 days of 2 lots of North 1", "$314.28", "Longer than asked Not at all", "Nothing is reserved"):
        assert words in text
    html = client.get(PAGE, {"machine": machine.pk, "lots": 2, "days": 10}).content.decode()
    link = re.search(r'href="(/o/acme/orders/review/[^"]+)"', html)[1].replace("&amp;", "&")
    assert link == f"/o/acme/orders/review/?machine={machine.pk}&term_days=7&lots=2"
    assert client.get(link).status_code == 200
    assert not Order.objects.exists()
    assert Machine.objects.get().free_lots == 2


def test_fewer_orders_are_named_when_they_cost_more(read, machine):
    text = read(machine=machine.pk, days=30)
    assert "$471.40" in text
    assert "With fewer orders: 1 × 30 days for $471.43, which is $0.03 more" in text


@time_machine.travel("2026-03-27T11:00:00+00:00", tick=False)
def test_until_a_day_means_to_its_end_in_utc_across_a_clock_change(read, machine):
    text = read(machine=machine.pk, until="2026-04-03")
    # 7 days and 13 hours are wanted: a begun day counts, and three times three days are the least that covers eight.
    assert "9 days of 1 lot" in text
    assert "2026-04-05 11:00:00 UTC" in text
    assert "Longer than asked 1 day and 11 hours" in text


@time_machine.travel("2028-02-28T00:00:00+00:00", tick=False)
def test_a_leap_day_is_a_day(read, machine):
    text = read(machine=machine.pk, until="2028-03-01")
    assert "2028-03-02 00:00:00 UTC" in text
    assert "Longer than asked Not at all" in text


def test_a_budget_pays_for_the_longest(read, machine):
    text = read(machine=machine.pk, budget_usd="600.00")
    assert "38 days of 1 lot" in text
    assert "Left of the budget" in text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"days": "10", "budget_usd": "5"}, "Give one of the three"),
        ({"days": "0"}, "Days must be 1 or more"),
        ({"days": "99999999999999999999999"}, "must be 3,650 or less"),
        ({"days": "ten"}, "whole number"),
        ({"days": "1\x00"}, "whole number"),
        ({"until": "2020-01-01"}, "Choose today or a later day"),
        ({"until": "9998-12-31"}, "within the next ten years"),
        ({"until": "0001-01-01"}, "within the next ten years"),
        ({"until": "tomorrow"}, "year-month-day"),
        ({"budget_usd": "0"}, "Budget must be 0.01 USD or more"),
        ({"budget_usd": "NaN"}, "amount in USD"),
        ({"budget_usd": "47.13"}, "The least term costs 47.14 USD, for 3 days."),
        ({"days": "7", "lots": "0"}, "must be 1 or more"),
        ({"days": "7", "machine": "999999"}, "not offered"),
        ({"days": "7", "machine": "x"}, "not offered"),
        ({"days": "7", "machine": "9" * 30}, "not offered"),
        ({"days": "7", "machine": ""}, "Choose a machine."),
        ({"weeks": "7"}, "does not know weeks"),
    ],
)
def test_what_cannot_be_planned_is_said(read, machine, query, words):
    assert words in read(400, **{"machine": machine.pk, **query})


def test_the_page_opens_empty_and_with_a_machine(read, machine):
    assert "Choose a machine" in read()
    assert "North 1" in read(machine=machine.pk)
    read(machine="\ud800".encode("utf-8", "surrogatepass"))


def test_the_list_of_machines_says_first_what_tells_them_apart(read, machine):
    gpus = f"{machine.gpu.name} × {machine.gpu_count}"
    assert f" {gpus}, North 1, {machine.provider.name} " in read()
    Machine.objects.update(name=f"{gpus}, Oslo")
    assert f" {gpus}, Oslo, {machine.provider.name} " in read()


def test_too_few_free_lots_are_said(read, machine):
    Machine.objects.update(free_lots=1)
    assert "at the moment only 1 lot of this machine is free" in read(machine=machine.pk, lots=2, days=7)


def test_a_term_longer_than_the_machine_allows_is_not_planned(read, machine):
    Machine.objects.update(max_term_days=7)
    assert "30 days" not in read(machine=machine.pk, days=30).split("With fewer")[1]


def test_the_end_is_so_many_days_of_24_hours_from_now(read, machine, now):
    text = read(machine=machine.pk, days=7)
    assert f"{now + timedelta(days=7):%Y-%m-%d %H:%M}" in text or f"{now + timedelta(days=7, minutes=1):%H:%M}" in text


def test_machine_and_review_page_lead_to_the_planner(client, acme, shop):
    html = client.get(f"/catalog/machines/{shop.pk}/").content.decode()
    assert f'href="/planner/?machine={shop.pk}"' in html
    entry = f"/planner/?machine={shop.pk}"
    assert client.get(entry).url == f"/accounts/login/?next=/planner/%3Fmachine%3D{shop.pk}"
    client.force_login(acme.owner)
    onward = client.get(entry).url
    assert onward == f"/o/acme/planner/?machine={shop.pk}"
    assert f'<option value="{shop.pk}" selected' in client.get(onward).content.decode()
    html = client.get(f"/o/acme/orders/review/?machine={shop.pk}&lots=2").content.decode()
    assert f'href="/o/acme/planner/?machine={shop.pk}&amp;lots=2"' in html


def test_who_has_several_organizations_chooses_where_to_plan(client, acme, globex, shop):
    make_member(globex, user=acme.owner)
    client.force_login(acme.owner)
    html = client.get(f"/planner/?machine={shop.pk}").content.decode()
    assert "Which organization plans?" in html
    assert f'href="/o/globex/planner/?machine={shop.pk}"' in html


def test_who_has_no_organization_makes_one_first(client, shop):
    client.force_login(make_user())
    assert client.get(f"/planner/?machine={shop.pk}").url.startswith("/o/new/?next=%2Fplanner%2F%3Fmachine")
