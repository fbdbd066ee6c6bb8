"""Strict JSON in, JSON out: what two readers could read differently is refused instead of guessed."""

import json
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any, NoReturn

from django.conf import settings
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import APIException, ParseError
from rest_framework.metadata import BaseMetadata
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from catalog.quoting import shown

if TYPE_CHECKING:
    # Loads this module while it is itself being loaded.
    from rest_framework.views import APIView

MAX_DEPTH = 20


class PayloadTooLarge(APIException):
    """The body is larger than the service reads."""

    status_code = 413
    default_code = "payload_too_large"


class UnreadMedia(APIException):
    """The body is JSON in a wrapping or letters that nobody here reads; the detail names it."""

    status_code = 415
    default_code = "unsupported_media_type"


class StrictJSONParser(BaseParser):
    """JSON in UTF-8, with each key once, finite numbers, limited depth and a limited size.

    Raises: ParseError saying what is wrong, PayloadTooLarge.
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise PayloadTooLarge(f"The body must be {limit:,} bytes or less.")
        try:
            value = json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse_constant)
        except UnicodeDecodeError as error:
            raise ParseError("The body must be JSON in UTF-8.") from error
        except RecursionError as error:
            raise ParseError(_TOO_DEEP) from error
        except json.JSONDecodeError as error:
            raise ParseError(
                f"The body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."
            ) from error
        except ValueError as error:
            # Python refuses to read numbers of thousands of digits.
            raise ParseError("The body has a number with too many digits.") from error
        _check_depth(value)
        return value


_TOO_DEEP = f"The body is nested more than {MAX_DEPTH} levels deep."


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            shown = name[:60].encode("utf-8", "replace").decode().replace("\0", "�")
            raise ParseError(f"“{shown}” is given twice in one object.")
        found[name] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ParseError(f"{name} is not a number of JSON.")


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ParseError(_TOO_DEEP)
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]


class JSONAlways(BaseContentNegotiation):
    """There is nothing but JSON to choose, so an `Accept` header that asks for something else changes nothing.

    Raises: UnreadMedia for a body that is compressed or not in UTF-8.
    """

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        sent, parameters = parse_header_parameters((request.content_type or "").lower())
        encoding = request.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            raise UnreadMedia(f"Content-Encoding “{shown(encoding)}” is not read: send the body uncompressed.")
        charset = parameters.get("charset", "utf-8")
        if charset not in ("utf-8", "utf8"):
            raise UnreadMedia(f"The charset “{shown(charset)}” is not read: send JSON in UTF-8.")
        return next((parser for parser in parsers if parser.media_type == sent), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, str(first.media_type)


class Methods(BaseMetadata):
    """What `OPTIONS` answers: the methods, and where the rest is described."""

    def determine_metadata(self, request: Request, view: "APIView") -> dict[str, Any]:
        return {"methods": list(view.allowed_methods), "schema": "/api/v1/schema"}
