"""Who may enter the administration, and through which door."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase

# Taken before config.urls puts our own in its place.
_django_login = admin.site.login


def admin_login(request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponseBase:
    """Sign in by the console's own login page, with its rate limits and second factor."""
    if request.user.is_authenticated and not request.user.is_staff:
        raise PermissionDenied("The administration is for staff. Sign out, then sign in with a staff account.")
    return secure_admin_login(_django_login)(request, extra_context)
