"""How accounts are named, and where signing in and up lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from rentals.wrong_passwords import RatedAdapter

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def display_name(user: User) -> str:
    """An account is its email address to everybody; the user name is Django's affair."""
    return user.email or user.get_username()


class AccountAdapter(RatedAdapter):
    def get_login_redirect_url(self, request: HttpRequest) -> str:
        return _invitation_page(request) or str(super().get_login_redirect_url(request))

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        return _invitation_page(request) or str(super().get_signup_redirect_url(request))

    def populate_username(self, request: HttpRequest, user: User) -> None:
        """The address itself where the column takes it, so that no page shows a name nobody has chosen."""
        longest = get_user_model()._meta.get_field("username").max_length
        fits = user.email and not user.username and len(user.email) <= (longest or 0)
        if fits and not get_user_model().objects.filter(username__iexact=user.email).exists():
            user.username = user.email
        super().populate_username(request, user)


def _invitation_page(request: HttpRequest) -> str | None:
    """Who opened an invitation and then signed in or up goes on to it, also after a detour by the mailbox."""
    from rentals.joining import invitation_of

    return reverse("invitation-join") if invitation_of(request, now=timezone.now()) else None
