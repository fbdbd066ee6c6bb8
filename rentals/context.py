"""What every page may read of the tenants: the reader's organizations, and the one the page is about."""

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from rentals.models import Organization


def organizations(request: HttpRequest) -> dict[str, object]:
    """`my_organizations` (read when a page uses it, one query) and `organization` (None outside /o/)."""
    user = getattr(request, "user", None)
    return {
        "my_organizations": SimpleLazyObject(lambda: _of(user)),
        "organization": getattr(request, "organization", None),
    }


def _of(user: object) -> list[Organization]:
    if user is None or not user.is_authenticated:
        return []
    return list(Organization.objects.of_member(user).only("id", "name", "slug"))
