"""Sizing for who brings a key: with the organization's own models, and inside its policy."""

from __future__ import annotations

from typing import cast

from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request

from rentals.api.views import OpenedView
from rentals.authentication import KeyRequest
from rentals.own_models import shapes_of
from rentals.policies import limits_of, policy_of
from sizing import api
from sizing.answers import HardLimits
from sizing.forms import OwnModels


class _OfTheKey(OpenedView, api.Caller):
    """What the organization's own page for the same question knows of it."""

    def own_models(self, request: Request) -> OwnModels | None:
        return None if request.auth is None else shapes_of(cast(KeyRequest, request).organization)

    def limits(self, request: Request) -> HardLimits | None:
        if request.auth is None:
            return None
        organization = cast(KeyRequest, request).organization
        return limits_of(policy_of(organization), organization, now=timezone.now())

    def page(self, request: Request) -> str:
        if request.auth is None:
            return super().page(request)
        return reverse("organization-launch-result", args=[cast(KeyRequest, request).organization.slug])


class SizingView(_OfTheKey, api.SizingView):
    __doc__ = api.SizingView.__doc__


class RecommendationsView(_OfTheKey, api.RecommendationsView):
    __doc__ = f"""{api.RecommendationsView.__doc__}

    With a key, the organization's policy is applied as on its own page, and `own:<slug>` names its own models.
    """
