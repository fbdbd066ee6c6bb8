"""Lines and totals: each unit price is rounded once, then multiplied."""

from decimal import Decimal

import pytest

from catalog.pricing import package_price, pro_rata
from rentals.quotes import quote
from rentals.totals import option_line, package_line, total_usd
from tests.factories import make_basket, make_machine, make_option


def test_a_unit_price_is_rounded_before_it_is_multiplied():
    """B121: 0.0999 an hour for 168 hours is 16.7832; three lots cost 50.34, not 50.35."""
    line = package_line(description="7 days", unit_usd=Decimal("0.0999") * 168, lots=3)
    assert (line.unit_usd, line.amount_usd) == (Decimal("16.78"), Decimal("50.34"))


def test_an_option_is_rounded_once_per_lot():
    line = option_line(option="x", description="X", price_per_lot_day_usd=Decimal("0.0715"), days=7, quantity=1, lots=3)
    assert (line.unit_usd, line.amount_usd) == (Decimal("0.50"), Decimal("1.50"))


def test_two_lots_with_storage_cost_241(acme, now):
    machine = make_machine(lots=2, price_7_days_usd=Decimal("110.00"))
    make_option("storage-500")
    offer = quote(make_basket(machine, lots=2, options=(chosen("storage-500"),)), now=now)
    assert [str(line.amount_usd) for line in offer.lines] == ["220.00", "21.00"]
    assert offer.total_usd == Decimal("241.00")
    assert total_usd(offer.lines) == sum(line.amount_usd for line in offer.lines)


@pytest.mark.parametrize(
    ("hourly", "days", "cents"),
    [("0.35", 30, "252.00"), ("1.10", 30, "792.00"), ("2.47", 7, "414.96"), ("0.0999", 7, "16.78")],
)
def test_prices_are_decimal_and_never_a_cent_off(hourly, days, cents):
    """B123: in floats 0.35 x 720 is 251.99999999999997."""
    assert package_price(Decimal(hourly), days) == Decimal(cents)


@pytest.mark.parametrize(("weekly", "three", "thirty"), [("110.00", "47.14", "471.43"), ("130.00", "55.71", "557.14")])
def test_other_terms_are_pro_rata_of_a_week(weekly, three, thirty):
    assert pro_rata(Decimal(weekly), 3) == Decimal(three)
    assert pro_rata(Decimal(weekly), 30) == Decimal(thirty)


def test_a_float_is_no_money():
    with pytest.raises(TypeError):
        package_line(description="", unit_usd=0.35 * 720, lots=1)


def chosen(slug, quantity=1):
    from rentals.baskets import ChosenOption

    return ChosenOption(slug, quantity)
