"""The members of an organization: list, add, change, remove."""

from collections.abc import Callable

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from rentals import members as acts
from rentals.audit import name_of
from rentals.errors import NotPermitted, RentalError
from rentals.forms import AddMemberForm, RoleForm
from rentals.models import Membership
from rentals.scoping import TenantRequest, organization_page


@organization_page
def members(request: TenantRequest) -> HttpResponse:
    roles = acts.grantable_roles(request.membership)
    form = AddMemberForm(request.POST if request.method == "POST" else None, roles=roles)
    status = 200
    if request.method == "POST":
        if not roles:
            return _refused(request, NotPermitted("Only owners and admins manage members."))
        if form.is_valid() and _add(request, form):
            return redirect("members", request.organization.slug)
        status = 400
    return _list(request, form, status)


@require_POST
@organization_page
def change_role(request: TenantRequest, membership_id: int) -> HttpResponse:
    _check_exists(request, membership_id)
    form = RoleForm(request.POST, roles=acts.grantable_roles(request.membership))
    if not acts.grantable_roles(request.membership):
        return _refused(request, NotPermitted("Only owners and admins manage members."))
    if not form.is_valid():
        return _refused(request, NotPermitted("Choose one of the roles you may give."), status=400)
    role = form.cleaned_data["role"]
    return _act(
        request,
        lambda: acts.change_role(request.membership, membership_id, role=role, now=timezone.now()),
        f"{{name}} is now {role}.",
    )


@require_POST
@organization_page
def remove(request: TenantRequest, membership_id: int) -> HttpResponse:
    _check_exists(request, membership_id)
    response = _act(
        request,
        lambda: acts.remove_member(request.membership, membership_id, now=timezone.now()),
        "{name} is no longer a member.",
    )
    left = membership_id == request.membership.pk and response.status_code == 302
    return redirect("home") if left else response


def _check_exists(request: TenantRequest, membership_id: int) -> None:
    """Before any other refusal: what is wrong with a request says nothing about another organization's members."""
    if not Membership.objects.for_organization(request.organization).filter(pk=membership_id).exists():
        raise Http404("There is no such member.")


def _add(request: TenantRequest, form: AddMemberForm) -> bool:
    try:
        added = acts.add_member(request.membership, **form.cleaned_data, now=timezone.now())
    except RentalError as error:
        form.add_error(error.field if error.field in form.fields else None, error.message)
        return False
    messages.success(request, f"{name_of(added.user)} is now {added.role}.")
    return True


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
    form = AddMemberForm(roles=acts.grantable_roles(request.membership))
    return _list(request, form, status or (403 if isinstance(error, NotPermitted) else 400))


def _list(request: TenantRequest, form: AddMemberForm, status: int) -> HttpResponse:
    grantable = acts.grantable_roles(request.membership)
    rows = [
        (membership, [(role.value, role.label, role == membership.role) for role in grantable])
        for membership in Membership.objects.for_organization(request.organization).select_related("user")
    ]
    context = {"form": form, "rows": rows, "membership": request.membership, "grantable": grantable}
    return render(request, "rentals/members.html", context, status=status)
