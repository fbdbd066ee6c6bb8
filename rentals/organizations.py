"""Making an organization: its slug and its first owner."""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import datetime

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from rentals.audit import record
from rentals.errors import RentalError
from rentals.models import Membership, Organization
from rentals.models.organizations import Role
from rentals.tenants import Across, across_tenants

# Words that would read as a page of the console, or as its operator, inside an address.
RESERVED_SLUGS = frozenset(
    {
        "account",
        "accounts",
        "admin",
        "api",
        "berth",
        "billing",
        "calculator",
        "catalog",
        "demo",
        "glossary",
        "healthz",
        "help",
        "launch",
        "login",
        "logout",
        "new",
        "orders",
        "organization",
        "organizations",
        "readyz",
        "root",
        "settings",
        "signup",
        "staff",
        "static",
        "status",
        "support",
        "theme",
        "www",
    }
)
_LONGEST_STEM = 50


class OrganizationThere(RentalError):
    def __init__(self, organization: Organization) -> None:
        super().__init__(f"You have an organization {organization.name} already.")
        self.organization = organization


def free_slug(name: str) -> str:
    """A slug for the name that no organization has; a number is added when it is taken or reserved.

    >>> slugify("Café & Söhne GmbH")
    'cafe-sohne-gmbh'
    """
    stem = slugify(name).replace("_", "-")[:_LONGEST_STEM].strip("-") or "team"
    stem = "-".join(part for part in stem.split("-") if part)
    taken = set(Organization.objects.filter(slug__startswith=stem).values_list("slug", flat=True)) | RESERVED_SLUGS
    slug, number = stem, 2
    while slug in taken:
        slug, number = f"{stem}-{number}", number + 1
    return slug


def _insert(name: str) -> Organization:
    """Two sign-ups may find the same slug free at the same moment; the one that comes second looks again."""
    for _ in range(3):
        with suppress(IntegrityError), transaction.atomic():
            return Organization.objects.create(name=name, slug=free_slug(name))
    # A crowd of the same name: chance tells them apart where counting does not.
    return Organization.objects.create(name=name, slug=f"{free_slug(name)}-{secrets.token_hex(4)}")


def create_organization(*, name: str, owner: User, now: datetime) -> Organization:
    """The organization with `owner` as its first member, both or neither.

    Raises: OrganizationThere when the owner has one of this name: a form that comes twice makes no second.
    """
    # Which slugs are taken is every tenant's affair, and the new one has no number yet.
    with across_tenants(Across.NEW_ORGANIZATION), transaction.atomic():
        # Held, so that of two at once the second sees the first. Not FOR UPDATE: a membership's row refers to it.
        User.objects.select_for_update(no_key=True).get(pk=owner.pk)
        mine = Organization.objects.filter(memberships__user=owner, memberships__role=Role.OWNER)
        if there := mine.filter(name__iexact=name).first():
            raise OrganizationThere(there)
        organization = _insert(name)
        Membership.objects.create(organization=organization, user=owner, role=Role.OWNER)
        record(organization, "organization.created", at=now, actor=owner, via="page", object_id=organization.slug)
    return organization
