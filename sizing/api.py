"""The public part of the REST API: what a workload needs, and where it fits. Nothing is stored."""

from dataclasses import replace
from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sizing import explain
from sizing.answers import Question
from sizing.documents import answer_document, memory_document
from sizing.engine.parallelism import is_legal_split
from sizing.engine.workloads import RunModel
from sizing.forms import InputError, InvalidInput, nested_question_from
from sizing.json_input import (
    PREFERENCE_KINDS,
    WORKLOAD_KINDS,
    Body,
    InvalidBody,
    body_problems,
    kind_of,
    kind_problems,
    part,
)
from sizing.matching import recommend

_OBJECTS = extend_schema(request=OpenApiTypes.OBJECT, responses=OpenApiTypes.OBJECT)


class SizingView(APIView):
    """A workload's memory, for one GPU or for a legal split over `gpus`."""

    @_OBJECTS
    def post(self, request: Request) -> Response:
        body = request.data
        errors = body_problems(body, ("workload", "gpus"))
        if not isinstance(body, dict):
            raise InvalidBody(errors)
        question, found = read_question(body, preferences=False)
        gpus, wrong = _gpus(body, question.workload if question else None)
        errors += found + wrong
        if errors or question is None:
            raise InvalidBody(errors)
        return Response(memory_document(question.ai_model, question.workload, gpus))


class RecommendationsView(APIView):
    """Where a workload fits now, cheapest first, and why."""

    @_OBJECTS
    def post(self, request: Request) -> Response:
        body = request.data
        errors = body_problems(body, ("workload", "preferences"))
        if not isinstance(body, dict):
            raise InvalidBody(errors)
        question, found = read_question(body)
        if errors or found or question is None:
            raise InvalidBody(errors + found)
        return Response(answer_document(recommend(question, now=timezone.now())))


def read_question(body: Body, *, preferences: bool = True) -> tuple[Question | None, list[InputError]]:
    """The question in a body by the rules of the pages, or what is wrong, at `workload.context` and the like."""
    workload, errors = part(body, "workload", required=True)
    wished: Body = {}
    if preferences:
        wished, wrong = part(body, "preferences", required=False)
        errors += wrong
    kinds = [
        *_at("workload", kind_problems(workload, WORKLOAD_KINDS)),
        *_at("preferences", kind_problems(wished, PREFERENCE_KINDS)),
    ]
    if any(error.field == "workload" for error in errors):
        return None, errors
    try:
        question = nested_question_from(workload, wished)
    except InvalidInput as found:
        # A value of the wrong kind has its own sentence; what the forms make of it would be a second one.
        named = {error.field for error in kinds}
        return None, errors + kinds + [error for error in found.errors if error.field not in named]
    return (None if errors or kinds else question), errors + kinds


def _at(name: str, errors: list[InputError]) -> list[InputError]:
    return [replace(error, field=f"{name}.{error.field}") for error in errors]


def _gpus(body: Body, workload: RunModel | None) -> tuple[int, list[InputError]]:
    value: Any = body.get("gpus", 1)
    if type(value) is not int:
        return 1, [InputError("gpus", "invalid", f"GPUs must be a whole number, not {kind_of(value)}.")]
    if workload is not None and not is_legal_split(workload.model, value):
        return 1, [InputError("gpus", "illegal_split", explain.illegal_split(workload.model))]
    return value, []
