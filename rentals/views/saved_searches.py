"""Searches that an organization keeps: everybody in it reads them; who may order saves and deletes."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from rentals import saved_searches as acts
from rentals.api.examples import searches_program
from rentals.errors import InvalidSearch, NotPermitted
from rentals.makers import Makers
from rentals.models import SavedSearch
from rentals.policies import permits_ordering, policy_of
from rentals.saved_searches_forms import SearchForm
from rentals.scoping import TenantRequest, nothing_done, organization_page
from rentals.sent_forms import SentBefore, acting_once, told_again


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def saved_searches(request: TenantRequest) -> HttpResponse:
    """The list; a search comes here from a result page, by POST."""
    if request.method != "POST":
        return _list(request)
    form = SearchForm(request.POST)
    try:
        acts.check_may_keep(request.membership, now=timezone.now())
        if form.is_valid():
            name, query, now = form.cleaned_data["name"], form.cleaned_data["query"], timezone.now()
            with acting_once(request, now=now) as sending:
                search = acts.save_search(request.membership, name=name, query=query, now=now)
                sending.made = f"The search {search.name} was saved"
            messages.success(request, f"The search {search.name} is saved. You are told when a machine appears for it.")
            return redirect("saved-searches", request.organization.slug)
    except NotPermitted as error:
        raise PermissionDenied(error.message) from error
    except SentBefore as before:
        if before.same:
            return told_again(request, before, "saved-searches")
        form.add_error(None, before.message)
    except InvalidSearch as error:
        form.add_error(error.field, error.message)
    return _list(request, form, status=400)


@require_http_methods(["GET", "HEAD", "POST"])
@organization_page
def delete(request: TenantRequest, search_id: int) -> HttpResponse:
    search = get_object_or_404(SavedSearch.objects.for_organization(request.organization), pk=search_id)
    if request.method != "POST":
        return nothing_done(request, "saved-searches")
    try:
        acts.delete_search(request.membership, search.pk, now=timezone.now())
    except SavedSearch.DoesNotExist:
        raise Http404("There is no such search.") from None
    except NotPermitted as error:
        raise PermissionDenied(error.message) from error
    messages.success(request, f"The search {search.name} is deleted. Nobody is told of it any more.")
    return redirect("saved-searches", request.organization.slug)


def _list(request: TenantRequest, form: SearchForm | None = None, *, status: int = 200) -> HttpResponse:
    makers = Makers(request.organization)
    searches = SavedSearch.objects.for_organization(request.organization)
    rows = [(search, makers.note(search.created_by_id)) for search in searches]
    may = permits_ordering(request.membership, policy_of(request.organization))
    most, program = acts.MAX_SEARCHES, searches_program()
    context = {"rows": rows, "form": form, "may_keep": may, "most": most, "program": program}
    return render(request, "rentals/saved_searches.html", context, status=status)
