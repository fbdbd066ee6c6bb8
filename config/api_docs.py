"""The OpenAPI document and the page that shows it. It is public: it holds no secret, only what may be sent."""

from typing import Any

from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.api_queries import ListQuery, refuse_parameters
from catalog.api_view import ApiView


class ApiKeyScheme(OpenApiAuthenticationExtension):
    """Found by the generator as a subclass; loading this module is enough."""

    target_class = "rentals.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "berth_<prefix>_<secret>",
            "description": "An API key of your organization. Owners and admins make one on its page “API keys”.",
        }


class SchemaView(ApiView, SpectacularJSONAPIView):
    """OpenAPI 3.1 of everything under /api/v1/."""

    is_catalog = True

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        refuse_parameters(request)


@method_decorator(csp_update({"style-src": ["'unsafe-inline'"]}), name="dispatch")
class DocsView(ApiView, SpectacularSwaggerSplitView):
    """The document as a page. Its viewer writes styles into the page, so this page alone allows them."""

    url_name = "api-schema"
    # The framework's own answer to OPTIONS has no page to be shown on.
    http_method_names = ["get", "head"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # The page asks for its own script by this one.
        ListQuery(request, ("script",), paged=False).raise_errors()

    def handle_exception(self, exc: Exception) -> Response:
        """Errors are no page: they are what they are everywhere."""
        answer = super().handle_exception(exc)
        self.request.accepted_renderer = JSONRenderer()
        self.request.accepted_media_type = JSONRenderer.media_type
        return answer
