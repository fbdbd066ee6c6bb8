"""An organization's SSH public keys: list, add, remove, for those who may order."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from rentals import ssh_keys as acts
from rentals.api.examples import ssh_keys_program
from rentals.delivery_forms import SshKeyForm
from rentals.errors import InvalidSshKey, NotPermitted
from rentals.makers import Makers
from rentals.models import SshKey
from rentals.policies import permits_ordering, policy_of
from rentals.scoping import TenantRequest, nothing_done, organization_page
from rentals.sent_forms import SentBefore, acting_once, told_again


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def ssh_keys(request: TenantRequest) -> HttpResponse:
    if request.method != "POST":
        return _list(request, SshKeyForm())
    if not _may(request):
        raise PermissionDenied("Only members who may order change the organization's keys. Ask an owner or admin.")
    form = SshKeyForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=400)
    now = timezone.now()
    try:
        with acting_once(request, now=now) as sending:
            key = acts.read_key(form.cleaned_data["key"], name=form.cleaned_data["name"])
            acts.add_key(request.membership, key, now=now)
            sending.made = f"The key {key.comment} was added"
    except SentBefore as before:
        if before.same:
            return told_again(request, before, "ssh-keys")
        form.add_error(None, before.message)
        return _list(request, form, status=409)
    except InvalidSshKey as error:
        form.add_error("key", error.message)
        return _list(request, form.without_private_key(), status=400)
    except NotPermitted as error:
        raise PermissionDenied(error.message) from error
    messages.success(request, f"The key {key.comment} is added. It is put on lots that are prepared from now on.")
    return redirect("ssh-keys", request.organization.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def remove(request: TenantRequest, ssh_key_id: int) -> HttpResponse:
    mine = SshKey.objects.for_organization(request.organization)
    key = get_object_or_404(mine, pk=ssh_key_id)
    if request.method != "POST":
        return nothing_done(request, "ssh-keys")
    try:
        acts.remove_key(request.membership, key.pk, now=timezone.now())
    except SshKey.DoesNotExist:
        raise Http404("There is no such key.") from None
    except NotPermitted as error:
        raise PermissionDenied(error.message) from error
    messages.success(request, f"The key {key.comment} is removed from the list. Lots that have it already keep it.")
    return redirect("ssh-keys", request.organization.slug)


def _may(request: TenantRequest) -> bool:
    return permits_ordering(request.membership, policy_of(request.organization))


def _list(request: TenantRequest, form: SshKeyForm, *, status: int = 200) -> HttpResponse:
    may = _may(request)
    makers = Makers(request.organization)
    keys = SshKey.objects.for_organization(request.organization) if may else SshKey.objects.none()
    rows = [(key, makers.note(key.added_by_id)) for key in keys]
    context = {"form": form, "rows": rows, "may_order": may, "program": ssh_keys_program()}
    return render(request, "rentals/ssh_keys.html", context, status=status)
