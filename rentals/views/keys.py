"""An organization's API keys: list, make, revoke. For owners and admins."""

from collections.abc import Callable
from functools import wraps

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from rentals import api_keys as acts
from rentals.errors import NotPermitted, RentalError
from rentals.forms import ApiKeyForm
from rentals.leaving import left_by_key, revoke_key
from rentals.leaving_forms import RevokeTooForm
from rentals.makers import Makers
from rentals.models import ApiKey
from rentals.models.organizations import MANAGING_ROLES
from rentals.scoping import TenantRequest, organization_page
from rentals.sent_forms import SentBefore, acting_once, told_again

SHOWN_ONCE = "It was shown then and is not shown again: if nobody has it, revoke it and make another."


def managers_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Inside `organization_page`: who may not manage keys is told so, and sees none."""

    @wraps(view)
    def managed(request: TenantRequest, **kwargs: int) -> HttpResponse:
        if "key_id" in kwargs:
            # Before any other refusal: what is wrong with a request says nothing about another organization's keys.
            mine = ApiKey.objects.for_organization(request.organization)
            get_object_or_404(mine, pk=kwargs["key_id"])
        if not request.membership.may_manage:
            raise PermissionDenied("Only owners and admins manage API keys. Ask one of them for a key.")
        return view(request, **kwargs)

    return managed


@never_cache
@organization_page
@managers_only
def keys(request: TenantRequest) -> HttpResponse:
    """The list, and the one sight of a new key: in the answer to the form, never in an address or a session."""
    form = ApiKeyForm(request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return _list(request, form, status=400 if request.method == "POST" else 200)
    now = timezone.now()
    try:
        with acting_once(request, now=now) as sending:
            key, text = acts.create_api_key(
                request.organization,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                expires_at=form.expires_at(now),
                actor=request.user,
                via="page",
                now=now,
            )
            sending.made = f"The key {key.name} was made"
    except SentBefore as before:
        if before.same:
            return told_again(request, before, "keys", SHOWN_ONCE)
        form.add_error(None, before.message)
        return _list(request, form, status=409)
    except NotPermitted as error:
        raise PermissionDenied(error.message) from error
    except RentalError as error:
        form.add_error(error.field if error.field in form.fields else None, error.message)
        return _list(request, form, status=400)
    return _list(request, ApiKeyForm(), made=key, text=text)


@never_cache
@organization_page
@managers_only
def revoke(request: TenantRequest, key_id: int) -> HttpResponse:
    key = get_object_or_404(ApiKey.objects.for_organization(request.organization), pk=key_id)
    now, left = timezone.now(), left_by_key(request.organization, key)
    form = RevokeTooForm(request.POST if request.method == "POST" else None, left=left)
    if not form.is_valid():
        context = {"key": key, "live": key.is_live(now), "left": left, "form": form}
        return render(request, "rentals/key_revoke.html", context)
    try:
        revoke_key(request.organization, key_id, fates=form.fates, actor=request.user, via="page", now=now)
    except ApiKey.DoesNotExist:
        raise Http404("There is no such key.") from None
    except NotPermitted as error:
        raise PermissionDenied(error.message) from error
    messages.success(request, f"The key {key.name} is revoked. Nothing opens with it any more.")
    if left.kinds and request.POST.get("seen") != left.seen:
        # Made by the key after the page was opened: revoking does not wait, and what nobody saw is shown.
        return redirect("key-revoke", request.organization.slug, key_id)
    return redirect("keys", request.organization.slug)


def _list(request: TenantRequest, form: ApiKeyForm, *, status: int = 200, **shown: object) -> HttpResponse:
    now = timezone.now()
    rows = ApiKey.objects.for_organization(request.organization).select_related("created_by")
    makers = Makers(request.organization, roles=MANAGING_ROLES)
    listed = [(key, key.is_live(now), makers.note(key.created_by_id)) for key in rows]
    context = {"form": form, "rows": listed, **shown}
    return render(request, "rentals/keys.html", context, status=status)
