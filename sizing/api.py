"""The public part of the REST API: what a workload needs, and where it fits. Nothing is stored."""

from dataclasses import replace
from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from catalog.api_schemas import answers
from sizing import explain
from sizing.answers import Question
from sizing.documents import answer_document, memory_document
from sizing.engine.estimate import splits
from sizing.engine.workloads import Workload
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
    told_by,
)
from sizing.matching import recommend
from sizing.own_api import at_config, at_workload, take_brought

_OBJECTS = extend_schema(request=OpenApiTypes.OBJECT, responses=answers(OpenApiTypes.OBJECT, body=True))


class SizingView(APIView):
    """A workload's memory, line by line, for one GPU or for a legal split over `gpus`.

    `workload.task` decides the other fields of `workload`:

    - `run` with a language model: `model`, `precision_bits` (16, 8, 4), `context`, `requests`
    - `run` with a speech recognition model: `model`, `precision_bits`, `streams`
    - `fine_tune`: `model`, `precision_bits`, `sequence_length`, `batch_size`, `rank`, `target_modules`, `method`
    - `image`: `model`
    - `notebook`: `gpu_memory_gib` or `gpu_memory_gb`

    In place of `model`, a language model of your own: `config`, a config.json as an object, with `safetensors_index`
    beside it when the weights are to be counted as stored (`precision_bits` does not apply then) and a `name`; or
    `shape`, which `POST /models/read` gives for it.

    All but `notebook` take `reserve_gib` with `reserve_reason`. Only a language model that is run can be split; the
    other tasks are sized for one GPU.
    """

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
    """Where a workload fits now, cheapest first, and why. `workload` has the fields of the sizing request."""

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
        question = nested_question_from(workload, wished, brought=reading.model if reading else None)
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
