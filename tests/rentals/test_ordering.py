"""Placing an order: what it stores, what it refuses, and that a refusal leaves nothing behind."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.models import Machine
from rentals.baskets import Basket, ChosenOption
from rentals.errors import (
    AcknowledgementRequired,
    InvalidBasket,
    NotPermitted,
    OffLine,
    PriceChanged,
    SoldOut,
    TermNotOffered,
    UnknownMachine,
)
from rentals.invariants import violations
from rentals.models import Allocation, AuditEvent, IdempotencyRecord, Order
from tests.factories import (
    make_basket,
    make_machine,
    make_member,
    make_option,
    make_order,
    make_provider,
    make_user,
    place,
)
from tests.tenancy import statements

STORAGE = (ChosenOption("storage-500", 1),)


def stored() -> list[int]:
    return [model.objects.count() for model in (Order, Allocation, IdempotencyRecord, AuditEvent)]


def free_lots(machine: Machine) -> int:
    return Machine.objects.get(pk=machine.pk).free_lots


def test_an_order_copies_what_was_sold_and_takes_the_lots(acme, now):
    machine = make_machine(lots=3, gpu_count=2, price_7_days_usd=Decimal("110.00"))
    make_option("storage-500")
    placement = place(acme, make_basket(machine, lots=2, options=STORAGE, environment="vllm"), now=now)
    order = Order.objects.get()
    assert (order.total_usd, order.lots, order.cards) == (Decimal("241.00"), 2, 4)
    assert order.machine_facts["name"] == machine.name
    assert (order.starts_at, order.ends_at) == (now, now + timedelta(seconds=7 * 86_400))
    assert [allocation.number for allocation in order.allocations.all()] == [1, 2]
    assert (order.placed_by, order.placed_by_name) == (acme.owner, acme.owner.email)
    assert free_lots(machine) == 1
    document = json.loads(placement.body)
    assert document["total_usd"] == "241.00"
    assert document["html_url"] == f"http://testserver/o/acme/orders/{order.pk}/"
    assert document["ends_at"].endswith("Z")
    assert not violations()


def test_placing_an_order_takes_at_most_fifteen_statements(acme, now):
    machine = make_machine(lots=3)
    make_option("storage-500")
    basket = make_basket(machine, lots=3, options=STORAGE)
    with CaptureQueriesContext(connection) as captured:
        place(acme, basket, now=now, expected_total_usd=machine.price_7_days_usd * 3 + Decimal("31.50"))
    assert len(statements(captured.captured_queries)) <= 15


def test_figures_of_an_order_outlive_price_changes_and_the_machine(acme):
    machine = make_machine(price_7_days_usd=Decimal("110.00"))
    order = make_order(acme, machine)
    machine.price_7_days_usd = Decimal("999.00")
    machine.save()
    Machine.objects.filter(pk=machine.pk).delete()
    order = Order.objects.get()
    assert (order.machine, order.total_usd, order.machine_facts["name"]) == (None, Decimal("110.00"), machine.name)


def refused(error, organization, basket, **fields):
    before = stored()
    with pytest.raises(error) as caught:
        place(organization, basket, **{"expected_total_usd": Decimal("110.00"), **fields})
    assert stored() == before
    return caught.value


@pytest.fixture
def sold_for_110(db):
    return make_machine(price_7_days_usd=Decimal("110.00"), lots=2)


def test_sold_out_leaves_nothing_behind(acme, sold_for_110):
    error = refused(SoldOut, acme, make_basket(sold_for_110, lots=3), expected_total_usd=Decimal("330.00"))
    assert (error.machine, error.wanted, error.available) == (sold_for_110, 3, 2)
    assert str(error) == "3 lots asked, 2 free."
    assert free_lots(sold_for_110) == 2


def test_the_stock_statement_alone_would_refuse_too(acme, sold_for_110, monkeypatch):
    """The early look at the stock spares a queue; without it the conditional update still says no."""
    monkeypatch.setattr("rentals.quotes.Quote.check_stock", lambda offer: None)
    with pytest.raises(Exception, match="try again"):
        place(acme, make_basket(sold_for_110, lots=3))
    assert stored() == [0, 0, 0, 0]
    assert free_lots(sold_for_110) == 2


def test_the_database_itself_refuses_negative_stock(sold_for_110):
    """B135: a constraint is the last line."""
    for wrong in (-1, 3):
        with pytest.raises(IntegrityError), transaction.atomic():
            Machine.objects.filter(pk=sold_for_110.pk).update(free_lots=wrong)


def test_another_total_than_the_person_saw_is_refused_with_both(acme, sold_for_110):
    error = refused(PriceChanged, acme, make_basket(sold_for_110), expected_total_usd=Decimal("100.00"))
    assert (error.old, error.new) == (Decimal("100.00"), Decimal("110.00"))


@pytest.mark.parametrize("fields", [{"listed": False}, {"online": False}])
def test_a_machine_that_is_not_offered_now_is_refused(acme, fields):
    machine = make_machine(price_7_days_usd=Decimal("110.00"), **fields)
    refused(OffLine, acme, make_basket(machine))


def test_a_machine_whose_feed_is_stale_is_refused(acme, now):
    fed = make_provider(feed_url="https://feed.example/", feed_format="native", refreshed_at=now - timedelta(minutes=6))
    machine = make_machine(price_7_days_usd=Decimal("110.00"), provider=fed)
    refused(OffLine, acme, make_basket(machine))


def test_an_unknown_machine_is_refused(acme):
    refused(UnknownMachine, acme, Basket(machine_id=987654, term_days=7))


def test_a_term_the_machine_is_not_sold_for_is_refused(acme, sold_for_110):
    error = refused(TermNotOffered, acme, make_basket(sold_for_110, term_days=3))
    assert error.offered == (7, 30)
    capped = make_machine(max_term_days=7, price_7_days_usd=Decimal("110.00"))
    refused(TermNotOffered, acme, make_basket(capped, term_days=30))


def test_community_needs_the_acknowledgement(acme):
    machine = make_machine(tier="community", price_7_days_usd=Decimal("110.00"))
    refused(AcknowledgementRequired, acme, make_basket(machine, community_acknowledged=False))
    assert make_order(acme, machine).community_acknowledged


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((ChosenOption("nothing"),), "no option “nothing”"),
        ((ChosenOption("storage-500", 5),), "At most 4"),
        ((ChosenOption("withdrawn"),), "no option"),
    ],
)
def test_an_option_must_be_on_sale_in_that_quantity(acme, sold_for_110, options, words):
    make_option("storage-500")
    make_option("withdrawn", name="Withdrawn", listed=False)
    error = refused(InvalidBasket, acme, make_basket(sold_for_110, options=options))
    assert error.field == "option"
    assert words in str(error)


def test_only_roles_that_may_order_do(acme, globex, sold_for_110):
    basket = make_basket(sold_for_110)
    refused(NotPermitted, acme, basket, actor=make_member(acme, "viewer"))
    refused(NotPermitted, acme, basket, actor=globex.owner)
    refused(NotPermitted, acme, basket, actor=None, via="api")
    refused(NotPermitted, acme, basket, actor=acme.owner, via="staff")
    for role in ("member", "admin"):
        place(acme, basket, actor=make_member(acme, role))


def test_staff_order_on_behalf_without_being_members(acme, sold_for_110):
    staff = make_user(is_staff=True)
    order = make_order(acme, sold_for_110, placement={"actor": staff, "via": "staff", "path": "/admin/"})
    assert (order.placed_via, order.placed_by) == ("staff", staff)


@pytest.mark.parametrize("term", [0, 1, 8, 14, 29, 31, -7, 7.5, "7 days", True, None, 1e1, "7"])
def test_only_the_fixed_terms_exist(term):
    """B128."""
    with pytest.raises(InvalidBasket, match="3, 7 or 30 days") as caught:
        Basket(machine_id=1, term_days=term)
    assert caught.value.field == "term_days"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"lots": 0}, "lots"),
        ({"lots": -1}, "lots"),
        ({"lots": 10**30}, "lots"),
        ({"lots": True}, "lots"),
        ({"lots": 1.0}, "lots"),
        ({"machine_id": 2**63}, "machine"),
        ({"machine_id": "1"}, "machine"),
        ({"environment": "windows"}, "environment"),
        ({"environment_notes": "a\x00b"}, "notes"),
        ({"environment_notes": "\ud800"}, "notes"),
        ({"environment_notes": "x" * 501}, "notes"),
        ({"options": STORAGE * 2}, "option"),
    ],
)
def test_a_basket_names_the_field_that_is_wrong(fields, field):
    with pytest.raises(InvalidBasket) as caught:
        Basket(**{"machine_id": 1, "term_days": 7, **fields})
    assert caught.value.field == field


def test_a_total_beyond_what_money_columns_hold_is_refused(acme):
    machine = make_machine(price_7_days_usd=Decimal("9999999999.00"), lots=5)
    with pytest.raises(InvalidBasket, match="too large"):
        place(acme, make_basket(machine, lots=5))


def test_the_transaction_is_its_own(acme, sold_for_110, transactional_db):
    with transaction.atomic(), pytest.raises(RuntimeError):
        place(acme, make_basket(sold_for_110), now=timezone.now())
