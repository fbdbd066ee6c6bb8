"""Inviting people: nobody becomes a member but by saying so, signed in, with the very address that was invited.

Whoever invites is told the same whether or not the address has an account. The link's token has 256 random bits and is
told twice: in the mail, and to who invites, so that no mail server is needed.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from catalog.links import page_url
from rentals.audit import name_of, record
from rentals.errors import AlreadyMember, InvitationNotForYou, InvitationOver, TooManyInvitations
from rentals.mail import send_after_commit
from rentals.managing import managed
from rentals.members import check_grantable
from rentals.models import Invitation, Membership
from rentals.models.invitations import VALID_FOR
from rentals.tenants import Across, across_tenants

# Berth's mail server is no tool to write to strangers with.
MAX_OPEN = 50


def invite(manager: Membership, *, email: str, role: str, now: datetime) -> tuple[Invitation, str]:
    """An open invitation of the address to the role, and its link; an address invited before gets a new link.

    Raises: NotPermitted, AlreadyMember, TooManyInvitations.
    """
    with managed(manager) as organization:
        check_grantable(manager, role)
        if Membership.objects.for_organization(organization).filter(user__email__iexact=email).exists():
            raise AlreadyMember
        still_open = Invitation.objects.for_organization(organization).filter(
            accepted_at__isnull=True, revoked_at__isnull=True
        )
        invitation = still_open.filter(email__iexact=email).first()
        if invitation is None:
            if still_open.filter(expires_at__gt=now).count() >= MAX_OPEN:
                raise TooManyInvitations(MAX_OPEN)
            invitation = Invitation(organization=organization, email=email)
        else:
            # Inviting again may not take away what only an owner may give.
            check_grantable(manager, invitation.role)
        invitation.role = role
        return _offer(invitation, manager, now)


def resend(manager: Membership, invitation_id: int, *, now: datetime) -> tuple[Invitation, str]:
    """The invitation with a new link and a new term; the link sent before opens nothing any more.

    Raises: NotPermitted, InvitationOver, Invitation.DoesNotExist.
    """
    with managed(manager) as organization:
        invitation = Invitation.objects.for_organization(organization).get(pk=invitation_id)
        check_grantable(manager, invitation.role)
        if invitation.accepted_at is not None or invitation.revoked_at is not None:
            raise InvitationOver("This invitation was used or revoked. Invite the address anew.")
        return _offer(invitation, manager, now)


def revoke(manager: Membership, invitation_id: int, *, now: datetime) -> Invitation:
    """The invitation, which opens nothing from now on; revoking a revoked one changes nothing.

    Raises: NotPermitted, InvitationOver, Invitation.DoesNotExist.
    """
    with managed(manager) as organization:
        invitation = Invitation.objects.for_organization(organization).get(pk=invitation_id)
        check_grantable(manager, invitation.role)
        if invitation.accepted_at is not None:
            raise InvitationOver("This invitation was accepted already. Remove the member instead.")
        if invitation.revoked_at is None:
            invitation.revoked_at = now
            invitation.save(update_fields=["revoked_at"])
            record(organization, "invitation.revoked", at=now, actor=manager.user, via="page",
                   object_id=invitation.pk, email=invitation.email, role=invitation.role)  # fmt: skip
    return invitation


def accept(token_hash: str, user: User, *, now: datetime) -> Membership:
    """The user as a member. Who is one already keeps the role, and the invitation is used up.

    Raises: InvitationOver, InvitationNotForYou.
    """
    with across_tenants(Across.INVITATION_LINK), transaction.atomic():
        # Held: of two acceptances at once one comes second, and finds it used.
        invitation = (
            Invitation.objects.select_for_update(of=("self",))
            .select_related("organization", "invited_by")
            .filter(token_hash=token_hash)
            .first()
        )
        if invitation is None or not invitation.is_open(now):
            raise InvitationOver(why_over(invitation))
        if not belongs_to(invitation, user):
            raise InvitationNotForYou(invitation.email)
        membership, created = Membership.objects.get_or_create(
            organization=invitation.organization, user=user, defaults={"role": invitation.role}
        )
        # Read already; outside of this block it could not be any more.
        membership.organization = invitation.organization
        invitation.accepted_at = now
        invitation.save(update_fields=["accepted_at"])
        record(invitation.organization, "invitation.accepted", at=now, actor=user, via="page",
               object_id=invitation.pk, member=name_of(user), role=membership.role, joined=created)  # fmt: skip
    return membership


def find(token_hash: str | None) -> Invitation | None:
    """The invitation that a link was made for, used and expired ones too."""
    if not token_hash:
        return None
    # Whoever has the link need not have an account: its token says which row.
    with across_tenants(Across.INVITATION_LINK):
        return Invitation.objects.select_related("organization").filter(token_hash=token_hash).first()


def belongs_to(invitation: Invitation, user: User) -> bool:
    """Whether the invited address is this user's. Where addresses are verified, an unverified one proves nothing."""
    addresses = EmailAddress.objects.filter(user=user, email__iexact=invitation.email)
    if settings.ACCOUNT_EMAIL_VERIFICATION == "mandatory":
        return addresses.filter(verified=True).exists()
    return user.email.lower() == invitation.email.lower() or addresses.exists()


def why_over(invitation: Invitation | None) -> str:
    """Why it cannot be accepted, to whoever has the link."""
    if invitation is None:
        return "This invitation is no longer valid. Ask for a new one."
    if invitation.accepted_at is not None:
        return "This invitation was used already."
    if invitation.revoked_at is not None:
        return "This invitation was taken back. Ask for a new one."
    return "This invitation has expired. Ask for a new one."


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _offer(invitation: Invitation, manager: Membership, now: datetime) -> tuple[Invitation, str]:
    """Give the invitation a new token and term, and send it when the transaction is through."""
    token = secrets.token_urlsafe(32)
    again = invitation.pk is not None
    invitation.token_hash = hash_of(token)
    invitation.invited_by = manager.user
    invitation.invited_by_name = name_of(manager.user)
    invitation.expires_at = now + VALID_FOR
    if not again:
        invitation.created_at = now
    invitation.save()
    record(invitation.organization, "invitation.sent_again" if again else "invitation.sent", at=now,
           actor=manager.user, via="page", object_id=invitation.pk, email=invitation.email,
           role=invitation.role)  # fmt: skip
    link = page_url("invitation", token)
    send_after_commit(
        to=invitation.email,
        subject=f"You are invited to {invitation.organization.name}",
        template="rentals/mail/invitation.txt",
        context={"invitation": invitation, "organization": invitation.organization, "link": link},
    )
    return invitation, link
