"""Acts of somebody who manages an organization: one at a time, and in the role that is true at that moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from rentals.errors import NotPermitted
from rentals.models import Membership, Organization


@contextmanager
def managed(manager: Membership) -> Iterator[Organization]:
    """A transaction that holds the organization, so that two owners cannot remove each other at the same moment."""
    with transaction.atomic():
        # Not FOR UPDATE: an order's rows refer to the organization and hold its key, and must not wait for members.
        organization = Organization.objects.select_for_update(no_key=True).get(pk=manager.organization_id)
        # Read again under the lock: the manager's own role may just have been taken away.
        current = Membership.objects.for_organization(organization).filter(pk=manager.pk).first()
        if current is None or current.role != manager.role:
            raise NotPermitted("Your role has changed. Load the page again.")
        yield organization
