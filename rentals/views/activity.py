"""Who did what in an organization, for its owners and admins."""

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from rentals.activity import acts, words
from rentals.models import AuditEvent
from rentals.scoping import TenantRequest, organization_page

EVENTS_PER_PAGE = 50


@require_safe
@organization_page
def activity(request: TenantRequest) -> HttpResponse:
    if not request.membership.may_manage:
        raise PermissionDenied("Only owners and admins read the activity of an organization.")
    events = AuditEvent.objects.for_organization(request.organization)
    actions = sorted(set(events.order_by().values_list("action", flat=True)), key=words)
    action = request.GET.get("action", "")
    unknown = bool(action) and action not in actions
    if action:
        events = events.none() if unknown else events.filter(action=action)
    page = Paginator(events, EVENTS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": acts(list(page)),
        "actions": [(each, words(each), each == action) for each in actions],
        "unknown": unknown,
    }
    return render(request, "rentals/activity.html", context, status=400 if unknown else 200)
