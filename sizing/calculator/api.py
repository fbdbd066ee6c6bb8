"""The calculator over REST, with the pages' rules and words. Nothing is stored."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.api_queries import refuse_parameters
from catalog.api_schemas import answers
from catalog.api_view import ApiView
from sizing.calculator import api_schemas as schemas
from sizing.calculator.addresses import Pairs, chain_pairs, envelope_pairs
from sizing.calculator.candidates import candidates
from sizing.calculator.documents import envelope_document, stages_document
from sizing.calculator.forms import EntryForm, RowForm, StageForm, WeightsForm, chain_of, envelope_question, rows_of
from sizing.forms import InputError, InputForm, InvalidInput
from sizing.json_input import AMOUNT, TEXT, WHOLE, InvalidBody, body_problems, kind_problems

WEIGHTS_KINDS = {"parameters": WHOLE, "bits": WHOLE, "purpose": TEXT}
ENTRY_KINDS = {"name": TEXT, "gib": AMOUNT, "reason": TEXT, "state": TEXT}
STAGE_KINDS = {"name": TEXT, "weights_gib": AMOUNT, "working_memory_gib": AMOUNT, "load": TEXT}


class CalculatorView(ApiView):
    """Weights of so many parameters, and the envelope of them with the reserve entries."""

    @extend_schema(
        operation_id="calculate",
        request=schemas.CalculatorRequest,
        responses=answers(schemas.Envelope, body=True),
    )
    def post(self, request: Request) -> Response:
        refuse_parameters(request)
        body = request.data
        errors = body_problems(body, (*WEIGHTS_KINDS, "reserve"))
        if not isinstance(body, dict):
            raise InvalidBody(errors)
        weights = WeightsForm({name: body[name] for name in WEIGHTS_KINDS if name in body} | {"parameter_unit": "ones"})
        errors += _first(_kinds(body, WEIGHTS_KINDS, weights), weights.input_errors)
        rows, wrong = _rows(body.get("reserve"), "reserve", EntryForm, ENTRY_KINDS)
        errors += wrong
        if errors:
            raise InvalidBody(errors)
        question = envelope_question(weights, rows, [])
        answer = envelope_document(question, candidates(question.envelope.total_bytes, now=timezone.now()))
        return Response({**answer, "html_url": _page("calculator", envelope_pairs(question))})


class StagesView(ApiView):
    """What a chain of stages needs with everything resident, and loaded step by step."""

    @extend_schema(
        operation_id="calculate_stages",
        request=schemas.StagesRequest,
        responses=answers(schemas.Stages, body=True),
    )
    def post(self, request: Request) -> Response:
        refuse_parameters(request)
        body = request.data
        errors = body_problems(body, ("stages",))
        if not isinstance(body, dict):
            raise InvalidBody(errors)
        rows, wrong = _rows(body.get("stages"), "stages", StageForm, STAGE_KINDS, least=1)
        try:
            chain = chain_of(rows, errors + wrong)
        except InvalidInput as invalid:
            raise InvalidBody(invalid.errors) from invalid
        return Response({**stages_document(chain), "html_url": _page("calculator-stages", chain_pairs(chain))})


def _page(name: str, pairs: Pairs) -> str:
    return f"{settings.SITE_URL}{reverse(name)}?{urlencode(pairs)}"


def _rows(
    value: object, name: str, form: type[RowForm], kinds: Mapping[str, str], *, least: int = 0
) -> tuple[list[RowForm], list[InputError]]:
    """The rows of a list, and everything wrong at `name` and `name[0].field`."""
    rows, errors = rows_of(value, name, form, least=least)
    items: list[Any] = value if isinstance(value, list) else []
    for row in rows:
        at = f"{name}[{row.number - 1}]"
        wrong_kinds = [
            replace(error, field=f"{at}.{error.field}") for error in _kinds(items[row.number - 1], kinds, row)
        ]
        errors += _first(wrong_kinds, row.errors_at(at))
    return rows, errors


def _kinds(values: Mapping[str, Any], kinds: Mapping[str, str], form: InputForm) -> list[InputError]:
    """Values of the wrong kind, named as the form labels them."""
    return [
        replace(error, detail=f"{form.fields[error.field].label}{error.detail[error.detail.index(' must be ') :]}")
        for error in kind_problems(values, kinds)
    ]


def _first(kinds: list[InputError], others: list[InputError]) -> list[InputError]:
    """A value of the wrong kind has its own sentence; what the form makes of it would be a second one."""
    named = {error.field for error in kinds}
    return kinds + [error for error in others if error.field not in named]
