"""Who calls the API: an organization's key in the Authorization header. No session, no cookie has a say here."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from rentals.api_keys import authenticate, is_known
from rentals.errors import KeyNotAccepted
from rentals.models import ApiKey, Organization
from rentals.models.api_keys import Scope
from rentals.throttling import WrongKeyThrottle

if TYPE_CHECKING:
    # The framework's views load this module by their settings: importing them here would go in a circle.
    from rest_framework.views import APIView

HOW = "Send an API key of your organization as “Authorization: Bearer berth_…”."


class KeyRequest(Request):
    """A request that a key opened: `auth` is the key, `organization` its organization."""

    auth: ApiKey
    organization: Organization


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <key>`. `request.auth` is the key; `TenantView` opens its organization.

    Another scheme is nobody's key: the request counts as anonymous. A wrong key is refused, also where none is needed.
    """

    def authenticate(self, request: Request) -> tuple[None, ApiKey] | None:
        scheme, _, text = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        text, wrong = text.strip(), WrongKeyThrottle()
        # A key that opened before is let through whatever else comes from its address.
        if not is_known(text):
            wrong.check(request)
        try:
            key = authenticate(text, now=timezone.now())
        except KeyNotAccepted as error:
            wrong.count(request)
            raise AuthenticationFailed(error.message) from error
        return None, key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="Berth"'


class HasKey(BasePermission):
    """Any key, whatever it may do."""

    scopes: ClassVar[tuple[Scope, ...]] = ()

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.auth is None:
            raise NotAuthenticated(f"This address needs a key. {HOW}")
        key = cast(ApiKey, request.auth)
        for scope in self.scopes:
            if not key.may(scope):
                raise PermissionDenied(f"This API key lacks the scope “{scope.value}”.")
        return True


class MayRead(HasKey):
    """A key with the scope `read`."""

    scopes = (Scope.READ,)


class MayOrder(HasKey):
    """A key with the scope `order`."""

    scopes = (Scope.ORDER,)
