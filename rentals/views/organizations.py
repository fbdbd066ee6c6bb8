"""The dashboard, and making one more organization."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from rentals.forms import OrganizationNameForm
from rentals.models import Membership, Order
from rentals.organizations import OrganizationThere, create_organization
from rentals.scoping import TenantRequest, organization_page

RECENT_ORDERS = 5


@organization_page
def dashboard(request: TenantRequest) -> HttpResponse:
    now = timezone.now()
    orders = Order.objects.for_organization(request.organization)
    active = orders.active(now)
    context = {
        "now": now,
        "active": active.order_by("ends_at")[:RECENT_ORDERS],
        "active_count": active.count(),
        "order_count": orders.count(),
        "recent": [(order, order.status_at(now)) for order in orders[:RECENT_ORDERS]],
        "member_count": Membership.objects.for_organization(request.organization).count(),
    }
    return render(request, "rentals/organization.html", context)


@login_required
def new_organization(request: HttpRequest) -> HttpResponse:
    form = OrganizationNameForm(request.POST if request.method == "POST" else None)
    onward = request.POST.get("next") or request.GET.get("next", "")
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["organization_name"]
        try:
            organization = create_organization(name=name, owner=cast(User, request.user), now=timezone.now())
        except OrganizationThere as there:
            organization = there.organization
            messages.info(request, f"{there.message} No second one was made.")
        if url_has_allowed_host_and_scheme(
            onward, allowed_hosts={request.get_host()}, require_https=request.is_secure()
        ):
            return redirect(onward)
        return redirect("organization", organization.slug)
    return render(request, "rentals/organization_new.html", {"form": form, "next": onward})
