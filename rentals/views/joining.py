"""An invitation from the side of who was invited: open the link, sign in or up, say yes."""

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from rentals.errors import InvitationNotForYou, InvitationOver
from rentals.invitations import accept, belongs_to, why_over
from rentals.joining import forget, remember, remembered


@require_safe
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """The link of the mail. It only remembers: a mail scanner that opens it changes nothing."""
    if remember(request, token) is None:
        return _over(request, why_over(None), 404)
    return redirect("invitation-join")


@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest) -> HttpResponse:
    found = remembered(request)
    if found is None:
        return _over(request, "Open the link of your invitation again.", 404)
    if request.method == "POST":
        return _accept(request, found.token_hash)
    if not found.is_open(timezone.now()):
        return _over(request, why_over(found), 410)
    mine = request.user.is_authenticated and belongs_to(found, request.user)
    context = {"invitation": found, "organization_name": found.organization.name, "mine": mine}
    return render(request, "rentals/invitation.html", context)


def _accept(request: HttpRequest, token_hash: str) -> HttpResponse:
    if not request.user.is_authenticated:
        return redirect_to_login(reverse("invitation-join"))
    try:
        membership = accept(token_hash, request.user, now=timezone.now())
    except InvitationNotForYou as error:
        return _over(request, error.message, 403)
    except InvitationOver as error:
        return _over(request, error.message, 410)
    forget(request)
    messages.success(request, f"You are a member of {membership.organization.name} now: {membership.role}.")
    return redirect("organization", membership.organization.slug)


def _over(request: HttpRequest, message: str, status: int) -> HttpResponse:
    return render(request, "rentals/invitation_over.html", {"message": message}, status=status)
