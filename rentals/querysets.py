"""Which rows of a tenant: every query of a page or the API starts with `for_organization()`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self, cast

from django.db import connection, models
from django.db.models import Q

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from rentals.models import ApiKey, Organization


class TenantQuerySet(models.QuerySet):
    def for_organization(self, organization: Organization) -> Self:
        return self.filter(organization=organization)


class MembershipQuerySet(TenantQuerySet):
    def of_person(self, user: User) -> Self:
        return self.filter(user=user).select_related("organization")


class OrganizationQuerySet(models.QuerySet):
    def of_member(self, user: User) -> Self:
        return self.filter(memberships__user=user)


class OrderQuerySet(TenantQuerySet):
    def active(self, now: datetime) -> Self:
        """Running at `now`: a term that is over counts as ended, even before the sweep has written it."""
        return self.filter(status="active", ends_at__gt=now)

    def ended(self, now: datetime) -> Self:
        return self.filter(Q(status="ended") | Q(status="active", ends_at__lte=now))

    def cancelled(self) -> Self:
        return self.filter(status="cancelled")

    def in_state(self, state: str, now: datetime) -> Self:
        """Orders in a state as it is true at `now`; all of them for an empty one."""
        match state:
            case "active":
                return self.active(now)
            case "ended":
                return self.ended(now)
            case "cancelled":
                return self.cancelled()
        return self.all()

    def due(self, now: datetime) -> Self:
        """Over at `now`, with the end not yet written and the lots not yet back."""
        return self.filter(status="active", ends_at__lte=now)


class ApiKeyQuerySet(TenantQuerySet):
    def with_prefix(self, prefix: str) -> ApiKey | None:
        """The key before its tenant is known: on PostgreSQL by the one function that may look for it."""
        if connection.vendor != "postgresql":
            return cast("ApiKey | None", self.filter(prefix=prefix).first())
        rows = self.raw("SELECT * FROM rentals_api_key(%s)", [prefix])
        return cast("ApiKey | None", next(iter(rows), None))

    def live(self, now: datetime) -> Self:
        """Neither revoked nor expired at `now`."""
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)


class AppendOnlyQuerySet(TenantQuerySet):
    def update(self, **kwargs: object) -> int:
        raise TypeError("an audit event is never changed")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise TypeError("an audit event is never deleted")
