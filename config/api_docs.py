"""The OpenAPI document and the page that shows it. It is public: it holds no secret, only what may be sent."""

from typing import Any

from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

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


@method_decorator(csp_update({"style-src": ["'unsafe-inline'"]}), name="dispatch")
class DocsView(ApiView, SpectacularSwaggerSplitView):
    """The document as a page. Its viewer writes styles into the page, so this page alone allows them."""

    url_name = "api-schema"
    # The framework's own answer to OPTIONS has no page to be shown on.
    http_method_names = ["get", "head"]
