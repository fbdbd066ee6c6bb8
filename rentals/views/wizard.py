"""The wizard inside an organization: sizing's own pages, with Launch leading to this organization's review."""

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from rentals.own_models import shapes_of
from rentals.policies import limits_of, permits_ordering, policy_of
from rentals.scoping import TenantRequest, organization_page
from sizing import views as sizing_views


@require_safe
@organization_page
def launch(request: TenantRequest) -> HttpResponse:
    return sizing_views.launch(request, frame=_frame(request))


@require_safe
@organization_page
def launch_result(request: TenantRequest) -> HttpResponse:
    return sizing_views.launch_result(request, frame=_frame(request))


def _frame(request: TenantRequest) -> sizing_views.Frame:
    slug, policy = request.organization.slug, policy_of(request.organization)
    may_order = permits_ordering(request.membership, policy)
    return sizing_views.Frame(
        launch_url=reverse("organization-launch", args=[slug]),
        result_url=reverse("organization-launch-result", args=[slug]),
        review_url=reverse("order-review", args=[slug]),
        limits=limits_of(policy, request.organization, now=timezone.now()),
        context={"organization": request.organization},
        keys_url=reverse("keys", args=[slug]),
        own_models=shapes_of(request.organization),
        own_url=reverse("own-models", args=[slug]),
        save_url=reverse("saved-searches", args=[slug]) if may_order else "",
    )
