"""What every request meets first, whatever page it is for: its method, its tracking parameters, its unread body."""

from collections.abc import Callable

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponseRedirect, UnreadablePostError
from django.http.response import HttpResponseBase

from config.api_errors import is_api
from config.chunked import MOST_DRAINED, in_chunks
from config.errors import bad_request, length_required, method_not_allowed

GetResponse = Callable[[HttpRequest], HttpResponseBase]

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# What mail programs, advertisements and social networks hang on links. Pages refuse every other unknown name.
TRACKING = frozenset(
    {
        *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "utm_id"),
        *("gclid", "gclsrc", "gbraid", "wbraid", "dclid", "_ga", "_gl"),
        *("fbclid", "igshid", "msclkid", "ttclid", "twclid", "li_fat_id", "yclid"),
        *("mc_cid", "mc_eid", "_hsenc", "_hsmi"),
    }
)


class KnownMethods:
    """TRACE, CONNECT and invented methods are answered by no page. An address of the API says itself what it takes."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method not in METHODS and not is_api(request):
            return method_not_allowed(request, METHODS)
        return self.get_response(request)


class UnreadBodies:
    """A body in chunks that `WholeBodies` left as it was is refused; without a length it would be taken as empty."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not in_chunks(request.META):
            return self.get_response(request)
        if request.META.get("wsgi.input_terminated"):
            return bad_request(request, RequestDataTooBig())
        return length_required(request)


class WithoutTracking:
    """A link with tracking parameters leads to the page's own address, with the rest of the query as it was."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method in ("GET", "HEAD") and not is_api(request):
            pairs = request.META.get("QUERY_STRING", "").split("&")
            kept = [pair for pair in pairs if pair.partition("=")[0].lower() not in TRACKING]
            if kept != pairs:
                query = "&".join(kept)
                # One slash at the beginning: two would name another host.
                path = "/" + request.get_full_path_info().partition("?")[0].lstrip("/")
                return HttpResponseRedirect(f"{path}?{query}" if query else path)
        return self.get_response(request)


class ReadToTheEnd:
    """Reads the rest of a body that was refused, so that the client gets the answer and may use its connection again.

    A server that closes a connection with bytes unread resets it, and the reset overtakes the answer.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if request.META.get("CONTENT_LENGTH") not in (None, "", "0"):
            drained = 0
            try:
                while drained < MOST_DRAINED and (chunk := request.read(64 * 1024)):
                    drained += len(chunk)
            except (UnreadablePostError, ValueError):
                # Gone, or closed after it was read: there is nobody to be kind to.
                pass
        return response
