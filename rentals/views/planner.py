"""The planner: fixed terms one after the other, at today's prices. It reads; it orders and reserves nothing."""

from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from catalog.quoting import shown
from rentals.api.examples import plan_program
from rentals.plans import GOALS, NAMES, PlannerForm, machines_to_plan, plan
from rentals.policies import permits_ordering, policy_of
from rentals.scoping import TenantRequest, organization_page


@require_safe
@organization_page
def planner(request: TenantRequest) -> HttpResponse:
    if unknown := [shown(name) for name in request.GET if name not in NAMES]:
        empty = PlannerForm(initial={"lots": 1}, machines=machines_to_plan())
        return _show(request, empty, 400, unknown=unknown, known=NAMES)
    if not any(request.GET.get(name, "").strip() for name in GOALS):
        initial = {"lots": request.GET.get("lots", "1")}
        if (machine := request.GET.get("machine", "")).isascii() and machine.isdigit() and len(machine) < 19:
            initial["machine"] = machine
        return _show(request, PlannerForm(initial=initial, machines=machines_to_plan()))
    data = {name: request.GET.get(name, "") for name in NAMES} | {"lots": request.GET.get("lots") or "1"}
    form = PlannerForm(data, machines=machines_to_plan())
    if not form.is_valid():
        return _show(request, form, 400)
    try:
        planned = plan(form.cleaned_data, now=timezone.now())
    except ValidationError as error:
        form.add_error(None, error)
        return _show(request, form, 400)
    return _show(request, form, planned=planned, program=plan_program(planned.asked))


def _show(request: TenantRequest, form: PlannerForm, status: int = 200, **context: object) -> HttpResponse:
    may = permits_ordering(request.membership, policy_of(request.organization))
    return render(request, "rentals/planner.html", {"form": form, "may_order": may, **context}, status=status)
