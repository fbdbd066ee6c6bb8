"""The invitation that a browser has opened: remembered in its session, so that signing in or up leads back to it."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest

from rentals.invitations import find, hash_of
from rentals.models import Invitation

_SESSION_KEY = "invitation"


def remember(request: HttpRequest, token: str) -> Invitation | None:
    """Keep the link's invitation in mind; None when the link is none. Only the token's hash is kept."""
    invitation = find(hash_of(token))
    if invitation is not None:
        request.session[_SESSION_KEY] = invitation.token_hash
    return invitation


def remembered(request: HttpRequest) -> Invitation | None:
    """The invitation that was opened here last, used and expired ones too."""
    return find(request.session.get(_SESSION_KEY))


def forget(request: HttpRequest) -> None:
    request.session.pop(_SESSION_KEY, None)


def invitation_of(request: HttpRequest | None, *, now: datetime) -> Invitation | None:
    """The opened invitation, when it can still be accepted."""
    if request is None or not hasattr(request, "session"):
        return None
    invitation = remembered(request)
    return invitation if invitation is not None and invitation.is_open(now) else None
