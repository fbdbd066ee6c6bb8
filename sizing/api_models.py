"""The AI models of the catalog over the API: everybody may read them, without a key."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.api_queries import ListQuery, refuse_parameters
from catalog.api_schemas import PAGING, answers, page_of
from catalog.api_view import ApiView
from catalog.links import page_url
from catalog.models import SLUG
from sizing.api_schemas import Model
from sizing.models import AiModel

ModelList = page_of(Model)


class ModelsView(ApiView):
    """AI models with published figures, by name."""

    is_catalog = True

    @extend_schema(
        operation_id="list_models",
        parameters=[OpenApiParameter("kind", enum=AiModel.Kind.values, description="The kind of model."), *PAGING],
        responses=answers(ModelList, cached=True),
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request, ("kind",))
        rows = AiModel.objects.all()
        if kind := query.one_of("kind", AiModel.Kind.values):
            rows = rows.filter(kind=kind)
        return query.respond(rows, ("name", "id"), model_document, name="models")


class ModelView(ApiView):
    """One AI model."""

    is_catalog = True

    @extend_schema(operation_id="get_model", responses=answers(Model, 404, cached=True))
    def get(self, request: Request, slug: str) -> Response:
        refuse_parameters(request)
        # The pattern first: PostgreSQL refuses a text with a NUL byte outright.
        row = AiModel.objects.filter(slug=slug).first() if SLUG.match(slug) else None
        if row is None:
            raise Http404
        return Response(model_document(row))


def model_document(model: AiModel) -> dict[str, Any]:
    """A model with what one chooses it by; its `missing_figure` is a name of the model's own fields."""
    tasks = [task for task in model.tasks if model.missing_for(task) is None]
    asked = urlencode({"task": tasks[0], "model": model.slug} if tasks else {})
    return {
        "slug": model.slug,
        "name": model.name,
        "family": model.family,
        "kind": model.kind,
        "tasks": tasks,
        "parameters": model.parameters,
        "max_context": model.max_context,
        "accepts_images": model.accepts_images,
        "license": model.license or None,
        "release_year": model.release_year,
        "missing_figure": model.missing_figure,
        "source_url": model.source_url,
        "html_url": page_url("launch") + (f"?{asked}" if asked else ""),
    }
