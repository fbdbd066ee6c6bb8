"""Who belongs to an organization. Owners decide on everybody, admins on all but owners; one owner always stays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rentals.audit import name_of, record
from rentals.errors import LastOwner, NotPermitted
from rentals.leaving import check_decided, left_behind, settle
from rentals.managing import managed
from rentals.models import Membership
from rentals.models.organizations import Role


def grantable_roles(manager: Membership) -> tuple[Role, ...]:
    """The roles this member may give and take away."""
    if manager.role == Role.OWNER:
        return tuple(Role)
    return tuple(role for role in Role if role != Role.OWNER) if manager.may_manage else ()


def change_role(
    manager: Membership, membership_id: int, *, role: str, now: datetime, fates: Mapping[str, str] | None = None
) -> Membership:
    """Give a member another role. What they made and could not make any more works on, unless `fates` revokes it.

    Raises: NotPermitted, LastOwner, Membership.DoesNotExist.
    """
    with managed(manager) as organization:
        membership = Membership.objects.for_organization(organization).select_related("user").get(pk=membership_id)
        check_grantable(manager, membership.role, role)
        if membership.role == Role.OWNER and role != Role.OWNER:
            _check_another_owner(membership)
        if membership.role != role:
            left = left_behind(organization, membership.user, now=now, role=role)
            told = settle(left, organization, fates or {}, actor=manager.user, via="page", now=now)
            before, membership.role = membership.role, role
            membership.save(update_fields=["role"])
            record(organization, "member.role_changed", at=now, actor=manager.user, via="page",
                   object_id=membership.user_id, member=name_of(membership.user), before=before, role=role,
                   **told)  # fmt: skip
    return membership


def remove_member(
    manager: Membership, membership_id: int, *, now: datetime, fates: Mapping[str, str] | None = None
) -> Membership:
    """Take a member out. Everybody may take themselves out.

    `fates` says, by kind, whether what the member made is revoked or kept: whoever manages keys has to decide.

    Raises: NotPermitted, LastOwner, Undecided, Membership.DoesNotExist.
    """
    with managed(manager) as organization:
        membership = Membership.objects.for_organization(organization).select_related("user").get(pk=membership_id)
        if membership.pk != manager.pk:
            check_grantable(manager, membership.role)
        if membership.role == Role.OWNER:
            _check_another_owner(membership)
        left = left_behind(organization, membership.user, now=now)
        # Who does not manage keys leaves them as they are, to those who do.
        decided = (fates or {}) if manager.may_manage else {}
        if manager.may_manage:
            check_decided(left, decided)
        told = settle(left, organization, decided, actor=manager.user, via="page", now=now)
        Membership.objects.filter(pk=membership.pk).delete()
        record(organization, "member.removed", at=now, actor=manager.user, via="page",
               object_id=membership.user_id, member=name_of(membership.user), role=membership.role,
               **told)  # fmt: skip
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


def check_grantable(manager: Membership, *roles: str) -> None:
    if not manager.may_manage:
        raise NotPermitted("Only owners and admins manage members.")
    if any(role not in grantable_roles(manager) for role in roles):
        raise NotPermitted("Only an owner may make, change or remove an owner.")


def _check_another_owner(membership: Membership) -> None:
    owners = Membership.objects.filter(organization_id=membership.organization_id, role=Role.OWNER)
    if not owners.exclude(pk=membership.pk).exists():
        raise LastOwner
