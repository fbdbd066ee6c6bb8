"""The models that an organization keeps beside those of the catalog: `own:<slug>` in a workload."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response

from catalog.api_queries import ListQuery, refuse_parameters
from catalog.api_schemas import PAGING, answers
from catalog.models import SLUG
from rentals import own_models as acts
from rentals.api import kept_schemas as schemas
from rentals.api.bodies import refuse_body
from rentals.api.views import TenantView, or_404
from rentals.authentication import KeyRequest, MayOrder, MayRead
from rentals.kept_documents import own_model_document
from rentals.models import OwnModel
from sizing.own_api import read_own_or_figures

_NAMED = OpenApiParameter(
    "model_slug", str, OpenApiParameter.PATH, examples=[OpenApiExample("own", "my-llama")], description="Its slug."
)


class OwnModelsView(TenantView):
    """The organization's own models."""

    key = MayRead
    key_for = {"POST": MayOrder}

    @extend_schema(operation_id="list_own_models", parameters=PAGING, responses=answers(schemas.OwnModelList, 403))
    def get(self, request: KeyRequest) -> Response:
        """The organization's own models, the one brought first at the head."""
        rows = OwnModel.objects.for_organization(request.organization).select_related("organization").defer("reading")
        return ListQuery(request).respond(rows, ("created_at", "id"), own_model_document, name="own-models")

    @extend_schema(
        operation_id="keep_own_model",
        request=schemas.OwnModelRequest,
        responses={200: schemas.OwnModelWithReading,
                   **answers(schemas.OwnModelWithReading, 403, 409, status=201, body=True)},
    )  # fmt: skip
    def post(self, request: KeyRequest) -> Response:
        """Keep a model, by its files as for POST /models/read or by figures. Check its figures before you rely on them.

        The same figures under the same name again are answered with 200 as they are kept, so repeating is safe; other
        figures under that name are another model with a slug of its own.
        """
        refuse_parameters(request)
        brought, status = read_own_or_figures(request.data), 201
        try:
            model = acts.add_own_model(request.auth, brought, now=timezone.now(), once=True)
        except acts.ModelThere as there:
            model, status = there.existing, 200
        return Response(_with_reading(model), status=status, headers={"Location": _address(model)})


class OwnModelView(TenantView):
    """One of the organization's own models."""

    key = MayRead
    key_for = {"DELETE": MayOrder}

    @extend_schema(
        operation_id="get_own_model",
        parameters=[_NAMED],
        responses=answers(schemas.OwnModelWithReading, 403, 404),
    )
    def get(self, request: KeyRequest, model_slug: str) -> Response:
        """The model, and where each of its figures came from."""
        refuse_parameters(request)
        rows = OwnModel.objects.for_organization(request.organization).select_related("organization")
        with or_404():
            return Response(_with_reading(rows.get(slug=_slug(model_slug))))

    @extend_schema(
        operation_id="delete_own_model",
        parameters=[_NAMED],
        request=None,
        responses=answers(None, 403, 404, status=204, body=True),
    )
    def delete(self, request: KeyRequest, model_slug: str) -> Response:
        """Take a model away. Orders keep what they were sized with."""
        refuse_parameters(request)
        refuse_body(request.data)
        with or_404():
            acts.delete_own_model(request.auth, _slug(model_slug), now=timezone.now())
        return Response(status=204)


def _slug(text: str) -> str:
    """The text when a slug can be so: PostgreSQL refuses one with a NUL byte outright. Raises: Http404."""
    if not SLUG.match(text):
        raise Http404
    return text


def _with_reading(model: OwnModel) -> dict[str, Any]:
    return {**own_model_document(model), "reading": model.reading}


def _address(model: OwnModel) -> str:
    return reverse("api-own-model", args=[model.slug])
