"""The colour theme: a cookie the server reads, so that the first byte of a page already has the right colours."""

from typing import Literal, get_args

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

Theme = Literal["light", "dark", "auto"]
COOKIE = "theme"
ONE_YEAR = 365 * 24 * 60 * 60


def theme_of(request: HttpRequest) -> Theme:
    """The theme the person chose; `auto` follows the system, and is what anything unknown in the cookie means."""
    chosen = request.COOKIES.get(COOKIE)
    return next((theme for theme in get_args(Theme) if theme == chosen), "auto")


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Keep the chosen theme and go back to the page it was chosen on."""
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
        back = "/"
    response = HttpResponseRedirect(back)
    if (theme := request.POST.get("theme", "")) in get_args(Theme):
        response.set_cookie(COOKIE, theme, max_age=ONE_YEAR, secure=settings.HTTPS, httponly=True, samesite="Lax")
    return response
