"""Every error under /api/ in one shape: RFC 9457 problem details with a code, the fields and the request's id."""

import math
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, JsonResponse
from drf_spectacular.utils import extend_schema
from drf_standardized_errors.formatter import flatten_errors
from drf_standardized_errors.handler import ExceptionHandler
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from structlog.contextvars import get_contextvars

from catalog.api_queries import refuse_parameters
from catalog.api_schemas import answers
from catalog.api_view import ApiView
from catalog.links import page_url
from config.api_parser import PayloadTooLarge, UnreadMedia
from config.log_lines import hide_keys
from config.rental_problems import RefusedWish
from rentals.api.problems import TITLES, document
from rentals.errors import Busy, RentalError, Unreachable
from rentals.ordering import is_lock_timeout
from sizing.forms import InputError

PROBLEM_JSON = "application/problem+json"
# The framework's own codes, in our words.
_CODES = {
    "authentication_failed": "unauthenticated",
    "not_authenticated": "unauthenticated",
    "permission_denied": "forbidden",
    "error": "server_error",
}
_DETAILS = {
    "not_found": "There is nothing at this address.",
    "server_error": "The fault is ours, and it is logged under this request id.",
    "unsupported_media_type": "Send the body as Content-Type: application/json.",
}


class UnreadRequest(exceptions.APIException):
    """Django found the request itself wrong before any rule of ours could."""

    status_code = 400
    default_code = "invalid"


def problem_response(exc: Exception, context: Any) -> Response | None:
    """The answer to whatever went wrong in a view; set as the framework's EXCEPTION_HANDLER."""
    return ProblemHandler(exc, context).run()


class ProblemHandler(ExceptionHandler):
    """Also answers for unforeseen exceptions, which are reported and logged as Django's own would be."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        if isinstance(exc, RentalError):
            return RefusedWish(exc)
        # The database is away or too busy; reported with its trace, and the client may come again.
        if isinstance(exc, OperationalError) and is_lock_timeout(exc):
            return RefusedWish(Busy())
        if isinstance(exc, (OperationalError, InterfaceError)):
            return RefusedWish(Unreachable())
        if isinstance(exc, RequestDataTooBig):
            return PayloadTooLarge(f"The body must be {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes or less.")
        if isinstance(exc, TooManyFieldsSent):
            return UnreadRequest(f"A query may have {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,} names at most.")
        if isinstance(exc, (SuspiciousOperation, BadRequest)):
            return UnreadRequest("The request cannot be read.")
        return super().convert_known_exceptions(exc)

    def should_not_handle(self, exc: Exception) -> bool:
        # With DEBUG too: a client of the API can read nothing but JSON.
        return False

    def format_exception(self, exc: exceptions.APIException) -> dict[str, Any]:
        errors = []
        code, detail = _code(exc), str(exc.detail)
        if isinstance(exc, exceptions.ValidationError):
            errors = [
                {"field": error.field, "code": error.code, "detail": error.detail}
                for error in getattr(exc, "input_errors", None) or _flattened(exc)
            ]
            code, detail = (
                "invalid",
                errors[0]["detail"] if len(errors) == 1 else f"{len(errors)} fields are not valid.",
            )
        elif isinstance(exc, RefusedWish):
            errors = [vars(error) for error in exc.input_errors]
        elif isinstance(exc, exceptions.MethodNotAllowed):
            view, asked = self.context["view"], getattr(self.context["request"], "method", "")
            detail = f"This address takes {', '.join(view.allowed_methods)}, not {asked}."
        elif isinstance(exc, exceptions.Throttled):
            detail = f"Wait {math.ceil(getattr(exc, 'wait', None) or 1):,} s, then send it again."
        elif not isinstance(exc, UnreadMedia):
            detail = _DETAILS.get(code, detail)
        return problem(exc.status_code, code, detail, errors, **getattr(exc, "extra", {}))

    def get_response(self, exc: exceptions.APIException, data: dict[str, Any]) -> Response:
        response: Response = super().get_response(exc, data)
        response.content_type = PROBLEM_JSON
        return response


def problem(
    code_number: int, code: str, detail: str, errors: list[dict[str, str]] | None = None, **extra: Any
) -> dict[str, Any]:
    """The body of an error."""
    return {
        "type": f"{settings.SITE_URL}/api/v1/errors#{code}",
        "title": TITLES.get(code, code.replace("_", " ").capitalize()),
        "status": code_number,
        "code": code,
        "detail": _fit_to_send(detail),
        **extra,
        "errors": [{name: _fit_to_send(value) for name, value in error.items()} for error in errors or []],
        "request_id": request_id(),
    }


def _fit_to_send(text: str) -> str:
    """What was sent in the wrong place may be repeated, a key never: problems are kept and shown around. Half a pair of
    surrogates, which JSON can name, is no letter that can be sent."""
    return hide_keys(text).encode("utf-8", "replace").decode()


def request_id() -> str:
    """The id under which the log has this request."""
    return str(get_contextvars().get("request_id", ""))


def is_api(request: HttpRequest) -> bool:
    """Whether the client of this address reads JSON."""
    return request.path_info.startswith("/api/")


def problem_page(request: HttpRequest, status_code: int, detail: str = "") -> JsonResponse:
    """The same shape for errors that never reach a view of the API."""
    codes = {
        400: "invalid", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 411: "length_required",
        413: "payload_too_large", 429: "throttled", 503: "unavailable",
    }  # fmt: skip
    code = codes.get(status_code, "server_error")
    body = problem(status_code, code, detail or _DETAILS.get(code, TITLES[code] + "."))
    return JsonResponse(body, status=status_code, content_type=PROBLEM_JSON)


def _flattened(exc: exceptions.ValidationError) -> list[InputError]:
    """A serializer's nested errors with dotted fields."""
    return [InputError(error.attr or "body", error.code, error.detail) for error in flatten_errors(exc.detail)]


def _code(exc: exceptions.APIException) -> str:
    codes = exc.get_codes()
    code = codes if isinstance(codes, str) else str(exc.default_code)
    return _CODES.get(code, code)


class Nowhere(ApiView):
    """Every address under /api/ that is none: JSON too, whatever the method."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise exceptions.NotFound()


class ErrorCode(serializers.Serializer[Any]):
    code = serializers.CharField()
    status = serializers.IntegerField()
    title = serializers.CharField()
    meaning = serializers.CharField()
    remedy = serializers.CharField()


class FieldErrorCode(serializers.Serializer[Any]):
    code = serializers.CharField()
    meaning = serializers.CharField()


class ErrorCodes(serializers.Serializer[Any]):
    errors = ErrorCode(many=True)  # type: ignore[assignment]  # the name is a property of serializers
    field_codes = FieldErrorCode(many=True)
    html_url = serializers.URLField()


class Errors(ApiView):
    """Every code that an error may have, with what it means and what to do; the `type` of an error leads here."""

    is_catalog = True

    @extend_schema(operation_id="list_errors", responses=answers(ErrorCodes, cached=True))
    def get(self, request: Request) -> Response:
        refuse_parameters(request)
        return Response({**document(), "html_url": page_url("api-docs")})
