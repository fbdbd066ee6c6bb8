"""Who belongs to an organization. Owners decide on everybody, admins on all but owners; one owner always stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction

from rentals.audit import name_of, record
from rentals.errors import LastOwner, NotPermitted
from rentals.models import Membership, Organization
from rentals.models.organizations import Role


def grantable_roles(manager: Membership) -> tuple[Role, ...]:
    """The roles this member may give and take away."""
    if manager.role == Role.OWNER:
        return tuple(Role)
    return tuple(role for role in Role if role != Role.OWNER) if manager.may_manage else ()


def change_role(manager: Membership, membership_id: int, *, role: str, now: datetime) -> Membership:
    """Give a member another role.

    Raises: NotPermitted, LastOwner, Membership.DoesNotExist.
    """
    with managed(manager) as organization:
        membership = Membership.objects.for_organization(organization).select_related("user").get(pk=membership_id)
        check_grantable(manager, membership.role, role)
        if membership.role == Role.OWNER and role != Role.OWNER:
            _check_another_owner(membership)
        if membership.role != role:
            before, membership.role = membership.role, role
            membership.save(update_fields=["role"])
            record(organization, "member.role_changed", at=now, actor=manager.user, via="page",
                   object_id=membership.user_id, member=name_of(membership.user), before=before, role=role)  # fmt: skip
    return membership


def remove_member(manager: Membership, membership_id: int, *, now: datetime) -> Membership:
    """Take a member out. Everybody may take themselves out.

    Raises: NotPermitted, LastOwner, Membership.DoesNotExist.
    """
    with managed(manager) as organization:
        membership = Membership.objects.for_organization(organization).select_related("user").get(pk=membership_id)
        if membership.pk != manager.pk:
            check_grantable(manager, membership.role)
        if membership.role == Role.OWNER:
            _check_another_owner(membership)
        Membership.objects.filter(pk=membership.pk).delete()
        record(organization, "member.removed", at=now, actor=manager.user, via="page",
               object_id=membership.user_id, member=name_of(membership.user), role=membership.role)  # fmt: skip
    return membership


def transfer_ownership(owner: Membership, membership_id: int, *, now: datetime) -> Membership:
    """Make a member an owner and the present one an admin, both at once.

    Raises: NotPermitted, Membership.DoesNotExist.
    """
    with managed(owner) as organization:
        if owner.role != Role.OWNER:
            raise NotPermitted("Only an owner transfers ownership.")
        heir = Membership.objects.for_organization(organization).select_related("user").get(pk=membership_id)
        if heir.pk == owner.pk:
            raise NotPermitted("You are an owner already. Choose somebody else.")
        before = heir.role
        Membership.objects.filter(pk=heir.pk).update(role=Role.OWNER)
        Membership.objects.filter(pk=owner.pk).update(role=Role.ADMIN)
        heir.role, owner.role = Role.OWNER, Role.ADMIN
        record(organization, "ownership.transferred", at=now, actor=owner.user, via="page", object_id=heir.user_id,
               member=name_of(heir.user), before=before, former=name_of(owner.user))  # fmt: skip
    return heir


@contextmanager
def managed(manager: Membership) -> Iterator[Organization]:
    """A transaction that holds the organization, so that two owners cannot remove each other at the same moment."""
    with transaction.atomic():
        # Not FOR UPDATE: an order's rows refer to the organization and hold its key, and must not wait for members.
        organization = Organization.objects.select_for_update(no_key=True).get(pk=manager.organization_id)
        # Read again under the lock: the manager's own role may just have been taken away.
        current = Membership.objects.for_organization(organization).filter(pk=manager.pk).first()
        if current is None or current.role != manager.role:
            raise NotPermitted("Your role has changed. Load the page again.")
        yield organization


def check_grantable(manager: Membership, *roles: str) -> None:
    if not manager.may_manage:
        raise NotPermitted("Only owners and admins manage members.")
    if any(role not in grantable_roles(manager) for role in roles):
        raise NotPermitted("Only an owner may make, change or remove an owner.")


def _check_another_owner(membership: Membership) -> None:
    owners = Membership.objects.filter(organization_id=membership.organization_id, role=Role.OWNER)
    if not owners.exclude(pk=membership.pk).exists():
        raise LastOwner
