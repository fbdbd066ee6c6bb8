"""Money and memory, with the published figures. B-numbers name the public reports whose faults must not happen here."""

from decimal import Decimal

import pytest

from catalog.pricing import Package, hourly_equivalent, package_price, pro_rata, to_cents
from catalog.templatetags.units import gib, usd
from catalog.units import GB, GIB, MIB, from_figure, gib_to_bytes, to_figure, to_gib


@pytest.mark.parametrize(
    ("weekly", "days", "expected"),
    [("110.00", 3, "47.14"), ("130.00", 3, "55.71"), ("110.00", 30, "471.43"), ("130.00", 30, "557.14")],
    ids=["price-4090-3d", "price-6000ada-3d", "price-4090-30d", "price-6000ada-30d"],
)
def test_a_weekly_price_is_divided_in_proportion(weekly: str, days: int, expected: str) -> None:
    assert pro_rata(Decimal(weekly), days) == Decimal(expected)


def test_b121_the_unit_price_is_rounded_once_and_then_multiplied() -> None:
    unit = package_price(Decimal("0.0999"), 7)
    assert (unit, unit * 3) == (Decimal("16.78"), Decimal("50.34"))


@pytest.mark.parametrize(
    ("hourly", "days", "expected"), [("0.35", 30, "252.00"), ("1.10", 30, "792.00"), ("2.47", 7, "414.96")]
)
def test_b123_no_cent_is_lost_to_binary_fractions(hourly: str, days: int, expected: str) -> None:
    assert str(package_price(Decimal(hourly), days)) == expected


def test_money_from_a_float_is_refused() -> None:
    with pytest.raises(TypeError):
        to_cents(0.1)  # type: ignore[arg-type]


def test_the_hourly_price_beside_a_package_has_four_decimals() -> None:
    assert str(hourly_equivalent(Decimal("110.00"), 7)) == "0.6548"
    assert Package(7, Decimal("110.00")).hours == 168
    assert usd(Decimal("1110.00")) == "$1,110.00"


def test_24_gb_are_22_35_gib() -> None:
    assert str(to_gib(24_000_000_000)) == "22.35"
    assert gib(24 * GB) == "22.35 GiB"


@pytest.mark.parametrize("unit", ["GiB", "GB", "MiB", "bytes"])
@pytest.mark.parametrize("figure", ["1", "24", "24564", "22.35", "0.7", "79.65", "141"])
def test_b085_a_figure_is_shown_again_as_it_was_entered(figure: str, unit: str) -> None:
    if unit == "bytes":
        figure = figure.replace(".", "")  # there is no part of a byte
    assert to_figure(from_figure(Decimal(figure), unit), unit) == Decimal(figure)


@pytest.mark.parametrize("size", [1, 999, GIB - 1, 24 * GB, 24564 * MIB, 2**42 + 1])
@pytest.mark.parametrize("unit", ["GiB", "GB", "MiB", "bytes"])
def test_every_number_of_bytes_has_a_figure_that_leads_back_to_it(size: int, unit: str) -> None:
    assert from_figure(to_figure(size, unit), unit) == size


def test_what_a_person_needs_is_rounded_up_and_what_a_machine_has_is_rounded_down() -> None:
    assert gib_to_bytes(Decimal("22.35")) == from_figure(Decimal("22.35"), "GiB") + 1
