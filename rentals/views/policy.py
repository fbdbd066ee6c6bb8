"""An organization's policy: owners and admins change it, everybody in the organization may read it."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from rentals import policies
from rentals.errors import NotPermitted
from rentals.policy_forms import PolicyForm
from rentals.scoping import TenantRequest, organization_page
from sizing.explain import places


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def policy(request: TenantRequest) -> HttpResponse:
    now, found = timezone.now(), policies.policy_of(request.organization)
    if request.method == "POST" and not request.membership.may_manage:
        raise PermissionDenied("Only owners and admins change the policy. Ask one of them.")
    form = PolicyForm(request.POST if request.method == "POST" else None, policy=found)
    if request.method == "POST" and form.is_valid():
        try:
            policies.change_policy(request.membership, form.rules, now=now, seen=request.POST.get("seen"))
        except NotPermitted as error:
            raise PermissionDenied(error.message) from error
        except policies.PolicyChanged as error:
            form.add_error(None, f"{error.message} Compare both, and save again to keep yours.")
            form.add_what_stands(found)
        else:
            messages.success(request, "The policy is saved. It acts on every order from now on.")
            return redirect("policy", request.organization.slug)
    context = {
        "form": form,
        "policy": found,
        "seen": policies.state_of(found),
        "places": places(tuple(found.countries or ())) if found else "",
        "spent_usd": policies.spent_in_month(request.organization, now=now),
        "membership": request.membership,
        "now": now,
    }
    return render(request, "rentals/policy.html", context, status=400 if request.method == "POST" else 200)
