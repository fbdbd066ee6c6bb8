"""The organization of a request, decided in one place: signed in, and a member, or there is no such page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse

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
