"""Members and policy between real connections: an owner always stays, a month's limit is never passed."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.utils import timezone

from rentals import invitations, members, policies
from rentals.invariants import violations
from rentals.models import Membership, Order
from tests.factories import make_invitation, make_member, make_organization, make_user
from tests.rentals.test_concurrency import PRICE, at_once, buying, outcomes, shop
from tests.rentals.test_policy import OPEN

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def membership(organization, user):
    return Membership.objects.select_related("user").get(organization=organization, user=user)


def test_orders_at_once_never_pass_the_months_limit_together():
    acme, machine = make_organization("acme"), shop(lots=20)
    owner = membership(acme, acme.owner)
    policies.change_policy(owner, OPEN | {"max_month_usd": PRICE * 3}, now=datetime.now(UTC))
    results = at_once([buying(acme, machine, f"k{number}") for number in range(10)])
    assert outcomes(results)["Placement"] == 3
    assert set(outcomes(results)) <= {"Placement", "PolicyViolation", "Busy"}
    assert policies.spent_in_month(acme, now=timezone.now()) == PRICE * 3
    assert not violations()


def test_a_limit_lowered_at_the_same_moment_is_before_or_after_the_order():
    acme, machine = make_organization("acme"), shop(lots=20)
    owner = membership(acme, acme.owner)
    policies.change_policy(owner, OPEN, now=datetime.now(UTC))
    zero = OPEN | {"max_order_usd": Decimal(0)}
    acts = [buying(acme, machine, f"k{number}") for number in range(5)]
    results = at_once([*acts, lambda: policies.change_policy(owner, zero, now=datetime.now(UTC))])
    assert outcomes(results)["Placement"] + outcomes(results)["PolicyViolation"] == 5
    assert Order.objects.count() == outcomes(results)["Placement"]
    assert not violations()


def test_two_owners_who_leave_at_once_leave_one():
    for number in range(10):
        organization = make_organization(f"acme-{number}")
        second = make_member(organization, "owner")
        leaving = [membership(organization, user) for user in (organization.owner, second)]
        results = at_once([lambda m=m: members.remove_member(m, m.pk, now=timezone.now()) for m in leaving])
        assert outcomes(results) == {"Membership": 1, "LastOwner": 1}
    assert not violations()


def test_two_owners_who_remove_each_other_leave_one():
    organization = make_organization("acme")
    first, second = (
        membership(organization, user) for user in (organization.owner, make_member(organization, "owner"))
    )
    at_once(
        [
            lambda: members.remove_member(first, second.pk, now=timezone.now()),
            lambda: members.remove_member(second, first.pk, now=timezone.now()),
        ]
    )
    assert Membership.objects.filter(role="owner").count() == 1
    assert not violations()


def test_transferring_twice_at_once_leaves_an_owner():
    organization = make_organization("acme")
    heirs = [membership(organization, make_member(organization)) for _ in range(2)]
    owners = [membership(organization, organization.owner) for _ in range(2)]
    results = at_once(
        [
            lambda o=o, h=h: members.transfer_ownership(o, h.pk, now=timezone.now())
            for o, h in zip(owners, heirs, strict=True)
        ]
    )
    assert outcomes(results) == {"Membership": 1, "NotPermitted": 1}
    assert Membership.objects.filter(role="owner").count() == 1


def test_an_invitation_accepted_twice_at_once_is_used_once():
    acme, user = make_organization("acme"), make_user("new@example.com")
    token_hash = make_invitation(acme).token_hash
    results = at_once([lambda: invitations.accept(token_hash, user, now=timezone.now())] * 4)
    assert outcomes(results) == {"Membership": 1, "InvitationOver": 3}
    assert Membership.objects.filter(user=user).count() == 1
