"""The public part of the REST API: what a workload needs, and where it fits. Nothing is stored."""

from dataclasses import replace
from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.api_queries import refuse_parameters
from catalog.api_schemas import answers
from catalog.api_view import ApiView
from sizing import api_schemas as schemas
from sizing import explain
from sizing.answers import HardLimits, Question
from sizing.documents import answer_document, sized_document
from sizing.engine.estimate import splits
from sizing.engine.workloads import Workload
from sizing.forms import InputError, InvalidInput, OwnModels, nested_question_from
from sizing.json_input import (
    PREFERENCE_KINDS,
    WORKLOAD_KINDS,
    Body,
    InvalidBody,
    body_problems,
    kind_of,
    kind_problems,
    part,
    told_by,
)
from sizing.matching import recommend
from sizing.own_api import at_config, at_workload, take_brought
from sizing.permalinks import page_of


class Caller(ApiView):
    """Who asks where something fits. Anybody may; a caller with models and limits of its own brings them in here."""

    def own_models(self, request: Request) -> OwnModels | None:
        return None

    def limits(self, request: Request) -> HardLimits | None:
        return None

    def page(self, request: Request) -> str:
        """The address of the page that answers the same question."""
        return reverse("launch-result")


class SizingView(Caller):
    """A workload's memory, line by line, for one GPU or for a legal split over `gpus`.

    `workload.task` and the kind of model decide which other fields there may be; see Workload. Only a language model
    that is run can be split; the other tasks are sized for one GPU.
    """

    @extend_schema(operation_id="size", request=schemas.SizingRequest, responses=answers(schemas.Memory, body=True))
    def post(self, request: Request) -> Response:
        refuse_parameters(request)
        body = request.data
        errors = body_problems(body, ("workload", "gpus"))
        if not isinstance(body, dict):
            raise InvalidBody(errors)
        question, found = read_question(body, preferences=False, own_models=self.own_models(request))
        gpus, wrong = _gpus(body, question.workload if question else None)
        errors += found + wrong
        if errors or question is None:
            raise InvalidBody(errors)
        return Response(sized_document(question, gpus, page=page_of(question, self.page(request))))


class RecommendationsView(Caller):
    """Where a workload fits now, cheapest first, and why."""

    @extend_schema(
        operation_id="recommend",
        request=schemas.RecommendationsRequest,
        responses=answers(schemas.Recommendations, body=True),
    )
    def post(self, request: Request) -> Response:
        refuse_parameters(request)
        body = request.data
        errors = body_problems(body, ("workload", "preferences"))
        if not isinstance(body, dict):
            raise InvalidBody(errors)
        question, found = read_question(body, own_models=self.own_models(request))
        if errors or found or question is None:
            raise InvalidBody(errors + found)
        answer = recommend(question, now=timezone.now(), limits=self.limits(request))
        return Response(answer_document(answer, page=page_of(question, self.page(request))))


def read_question(
    body: Body, *, preferences: bool = True, own_models: OwnModels | None = None
) -> tuple[Question | None, list[InputError]]:
    """The question in a body by the rules of the pages, or what is wrong, at `workload.context` and the like."""
    workload, errors = part(body, "workload", required=True)
    wished: Body = {}
    if preferences:
        wished, wrong = part(body, "preferences", required=False)
        errors += wrong
    workload, reading, unread = take_brought(workload)
    errors += at_workload(unread)
    if unread:
        return None, errors
    kinds = [
        *_at("workload", kind_problems(workload, WORKLOAD_KINDS)),
        *_at("preferences", kind_problems(wished, PREFERENCE_KINDS)),
    ]
    if any(error.field == "workload" for error in errors):
        return None, errors
    try:
        question = nested_question_from(
            workload, wished, own_models=own_models, brought=reading.model if reading else None
        )
    except InvalidInput as found:
        # A value of the wrong kind has its own sentence; what the forms make of it would be a second one.
        named = told_by(kinds)
        told = [error for error in found.errors if error.field not in named]
        return None, errors + kinds + (at_config(told) if reading else told)
    return (None if errors or kinds else question), errors + kinds


def _at(name: str, errors: list[InputError]) -> list[InputError]:
    return [replace(error, field=f"{name}.{error.field}") for error in errors]


def _gpus(body: Body, workload: Workload | None) -> tuple[int, list[InputError]]:
    value: Any = body.get("gpus", 1)
    if type(value) is not int:
        return 1, [InputError("gpus", "invalid", f"GPUs must be a whole number, not {kind_of(value)}.")]
    if workload is not None and value not in splits(workload):
        return 1, [InputError("gpus", "illegal_split", explain.illegal_split(workload))]
    return value, []
