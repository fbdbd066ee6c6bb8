"""An organization's own models: kept, offered to its members and to nobody else, deleted."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, cast

from django.db import transaction
from django.utils.functional import SimpleLazyObject
from django.utils.text import slugify

from rentals.askers import Asker, check_may, made_by, record_act
from rentals.audit import record
from rentals.errors import RentalError
from rentals.models import Membership, Organization, OwnModel
from sizing.forms import OwnModels
from sizing.own_reading import Brought
from sizing.own_shape import OwnShape

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from sizing.models import AiModel
    from sizing.publishing import PublishForm

MOST_MODELS = 200
_SLUG_LENGTH = 56


class TooManyModels(RentalError):
    code = "limit_reached"

    def __init__(self) -> None:
        super().__init__(f"An organization keeps at most {MOST_MODELS} models of its own. Delete one first.")


class ModelThere(RentalError):
    """`existing` is a model of the same name and figures."""

    code = "already_exists"

    def __init__(self, existing: OwnModel) -> None:
        super().__init__(f"This model is kept already, as own:{existing.slug}.")
        self.existing = existing


def shapes_of(organization: Organization) -> OwnModels:
    """The models that can be chosen, by slug, as sizing takes them; read once, when the first of them is asked for."""

    def read() -> dict[str, OwnShape]:
        rows = OwnModel.objects.for_organization(organization).order_by("name", "id")
        return {row.slug: shape for row in rows if (shape := row.readable) is not None}

    return cast(OwnModels, SimpleLazyObject(read))


def add_own_model(asker: Asker, reading: Brought, *, now: datetime, once: bool = False) -> OwnModel:
    """Keep what was read from a model's files, or stated.

    `once`: no second one of the same name and figures, so that a request that is sent again keeps nothing twice.

    Raises: NotPermitted, TooManyModels, ModelThere.
    """
    with transaction.atomic():
        # Held, so that two of the same name at the same moment get two slugs.
        organization = Organization.objects.select_for_update().get(pk=asker.organization_id)
        _check_may(asker, now)
        mine = OwnModel.objects.for_organization(organization)
        if once:
            for row in mine.filter(name=reading.model.name).select_related("organization"):
                if row.figures == reading.model.figures:
                    raise ModelThere(row)
        taken = set(mine.values_list("slug", flat=True))
        if len(taken) >= MOST_MODELS:
            raise TooManyModels
        model = OwnModel.objects.create(
            organization=organization,
            name=reading.model.name,
            slug=_free_slug(reading.model.name, taken),
            figures=reading.model.figures,
            reading=reading.document,
            created_at=now,
            **made_by(asker),
        )
        record_act(asker, organization, "own_model.added", at=now, object_id=model.slug, name=model.name,
                   parameters=reading.model.parameters)  # fmt: skip
    return model


def delete_own_model(asker: Asker, slug: str, *, now: datetime) -> OwnModel:
    """Take a model away. Orders keep what they were sized with.

    Raises: NotPermitted, OwnModel.DoesNotExist.
    """
    with transaction.atomic():
        model = OwnModel.objects.for_organization(asker.organization).select_for_update().get(slug=slug)
        _check_may(asker, now)
        record_act(asker, asker.organization, "own_model.deleted", at=now, object_id=model.slug, name=model.name)
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


def may_keep(membership: Membership | None) -> bool:
    """Whether this member may add and delete models; viewers look."""
    return membership is not None and membership.may_order


def _check_may(asker: Asker, now: datetime) -> None:
    refusal = "Viewers look at the organization's models; owners, admins and members add and delete them."
    check_may(asker, may_keep, refusal, now=now)


def _free_slug(name: str, taken: set[str]) -> str:
    base = re.sub(r"[-_]+", "-", slugify(name)).strip("-")[:_SLUG_LENGTH].strip("-") or "model"
    slug, number = base, 1
    while slug in taken:
        number += 1
        slug = f"{base}-{number}"
    return slug
