"""An organization's own models: kept, offered to its members and to nobody else, deleted."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, cast

from django.db import transaction
from django.utils.functional import SimpleLazyObject
from django.utils.text import slugify

from rentals.audit import name_of, record
from rentals.errors import NotPermitted, RentalError
from rentals.models import Membership, Organization, OwnModel
from sizing.forms import OwnModels
from sizing.own_reading import Reading
from sizing.own_shape import OwnShape

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from sizing.models import AiModel
    from sizing.publishing import PublishForm

MOST_MODELS = 200
_SLUG_LENGTH = 56


class TooManyModels(RentalError):
    def __init__(self) -> None:
        super().__init__(f"An organization keeps at most {MOST_MODELS} models of its own. Delete one first.")


def shapes_of(organization: Organization) -> OwnModels:
    """The models that can be chosen, by slug, as sizing takes them; read once, when the first of them is asked for."""

    def read() -> dict[str, OwnShape]:
        rows = OwnModel.objects.for_organization(organization).order_by("name", "id")
        return {row.slug: shape for row in rows if (shape := row.readable) is not None}

    return cast(OwnModels, SimpleLazyObject(read))


def add_own_model(membership: Membership, reading: Reading, *, now: datetime) -> OwnModel:
    """Keep what was read from a model's files.

    Raises: NotPermitted, TooManyModels.
    """
    _check_may(membership)
    with transaction.atomic():
        # Held, so that two of the same name at the same moment get two slugs.
        organization = Organization.objects.select_for_update().get(pk=membership.organization_id)
        taken = set(OwnModel.objects.for_organization(organization).values_list("slug", flat=True))
        if len(taken) >= MOST_MODELS:
            raise TooManyModels
        model = OwnModel.objects.create(
            organization=organization,
            name=reading.model.name,
            slug=_free_slug(reading.model.name, taken),
            figures=reading.model.figures,
            reading=reading.document,
            created_by=membership.user,
            created_by_name=name_of(membership.user),
            created_at=now,
        )
        record(organization, "own_model.added", at=now, actor=membership.user, via="page", object_id=model.slug,
               name=model.name, parameters=reading.model.parameters)  # fmt: skip
    return model


def delete_own_model(membership: Membership, slug: str, *, now: datetime) -> OwnModel:
    """Take a model away. Orders keep what they were sized with.

    Raises: NotPermitted, OwnModel.DoesNotExist.
    """
    with transaction.atomic():
        model = OwnModel.objects.for_organization(membership.organization).select_for_update().get(slug=slug)
        _check_may(membership)
        record(membership.organization, "own_model.deleted", at=now, actor=membership.user, via="page",
               object_id=model.slug, name=model.name)  # fmt: skip
        model.delete()
    return model


def publish_own_model(model: OwnModel, form: PublishForm, *, actor: User, now: datetime) -> AiModel | None:
    """Staff put an organization's model into the catalog, which the organization's trail tells. None: see the form."""
    with transaction.atomic():
        published = form.publish(model.shape(), model.reading)
        if published is not None:
            record(model.organization, "own_model.published", at=now, actor=actor, via="staff", object_id=model.slug,
                   model=published.slug)  # fmt: skip
    return published


def may_keep(membership: Membership) -> bool:
    """Whether this member may add and delete models; viewers look."""
    return membership.may_order


def _check_may(membership: Membership) -> None:
    if not may_keep(membership):
        raise NotPermitted("Viewers look at the organization's models; owners, admins and members add and delete them.")


def _free_slug(name: str, taken: set[str]) -> str:
    base = re.sub(r"[-_]+", "-", slugify(name)).strip("-")[:_SLUG_LENGTH].strip("-") or "model"
    slug, number = base, 1
    while slug in taken:
        number += 1
        slug = f"{base}-{number}"
    return slug
