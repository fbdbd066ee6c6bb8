"""What every page may read of the tenants: the reader's organizations, and the one the page is about."""

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from rentals.models import Organization
from rentals.tenants import person


def organizations(request: HttpRequest) -> dict[str, object]:
    """`my_organizations` (read when a page uses it, one query) and `organization` (None outside /o/)."""
    user = getattr(request, "user", None)
    return {
        "my_organizations": SimpleLazyObject(lambda: _of(user)),
        "organization": getattr(request, "organization", None),
    }


def _of(user: AbstractBaseUser | AnonymousUser | None) -> list[Organization]:
    if not isinstance(user, User):
        return []
    with person(user):
        return list(Organization.objects.of_member(user).only("id", "name", "slug"))
