"""The conformance vectors over the API: public, the same for everybody, and cacheable."""

from typing import Any

from django.http import HttpRequest
from django.utils.cache import patch_cache_control
from django.utils.decorators import method_decorator
from django.views.decorators.http import condition
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.api_schemas import answers
from catalog.api_view import ApiView
from catalog.links import page_url
from sizing.api_schemas import Vectors
from sizing.conformance.vectors import merged
from sizing.forms import unknown_names
from sizing.json_input import InvalidBody

MAX_AGE_SECONDS = 3600


def _etag(request: HttpRequest, **_: Any) -> str | None:
    # With parameters it is an error, which is not the same document.
    return None if request.GET else f'"{merged()[1]}"'


@method_decorator(condition(etag_func=_etag), name="dispatch")
class VectorsView(ApiView):
    """Every conformance vector, with which any program that follows the same rules can be checked."""

    @extend_schema(operation_id="list_vectors", responses=answers(Vectors, cached=True))
    def get(self, request: Request) -> Response:
        if errors := unknown_names(dict.fromkeys(request.query_params), ()):
            raise InvalidBody(errors)
        response = Response({**merged()[0], "html_url": page_url("help-memory")})
        patch_cache_control(response, public=True, max_age=MAX_AGE_SECONDS)
        return response
