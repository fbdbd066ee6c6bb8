"""One key, one order: the table of situations, row by row, at the one function."""

from datetime import timedelta
from decimal import Decimal

import pytest

from catalog.models import Machine
from rentals.errors import IdempotencyMismatch, InvalidKey, NotPermitted, PriceChanged, SoldOut
from rentals.models import IdempotencyRecord, Membership, Order
from tests.factories import make_basket, make_member, place


def test_the_same_request_gets_the_same_bytes_however_often(acme, shop, now):
    basket = make_basket(shop)
    first = place(acme, basket, idempotency_key="k")
    for later in range(3):
        again = place(
            acme, basket, idempotency_key="k", expected_total_usd=Decimal("110.00"), now=now + timedelta(days=later)
        )
        assert (again.status, again.body, again.replayed) == (201, first.body, True)
    assert not first.replayed
    assert Order.objects.count() == 1


def test_a_repeat_is_answered_when_since_sold_out_repriced_and_withdrawn(acme, shop):
    basket = make_basket(shop, lots=2)
    first = place(acme, basket, idempotency_key="k")
    Machine.objects.filter(pk=shop.pk).update(price_7_days_usd=Decimal("1.00"), listed=False)
    again = place(acme, basket, idempotency_key="k", expected_total_usd=Decimal("220.00"))
    assert again.body == first.body


@pytest.mark.parametrize(
    ("basket", "request_fields", "fields"),
    [
        ({"lots": 2}, {"expected_total_usd": Decimal("220.00")}, {"lots", "expected_total_usd"}),
        ({"term_days": 30}, {}, {"term_days"}),
        ({"environment": "vllm"}, {}, {"environment.preset"}),
        ({"environment_notes": "x"}, {}, {"environment.notes"}),
        ({"workload": {"task": "run", "model": "m"}}, {}, {"workload.task", "workload.model"}),
        ({}, {"path": "/api/v1/orders"}, {"path"}),
        ({}, {"method": "PUT"}, {"method"}),
    ],
)
def test_another_request_with_the_key_is_refused_naming_the_fields(acme, shop, basket, request_fields, fields):
    order = place(acme, make_basket(shop), idempotency_key="k").order
    with pytest.raises(IdempotencyMismatch) as caught:
        place(
            acme,
            make_basket(shop, **basket),
            idempotency_key="k",
            **{"expected_total_usd": Decimal("110.00"), **request_fields},
        )
    assert {difference.field for difference in caught.value.differences} == fields
    assert caught.value.order_id == order.pk
    assert Order.objects.count() == 1
    for field in fields:
        assert field in str(caught.value)


def test_the_order_of_options_is_no_difference(acme, shop):
    from rentals.baskets import ChosenOption
    from tests.factories import make_option

    make_option("a", name="A")
    make_option("b", name="B")
    options = (ChosenOption("a"), ChosenOption("b", 2))
    first = place(acme, make_basket(shop, options=options), idempotency_key="k")
    again = place(
        acme, make_basket(shop, options=options[::-1]), idempotency_key="k", expected_total_usd=first.order.total_usd
    )
    assert again.replayed


def test_a_refused_request_leaves_its_key_free(acme, shop):
    """B141: a validation error, then the corrected request with the same key; sold out, then restocked."""
    with pytest.raises(PriceChanged):
        place(acme, make_basket(shop), idempotency_key="k", expected_total_usd=Decimal("1.00"))
    Machine.objects.filter(pk=shop.pk).update(free_lots=0)
    with pytest.raises(SoldOut):
        place(acme, make_basket(shop), idempotency_key="k")
    assert not IdempotencyRecord.objects.exists()
    Machine.objects.filter(pk=shop.pk).update(free_lots=2)
    assert not place(acme, make_basket(shop, lots=2), idempotency_key="k").replayed


def test_a_crash_after_the_record_leaves_the_key_free(acme, shop, monkeypatch):
    def crash(*args, **kwargs):
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr("rentals.ordering._take_stock", crash)
        with pytest.raises(RuntimeError):
            place(acme, make_basket(shop), idempotency_key="k")
    assert not IdempotencyRecord.objects.exists()
    assert not place(acme, make_basket(shop), idempotency_key="k").replayed


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb", "a\x00", "clé", "🔑", " a", "a ", " ", None, 7])
def test_a_missing_or_malformed_key_is_refused(acme, shop, key):
    """B144."""
    with pytest.raises(InvalidKey):
        place(acme, make_basket(shop), idempotency_key=key)


@pytest.mark.parametrize("key", ["x", "x" * 255, "a b", "~!"])
def test_printable_keys_up_to_255_are_accepted(acme, shop, key):
    assert place(acme, make_basket(shop), idempotency_key=key).order.idempotency_key == key


def test_keys_of_organizations_are_independent(acme, globex, shop):
    """B143."""
    first = place(acme, make_basket(shop), idempotency_key="k")
    second = place(globex, make_basket(shop), idempotency_key="k")
    assert first.order.pk != second.order.pk
    assert not second.replayed


def test_who_may_no_longer_order_never_gets_the_stored_answer(acme, shop):
    member = make_member(acme)
    place(acme, make_basket(shop), idempotency_key="k", actor=member)
    Membership.objects.filter(user=member).delete()
    with pytest.raises(NotPermitted):
        place(acme, make_basket(shop), idempotency_key="k", actor=member)


def test_a_colleague_may_send_the_request_again(acme, shop):
    first = place(acme, make_basket(shop), idempotency_key="k")
    again = place(acme, make_basket(shop), idempotency_key="k", actor=make_member(acme))
    assert again.body == first.body
