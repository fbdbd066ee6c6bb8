"""The organization of a request, decided in one place: signed in, and a member, or there is no such page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.cache import patch_cache_control

from rentals.models import Membership, Organization


class TenantRequest(HttpRequest):
    """A request below /o/<organization>/ of one of its members."""

    user: User
    organization: Organization
    membership: Membership


View = Callable[..., HttpResponse]


def organization_page(view: View) -> View:
    """Wrap a view of /o/<organization>/...: it gets a TenantRequest. Another organization's pages do not exist."""

    @login_required
    @wraps(view)
    def scoped(request: HttpRequest, organization: str, **kwargs: Any) -> HttpResponse:
        membership = (
            Membership.objects.filter(organization__slug=organization, user=cast(User, request.user))
            .select_related("organization")
            .first()
        )
        if membership is None:
            raise Http404("There is no such organization.")
        tenant_request = cast(TenantRequest, request)
        tenant_request.membership = membership
        tenant_request.organization = membership.organization
        return view(tenant_request, **kwargs)

    return scoped


def nothing_done(request: TenantRequest, page: str, *arguments: object) -> HttpResponse:
    """Back to the page with the button, for who opens the button's address: signing in again leads there by GET."""
    messages.info(request, "Nothing was changed: only the button itself does that. Press it again if you want it.")
    return redirect(page, request.organization.slug, *arguments)


_NEVER_KEPT = ("/o/", "/orders/", "/invitations/")


class PrivatePages:
    """Middleware: nothing below a tenant's addresses is kept by a browser or a proxy, refusals and errors included."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if request.path_info.startswith(_NEVER_KEPT):
            patch_cache_control(response, private=True, no_store=True)
        return response
