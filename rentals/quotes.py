"""What a basket costs now and whether it can be had: for the review page, for a quote, and inside the order itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import BooleanField, Case, Value, When

from catalog.models import Machine, Option
from catalog.pricing import TERMS_DAYS, hourly_equivalent
from catalog.querysets import is_current
from catalog.quoting import shown
from rentals import policies
from rentals.baskets import Basket
from rentals.errors import AcknowledgementRequired, InvalidBasket, OffLine, SoldOut, TermNotOffered, UnknownMachine
from rentals.totals import Line, option_line, package_line, total_usd

if TYPE_CHECKING:
    from rentals.models import Organization, OrganizationPolicy

# The largest amount a column for money holds.
MAX_TOTAL_USD = Decimal("9999999999.99")


@dataclass(frozen=True)
class Quote:
    """A basket with its machine and its prices. `current`: the listing is true now (listed, reported, fresh)."""

    basket: Basket
    machine: Machine
    current: bool
    lines: tuple[Line, ...]
    total_usd: Decimal

    @property
    def unit_usd(self) -> Decimal:
        return self.lines[0].unit_usd

    @property
    def hourly_usd(self) -> Decimal:
        return hourly_equivalent(self.unit_usd, self.basket.term_days)

    @property
    def cards(self) -> int:
        return self.basket.lots * self.machine.gpu_count

    def check_current(self) -> None:
        if not self.current:
            raise OffLine(self.machine)

    def check_acknowledged(self) -> None:
        if self.machine.tier == "community" and not self.basket.community_acknowledged:
            raise AcknowledgementRequired(self.machine)

    def check_stock(self) -> None:
        if self.machine.lots_to_sell < self.basket.lots:
            raise SoldOut(self.machine, self.basket.lots, self.machine.lots_to_sell)


def terms_offered(machine: Machine) -> tuple[int, ...]:
    return tuple(days for days in TERMS_DAYS if machine.package_usd(days) is not None)


def quote(basket: Basket, *, now: datetime) -> Quote:
    """The lines and the total of the basket at today's prices.

    Raises: UnknownMachine, TermNotOffered, InvalidBasket (an option or its quantity, a total beyond all measure).
    """
    machine = _machine(basket.machine_id, now)
    unit_usd = machine.package_usd(basket.term_days)
    if unit_usd is None:
        raise TermNotOffered(machine, basket.term_days, terms_offered(machine))
    description = f"{machine.name}, {basket.term_days} days"
    lines = (
        package_line(description=description, unit_usd=unit_usd, lots=basket.lots),
        *_option_lines(basket),
    )
    total = total_usd(lines)
    if total > MAX_TOTAL_USD:
        raise InvalidBasket("lots", "This order is too large for one total. Ask for fewer lots or options.")
    return Quote(basket, machine, machine.current, lines, total)  # type: ignore[attr-defined]


def permitted_quote(
    basket: Basket, organization: Organization, policy: OrganizationPolicy | None, role: str, *, now: datetime
) -> Quote:
    """The quote, when the organization may have it and it can be had now: what stands in its way is said in this order
    by a quote, by the administration and first of all by an order.

    Raises: PolicyViolation, OffLine, SoldOut and what `quote` raises.
    """
    policies.check_role(policy, role)
    offer = quote(basket, now=now)
    offer.check_current()
    policies.check(policy, organization, offer, now=now)
    offer.check_stock()
    return offer


def _machine(machine_id: int, now: datetime) -> Machine:
    listed = Case(
        When(is_current(now), listed=True, then=Value(True)), default=Value(False), output_field=BooleanField()
    )
    machines = Machine.objects.with_facts().annotate(current=listed)
    try:
        return machines.get(pk=machine_id)
    except Machine.DoesNotExist:
        raise UnknownMachine(machine_id) from None


def listed_options() -> list[Option]:
    """What is on sale, in the order that people expect: 500 GB before 2,000 GB."""
    return sorted(Option.objects.filter(listed=True), key=lambda option: natural(option.name))


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key that orders numbers inside names by their size.

    >>> sorted(["Storage 2,000 GB", "Storage 500 GB", "Storage 100 GB"], key=natural)
    ['Storage 100 GB', 'Storage 500 GB', 'Storage 2,000 GB']
    """
    parts = re.findall(r"[0-9](?:[0-9,]*[0-9])?|[^0-9]+", text.lower())
    return [(0, int(part.replace(",", "")), "") if part[0].isdecimal() else (1, 0, part) for part in parts]


def _option_lines(basket: Basket) -> list[Line]:
    if not basket.options:
        return []
    known = {option.slug: option for option in Option.objects.filter(listed=True)}
    lines = []
    for chosen in basket.options:
        option = known.get(chosen.slug)
        if option is None:
            raise InvalidBasket("option", f"There is no option “{shown(chosen.slug)}”.")
        if chosen.quantity > option.max_quantity:
            raise InvalidBasket("option", f"At most {option.max_quantity} × {option.name} can go with a lot.")
        lines.append(
            option_line(
                option=option.slug,
                description=option.name,
                price_per_lot_day_usd=option.price_per_lot_day_usd,
                days=basket.term_days,
                quantity=chosen.quantity,
                lots=basket.lots,
            )
        )
    return lines
