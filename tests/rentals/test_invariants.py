"""The check finds what is wrong, and says nothing when all is well."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from catalog.models import Machine
from rentals.invariants import violations
from rentals.models import Allocation, IdempotencyRecord, Membership, Order
from tests.factories import make_machine, make_order


def test_all_is_well_after_ordinary_orders(acme, capsys):
    machine = make_machine(lots=3)
    make_order(acme, machine, lots=2)
    call_command("check_invariants")
    assert "rules hold" in capsys.readouterr().out


def test_lots_kept_back_by_the_operator_are_no_loss(acme):
    make_machine(lots=4, free_lots=0)
    assert not violations()


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda order: Machine.objects.update(free_lots=3), "stock_and_active_lots_are_all_lots"),
        (lambda order: Machine.objects.update(free_lots=0), "stock_and_active_lots_are_all_lots"),
        (lambda order: Allocation.objects.filter(number=1).delete(), "one_allocation_for_each_lot"),
        (lambda order: IdempotencyRecord.objects.all().delete(), "one_order_for_each_key"),
        (lambda order: Order.objects.update(total_usd="1.00"), "totals_are_their_lines"),
        (lambda order: Order.objects.update(lines=[]), "totals_are_their_lines"),
        (lambda order: Order.objects.update(status="ended"), "terms_last_exactly_their_days"),
        (lambda order: Membership.objects.update(role="admin"), "every_organization_has_an_owner"),
    ],
)
def test_what_is_wrong_is_found_and_the_command_fails(acme, capsys, spoil, rule):
    order = make_order(acme, make_machine(lots=3), lots=2)
    spoil(order)
    with pytest.raises(CommandError):
        call_command("check_invariants")
    assert rule in capsys.readouterr().err


def test_a_row_of_another_tenant_is_found(acme, globex):
    order = make_order(acme)
    Allocation.objects.filter(order=order).update(organization=globex)
    assert {violation.rule for violation in violations()} == {"no_row_refers_to_another_tenant"}
