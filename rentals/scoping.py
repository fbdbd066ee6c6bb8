"""The organization of a request, decided in one place: signed in, and a member, or there is no such page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.cache import patch_cache_control

from rentals.models import Membership, Organization
from rentals.tenants import enter, finished, person, tenant


class TenantRequest(HttpRequest):
    """A request below /o/<organization>/ of one of its members."""

    user: User
    organization: Organization
    membership: Membership


View = Callable[..., HttpResponse]
AnyView = TypeVar("AnyView", bound=View)


def organization_page(view: View) -> View:
    """Wrap a view of /o/<organization>/...: it gets a TenantRequest. Another organization's pages do not exist."""

    @login_required
    @wraps(view)
    def scoped(request: HttpRequest, organization: str, **kwargs: Any) -> HttpResponse:
        tenant_request = cast(TenantRequest, request)
        with person(tenant_request.user):
            _enter(tenant_request, organization)
            if not (request.method == "POST" and getattr(view, "opens_transactions", False)):
                return finished(view(tenant_request, **kwargs))
        return view(tenant_request, **kwargs)

    return scoped


def opens_transactions(view: AnyView) -> AnyView:
    """Mark a view that places orders by POST: for that it is called outside of every block, and reads in its own."""
    view.opens_transactions = True  # type: ignore[attr-defined]
    return view


def reading(request: TenantRequest) -> AbstractContextManager[None]:
    """A block of the organization's rows, in a view that opens its transactions itself."""
    return tenant(request.organization, user=request.user)


def _enter(request: TenantRequest, slug: str) -> None:
    """Raises: Http404."""
    membership = enter(Membership.objects.of_person(request.user).filter(organization__slug=slug))
    if membership is None:
        raise Http404("There is no such organization.")
    request.membership = membership
    request.organization = membership.organization


def nothing_done(request: TenantRequest, page: str, *arguments: object) -> HttpResponse:
    """Back to the page with the button, for who opens the button's address: signing in again leads there by GET."""
    messages.info(request, "Nothing was changed: only the button itself does that. Press it again if you want it.")
    return redirect(page, request.organization.slug, *arguments)


_NEVER_KEPT = ("/o/", "/orders/", "/planner/", "/invitations/")


class PrivatePages:
    """Middleware: nothing below a tenant's addresses is kept by a browser or a proxy, refusals and errors included."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if request.path_info.startswith(_NEVER_KEPT):
            patch_cache_control(response, private=True, no_store=True)
        return response
