"""Addresses without an organization, that lead on to the same page of the person's own."""

from typing import cast
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from rentals.models import Organization
from rentals.tenants import person


@login_required
def order_review_entry(request: HttpRequest) -> HttpResponse:
    return _onward(request, "order-review", "Which organization orders?")


@login_required
def planner_entry(request: HttpRequest) -> HttpResponse:
    return _onward(request, "planner", "Which organization plans?")


def _onward(request: HttpRequest, page: str, question: str) -> HttpResponse:
    """On to the organization's page, with the choices kept; who has several chooses one."""
    user = cast(User, request.user)
    with person(user):
        mine = list(Organization.objects.of_member(user))
    query = request.GET.urlencode()
    if not mine:
        onward = urlencode({"next": request.get_full_path()})
        return redirect(f"{reverse('organization-new')}?{onward}")
    if len(mine) == 1:
        return redirect(f"{reverse(page, args=[mine[0].slug])}?{query}")
    context = {"mine": mine, "query": query, "page": page, "question": question}
    return render(request, "rentals/choose_organization.html", context)
