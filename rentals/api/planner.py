"""The planner: fixed terms one after the other, at today's prices."""

from __future__ import annotations

from datetime import datetime

from django.core.exceptions import ValidationError
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from catalog.api_queries import refuse_parameters
from catalog.api_schemas import answers
from catalog.models import Machine
from rentals.api import schemas
from rentals.api.bodies import read_fields
from rentals.api.views import TenantView
from rentals.authentication import HasKey, KeyRequest
from rentals.documents import plan_document
from rentals.errors import OffLine, UnknownMachine
from rentals.plans import NAMES, Planned, PlannerForm, machines_to_plan, plan
from sizing.forms import InputError
from sizing.json_input import AMOUNT, TEXT, WHOLE, Body, InvalidBody

_KINDS = {"machine": WHOLE, "lots": WHOLE, "days": WHOLE, "until": TEXT, "budget_usd": AMOUNT}


class PlannerView(TenantView):
    """Which fixed terms cover some days, reach a day, or last longest for a budget. It orders and reserves nothing."""

    key = HasKey

    @extend_schema(
        operation_id="plan", request=schemas.PlanRequest, responses=answers(schemas.Plan, 404, 409, body=True)
    )
    def post(self, request: KeyRequest) -> Response:
        refuse_parameters(request)
        body = read_fields(request.data, _KINDS, required=("machine",))
        return Response(plan_document(_planned(body, timezone.now()), request.organization))


def _planned(body: Body, now: datetime) -> Planned:
    """By the form of the page; a machine that is not offered is refused as by a quote."""
    given = {name: str(body[name]) for name in NAMES if body.get(name) is not None}
    form = PlannerForm({"lots": "1", **given}, machines=machines_to_plan())
    try:
        if form.is_valid():
            return plan(form.cleaned_data, now=now)
    except ValidationError as error:
        form.add_error(None, error)
    found = form.errors.as_data()
    if any(error.code == "invalid_choice" for error in found.get("machine", ())):
        machine = Machine.objects.filter(pk=body["machine"]).first()
        raise OffLine(machine) if machine else UnknownMachine(body["machine"])
    raise InvalidBody(
        InputError("body" if name == "__all__" else name, str(error.code or "invalid"), str(error.messages[0]))
        for name, errors in found.items()
        for error in errors
    )
