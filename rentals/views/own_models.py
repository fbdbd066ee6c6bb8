"""The organization's own models: list and upload, one with the origin of its figures, delete."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from rentals import own_models as acts
from rentals.api.examples import own_model_program, own_models_program
from rentals.errors import NotPermitted, RentalError
from rentals.models import OwnModel
from rentals.scoping import TenantRequest, organization_page
from rentals.sent_forms import SentBefore, acting_once, told_again
from sizing.own_forms import OwnModelForm
from sizing.own_views import onward, reading_context


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def own_models(request: TenantRequest) -> HttpResponse:
    if request.method != "POST":
        return _list(request, OwnModelForm())
    form = OwnModelForm(request.POST, request.FILES)
    if not form.is_valid():
        return _list(request, form, status=400)
    now = timezone.now()
    try:
        with acting_once(request, now=now) as sending:
            model = acts.add_own_model(request.membership, form.reading, now=now)
            sending.made = f"The model {model.name} was kept"
    except SentBefore as before:
        if before.same:
            return told_again(request, before, "own-models")
        form.add_error(None, before.message)
        return _list(request, form, status=409)
    except NotPermitted as error:
        raise PermissionDenied(error.message) from error
    except RentalError as error:
        form.add_error(None, error.message)
        return _list(request, form, status=400)
    messages.success(request, f"{model.name} is kept. Check its figures before you rely on them.")
    return redirect("own-model", request.organization.slug, model.slug)


@require_http_methods(["GET", "HEAD"])
@organization_page
def own_model(request: TenantRequest, model_slug: str) -> HttpResponse:
    row = _row(request, model_slug)
    shape = row.readable
    context: dict[str, object] = {"row": row, "may_keep": acts.may_keep(request.membership)}
    if shape is not None:
        launch = reverse("organization-launch", args=[request.organization.slug])
        context |= reading_context(shape, row.reading)
        context["program"] = own_model_program(row)
        context["use_it"] = f"{launch}?{onward(request.GET, shape).urlencode()}#step-model"
    return render(request, "rentals/own_model.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def delete_own_model(request: TenantRequest, model_slug: str) -> HttpResponse:
    row = _row(request, model_slug)
    if not acts.may_keep(request.membership):
        raise PermissionDenied("Viewers look at the organization's models; they do not delete them.")
    if request.method != "POST":
        return render(request, "rentals/own_model_delete.html", {"row": row})
    try:
        acts.delete_own_model(request.membership, model_slug, now=timezone.now())
    except OwnModel.DoesNotExist:
        raise Http404("There is no such model.") from None
    messages.success(request, f"{row.name} is deleted. Orders keep what they were sized with.")
    return redirect("own-models", request.organization.slug)


def _row(request: TenantRequest, slug: str) -> OwnModel:
    row = OwnModel.objects.for_organization(request.organization).filter(slug=slug).first()
    if row is None:
        raise Http404("There is no such model.")
    return row


def _list(request: TenantRequest, form: OwnModelForm, *, status: int = 200) -> HttpResponse:
    rows = OwnModel.objects.for_organization(request.organization)
    context = {
        "form": form,
        "rows": [(row, row.readable) for row in rows],
        "program": own_models_program(),
        "may_keep": acts.may_keep(request.membership),
    }
    return render(request, "rentals/own_models.html", context, status=status)
