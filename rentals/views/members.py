"""The members of an organization and who is invited: list, invite, change, remove, hand over."""

from collections.abc import Callable
from datetime import datetime

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from rentals import invitations
from rentals import members as acts
from rentals.audit import name_of
from rentals.errors import NotPermitted, RentalError
from rentals.forms import InviteForm, RoleForm
from rentals.leaving import LeftBehind, left_behind, saved_searches_of
from rentals.leaving_forms import RemovalForm, RevokeTooForm
from rentals.models import Invitation, Membership
from rentals.models.organizations import Role
from rentals.scoping import TenantRequest, nothing_done, organization_page
from rentals.sent_forms import SentBefore, acting_once, told_again

SHOWN_ONCE = "The link went out by mail; it is not shown again."


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def members(request: TenantRequest) -> HttpResponse:
    """The list; the link of a new invitation is in the answer to the form, never in an address or a session."""
    roles = acts.grantable_roles(request.membership)
    form = InviteForm(request.POST if request.method == "POST" else None, roles=roles)
    if request.method != "POST":
        return _list(request, form)
    if not roles:
        return _refused(request, NotPermitted("Only owners and admins manage members."))
    if not form.is_valid():
        return _list(request, form, 400)
    now = timezone.now()
    try:
        with acting_once(request, now=now) as sending:
            invitation, link = invitations.invite(request.membership, **form.cleaned_data, now=now)
            sending.made = f"{invitation.email} was invited"
    except SentBefore as before:
        if before.same:
            return told_again(request, before, "members", SHOWN_ONCE)
        form.add_error(None, before.message)
        return _list(request, form, 409)
    except RentalError as error:
        form.add_error(error.field if error.field in form.fields else None, error.message)
        return _list(request, form, 403 if isinstance(error, NotPermitted) else 400)
    return _list(request, InviteForm(roles=roles), sent=invitation, link=link)


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def resend_invitation(request: TenantRequest, invitation_id: int) -> HttpResponse:
    _invitation(request, invitation_id)
    if request.method != "POST":
        return nothing_done(request, "members")
    now = timezone.now()
    try:
        with acting_once(request, now=now) as sending:
            invitation, link = invitations.resend(request.membership, invitation_id, now=now)
            sending.made = f"{invitation.email} was sent a new link"
    except SentBefore as before:
        return told_again(request, before, "members", SHOWN_ONCE)
    except RentalError as error:
        return _refused(request, error)
    form = InviteForm(roles=acts.grantable_roles(request.membership))
    return _list(request, form, sent=invitation, link=link)


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def revoke_invitation(request: TenantRequest, invitation_id: int) -> HttpResponse:
    _invitation(request, invitation_id)
    if request.method != "POST":
        return nothing_done(request, "members")
    try:
        invitation = invitations.revoke(request.membership, invitation_id, now=timezone.now())
    except RentalError as error:
        return _refused(request, error)
    messages.success(request, f"The invitation of {invitation.email} is taken back.")
    return redirect("members", request.organization.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def change_role(request: TenantRequest, membership_id: int) -> HttpResponse:
    member = _member(request, membership_id)
    if request.method != "POST":
        return nothing_done(request, "members")
    form = RoleForm(request.POST, roles=acts.grantable_roles(request.membership))
    if not acts.grantable_roles(request.membership):
        return _refused(request, NotPermitted("Only owners and admins manage members."))
    if not form.is_valid():
        return _refused(request, NotPermitted("Choose one of the roles you may give."), status=400)
    role, now = form.cleaned_data["role"], timezone.now()
    left = _left_of(request, member, now, role)
    settling = RevokeTooForm(request.POST, left=left)
    if left.kinds and role != member.role and request.POST.get("seen") != left.seen:
        # Asked first, and again when there is more by then: what works on is named, and may go with the role.
        context = {"member": member, "form": RevokeTooForm(None, left=left), "left": left, "role": Role(role)}
        return render(request, "rentals/member_role.html", context)
    fates = settling.fates if settling.is_valid() else {}
    return _act(
        request,
        lambda: acts.change_role(request.membership, membership_id, role=role, now=now, fates=fates),
        f"{{name}} is now {role}.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def remove(request: TenantRequest, membership_id: int) -> HttpResponse:
    """Asked first: who is removed by a slip has to be invited anew, and keys of theirs would work on unsaid."""
    member, now = _member(request, membership_id), timezone.now()
    left = _left_of(request, member, now)
    # Who does not manage keys leaves theirs to those who do.
    data = request.POST if request.method == "POST" else None
    form = RemovalForm(data, left=left if request.membership.may_manage else LeftBehind())
    context = {"member": member, "me": _is_me(request, member), "left": left, "form": form}
    if _may_remove(request, member):
        context["searches"] = saved_searches_of(request.organization, member.user)
    if not form.is_valid():
        return render(request, "rentals/member_remove.html", context, status=400 if form.is_bound else 200)
    response = _act(
        request,
        lambda: acts.remove_member(request.membership, membership_id, now=now, fates=form.fates),
        f"You have left {_plain(request.organization.name)}." if _is_me(request, member)
        else "{name} is no longer a member.",
    )  # fmt: skip
    return redirect("home") if _is_me(request, member) and response.status_code == 302 else response


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def transfer(request: TenantRequest, membership_id: int) -> HttpResponse:
    member = _member(request, membership_id)
    if request.membership.role != Role.OWNER:
        return _refused(request, NotPermitted("Only an owner transfers ownership."))
    if request.method != "POST":
        return render(request, "rentals/member_transfer.html", {"member": member})
    return _act(
        request,
        lambda: acts.transfer_ownership(request.membership, membership_id, now=timezone.now()),
        "{name} is an owner now, and you are an admin.",
    )


def _member(request: TenantRequest, membership_id: int) -> Membership:
    """Before any other refusal: what is wrong with a request says nothing about another organization's members."""
    rows = Membership.objects.for_organization(request.organization).select_related("user")
    return get_object_or_404(rows, pk=membership_id)


def _invitation(request: TenantRequest, invitation_id: int) -> Invitation:
    rows = Invitation.objects.for_organization(request.organization)
    return get_object_or_404(rows, pk=invitation_id)


def _is_me(request: TenantRequest, member: Membership) -> bool:
    return member.pk == request.membership.pk


def _may_remove(request: TenantRequest, member: Membership) -> bool:
    return _is_me(request, member) or member.role in acts.grantable_roles(request.membership)


def _left_of(request: TenantRequest, member: Membership, now: datetime, role: str | None = None) -> LeftBehind:
    """Named to those alone who may take the member's role away."""
    if not _may_remove(request, member):
        return LeftBehind()
    return left_behind(request.organization, member.user, now=now, role=role)


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _act(request: TenantRequest, act: Callable[[], Membership], done: str) -> HttpResponse:
    try:
        membership = act()
    except Membership.DoesNotExist:
        raise Http404("There is no such member.") from None
    except RentalError as error:
        return _refused(request, error)
    messages.success(request, done.format(name=name_of(membership.user)))
    return redirect("members", request.organization.slug)


def _refused(request: TenantRequest, error: RentalError, status: int | None = None) -> HttpResponse:
    messages.error(request, error.message)
    form = InviteForm(roles=acts.grantable_roles(request.membership))
    return _list(request, form, status or (403 if isinstance(error, NotPermitted) else 400))


def _list(request: TenantRequest, form: InviteForm, status: int = 200, **shown: object) -> HttpResponse:
    grantable, now = acts.grantable_roles(request.membership), timezone.now()
    rows = [
        (membership, [(role.value, role.label, role == membership.role) for role in grantable])
        for membership in Membership.objects.for_organization(request.organization).select_related("user")
    ]
    # Addresses of people who never said yes are shown to those who invite, and to nobody else.
    waiting = Invitation.objects.for_organization(request.organization) if grantable else Invitation.objects.none()
    waiting = waiting.filter(accepted_at__isnull=True, revoked_at__isnull=True)
    context = {
        "form": form,
        "rows": rows,
        "invited": [(invitation, invitation.is_open(now)) for invitation in waiting],
        "membership": request.membership,
        "grantable": grantable,
        **shown,
    }
    return render(request, "rentals/members.html", context, status=status)
