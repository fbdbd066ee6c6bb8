"""An organization's policy: changing it, and what it says to an order. Asked by pages, and again inside the order."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db.models import Sum

from catalog import countries
from catalog.models import Machine, Tier
from rentals.audit import record
from rentals.errors import NotPermitted, PolicyViolation, RentalError
from rentals.managing import managed
from rentals.models import Membership, Order, Organization, OrganizationPolicy
from rentals.models.organizations import ORDERING_ROLES, Role
from sizing.answers import HardLimits
from sizing.explain import places
from sizing.explain.words import usd

if TYPE_CHECKING:
    from rentals.quotes import Quote

# Only an admin or an owner can make a key, so a key may what an admin may.
ROLE_OF_KEYS = Role.ADMIN
RULES = ("tiers", "countries", "max_order_usd", "max_month_usd", "order_role", "community_acknowledged")


class PolicyChanged(RentalError):
    """Somebody else changed the policy after the form was opened."""

    def __init__(self) -> None:
        super().__init__("The policy was changed after you opened this page. Nothing was saved yet.")


def policy_of(organization: Organization) -> OrganizationPolicy | None:
    return OrganizationPolicy.objects.for_organization(organization).first()


def held_policy(organization: Organization) -> OrganizationPolicy | None:
    """The policy, its row held until the transaction ends: orders of one organization pass its limits one by one."""
    return OrganizationPolicy.objects.for_organization(organization).select_for_update(of=("self",)).first()


def limits_of(policy: OrganizationPolicy | None, organization: Organization, *, now: datetime) -> HardLimits:
    """The part of the policy that decides which machines are offered."""
    if policy is None:
        return HardLimits()
    most = [] if policy.max_order_usd is None else [policy.max_order_usd]
    if policy.max_month_usd is not None:
        most.append(max(policy.max_month_usd - spent_in_month(organization, now=now), Decimal("0.00")))
    return HardLimits(
        tiers=allowed_tiers(policy), countries=policy.countries, max_order_usd=min(most) if most else None
    )


def allowed_tiers(policy: OrganizationPolicy) -> list[str] | None:
    """Where the rule names tiers, Community only if the organization has said that it knows what it means.

    Without a rule about tiers, whoever orders a Community machine says so, as without a policy.
    """
    if policy.tiers is None:
        return None
    return [tier for tier in policy.tiers if tier != Tier.COMMUNITY or policy.community_acknowledged]


def change_policy(
    manager: Membership, rules: dict[str, Any], *, now: datetime, seen: str | None = None
) -> OrganizationPolicy:
    """The organization's policy with these rules, by the names of RULES.

    `seen` is the `state_of` the policy that the person saw; without it, whatever stands now is replaced.

    Raises: NotPermitted, PolicyChanged.
    """
    with managed(manager) as organization:
        if not manager.may_manage:
            raise NotPermitted("Only owners and admins change the policy.")
        policy = held_policy(organization) or OrganizationPolicy(organization=organization)
        before, there = (_plain(policy), state_of(policy)) if policy.pk else ({}, state_of(None))
        for name in RULES:
            setattr(policy, name, rules[name])
        if before == _plain(policy):
            return policy
        if seen is not None and seen != there:
            raise PolicyChanged
        policy.changed_at, policy.changed_by = now, manager.user
        policy.save()
        changed = {name: value for name, value in _plain(policy).items() if before.get(name) != value}
        record(organization, "policy.changed", at=now, actor=manager.user, via="page", object_id=organization.slug,
               before={name: before.get(name) for name in changed}, now=changed)  # fmt: skip
    return policy


def state_of(policy: OrganizationPolicy | None) -> str:
    """What tells one state of a policy from the next; a form carries it, so that it undoes nobody else's change."""
    return "" if policy is None else policy.changed_at.astimezone(UTC).isoformat()


def check_member(membership: Membership | None) -> Membership:
    """The membership, when there is one and its role may order at all.

    Raises: NotPermitted.
    """
    if membership is None or not membership.may_order:
        raise NotPermitted("Your role in this organization may look, not order. Ask an owner or admin.")
    return membership


def check_role(policy: OrganizationPolicy | None, role: str) -> None:
    """Whether the role is high enough.

    Raises: PolicyViolation.
    """
    if role in may_order(policy):
        return
    roles = [Role(allowed).label.lower() + "s" for allowed in may_order(policy)]
    named = " and ".join(filter(None, [", ".join(roles[:-1]), roles[-1]]))
    raise PolicyViolation(
        "order_role", f"Only {named} may place orders, by your organization's policy. Ask one of them."
    )


def check_may_order(membership: Membership, policy: OrganizationPolicy | None) -> None:
    """What a page says before anything else: whether this member may order at all.

    Raises: NotPermitted, PolicyViolation.
    """
    check_role(policy, check_member(membership).role)


def may_order(policy: OrganizationPolicy | None) -> tuple[str, ...]:
    """The roles that may order, highest first."""
    least = policy.order_role if policy else Role.MEMBER.value
    return tuple(role.value for role in ORDERING_ROLES[: [r.value for r in ORDERING_ROLES].index(least) + 1])


def permits_ordering(membership: Membership | None, policy: OrganizationPolicy | None) -> bool:
    """Whether this member may order here. Who may also sees and works with what was ordered: connection details, lots,
    SSH keys."""
    return membership is not None and membership.role in may_order(policy)


def keys_may_order(policy: OrganizationPolicy | None) -> bool:
    """Whether a key of the scope `order` may order here, and so sees and works with what was ordered."""
    return ROLE_OF_KEYS in may_order(policy)


def check_machine(policy: OrganizationPolicy | None, machine: Machine) -> None:
    """Raises: PolicyViolation."""
    if policy is None:
        return
    tiers = allowed_tiers(policy)
    if policy.tiers is not None and machine.tier not in policy.tiers:
        allowed = ", ".join(Tier(tier).label for tier in policy.tiers) or "no tier"
        raise PolicyViolation("tiers", f"Your organization's policy allows {allowed} machines only.")
    if tiers is not None and machine.tier not in tiers:
        raise PolicyViolation(
            "community_acknowledged",
            "Your organization's policy does not allow Community machines: nobody has acknowledged for it that their "
            "providers can read the session's memory.",
        )
    if policy.countries is not None and machine.country not in countries.expand(policy.countries):
        allowed = f"only machines in {places(tuple(policy.countries))}" if policy.countries else "no country"
        raise PolicyViolation("countries", f"Your organization's policy allows {allowed}.")


def check_spending(
    policy: OrganizationPolicy | None, organization: Organization, total_usd: Decimal, *, now: datetime
) -> None:
    """Raises: PolicyViolation."""
    if policy is None:
        return
    if policy.max_order_usd is not None and total_usd > policy.max_order_usd:
        raise PolicyViolation(
            "max_order_usd",
            f"Your organization's policy allows at most {usd(policy.max_order_usd)} per order; "
            f"this one is {usd(total_usd)}.",
        )
    if policy.max_month_usd is not None:
        spent = spent_in_month(organization, now=now)
        if spent + total_usd > policy.max_month_usd:
            raise PolicyViolation(
                "max_month_usd",
                f"Your organization's policy allows {usd(policy.max_month_usd)} per calendar month (UTC). "
                f"{usd(spent)} is ordered this month, and this order is {usd(total_usd)}.",
            )


def check(policy: OrganizationPolicy | None, organization: Organization, offer: Quote, *, now: datetime) -> None:
    """Every rule about what is ordered; who orders is `check_role`'s.

    Raises: PolicyViolation.
    """
    check_machine(policy, offer.machine)
    check_spending(policy, organization, offer.total_usd, now=now)


def spent_in_month(organization: Organization, *, now: datetime) -> Decimal:
    """What was ordered in the calendar month of `now` in UTC, less what was credited for it. Units: USD."""
    start = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    end = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    placed = Order.objects.for_organization(organization).filter(starts_at__gte=start, starts_at__lt=end)
    sums = placed.aggregate(ordered=Sum("total_usd"), credited=Sum("credit_usd"))
    # SQLite adds up decimals as floats; to the cent it is right for any sum that a column holds.
    return (Decimal(sums["ordered"] or 0) - Decimal(sums["credited"] or 0)).quantize(Decimal("0.01"))


def _plain(policy: OrganizationPolicy) -> dict[str, Any]:
    values = {name: getattr(policy, name) for name in RULES}
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in values.items()}
