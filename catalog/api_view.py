"""What every address of the API has in common, whoever owns it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.cache import patch_cache_control, patch_vary_headers
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class ApiView(APIView):
    """A resource of the API. Who asks is counted before anything is refused, so every answer can say what is left.

    `is_catalog` marks what is the same for everybody: it may be kept, and asked for again by its ETag. Everything else
    is kept by nobody.
    """

    is_catalog: ClassVar[bool] = False

    def perform_authentication(self, request: Request) -> None:
        """The framework counts requests last, after its refusals; here those count too."""
        try:
            super().perform_authentication(request)
        except AuthenticationFailed:
            # Nobody's key: the address is counted.
            self.check_throttles(request)
            raise
        self.check_throttles(request)
        self._counted = True

    def check_throttles(self, request: Request) -> None:
        if not getattr(self, "_counted", False):
            super().check_throttles(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        answer: Response = super().finalize_response(request, response, *args, **kwargs)
        if not answer.has_header("Cache-Control"):
            if self.is_catalog and request.method in ("GET", "HEAD") and answer.status_code == 200:
                # Stock and prices are those of now: whoever keeps it asks before using it.
                who = "private" if vars(request).get("_auth") is not None else "public"
                patch_cache_control(answer, no_cache=True, **{who: True})
            else:
                patch_cache_control(answer, private=True, no_store=True)
        patch_vary_headers(answer, ["Authorization"])
        return answer
