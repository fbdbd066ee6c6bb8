"""Two questions of whoever runs Berth: is the process alive, and can it serve?"""

from typing import Any

from django.http import HttpRequest, HttpResponse
from health_check.checks import Cache, Database
from health_check.views import HealthCheckView


def alive(request: HttpRequest) -> HttpResponse:
    """Touches nothing: a process that answers must not be restarted because its database is away."""
    return HttpResponse("ok\n", content_type="text/plain")


class Readiness(HealthCheckView):
    """Database and cache answer: 200, else 503 and which one does not. As text, or JSON when asked for."""

    checks = (Database, Cache)

    async def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = await super().get(request, *args, **kwargs)
        if response.status_code == 500:
            response.status_code = 503
        return response

    def render_to_response(self, context: dict[str, Any], status: int = 200, **kwargs: Any) -> HttpResponse:
        """The library's own page brings styles of its own, which our content policy refuses."""
        return self.render_to_response_text(status)
