"""A model of one's own over the API: a config.json in the body, in place of the name of a model."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.api_queries import refuse_parameters
from catalog.api_schemas import answers
from catalog.api_view import ApiView
from catalog.links import page_url
from catalog.visible import is_plain_line
from sizing.api_schemas import OwnFiles, ReadModel
from sizing.checkpoints.errors import UnreadableModel
from sizing.checkpoints.json_reading import CONFIG, INDEX
from sizing.forms import InputError
from sizing.json_input import Body, InvalidBody, body_problems, kind_of
from sizing.own_reading import Brought, GivenFigures, Reading, read_files
from sizing.own_shape import MAX_NAME, MAX_TOKEN, read_figures

FILES = {"config": CONFIG, "safetensors_index": INDEX}
OWN_NAMES = (*FILES, "name")


class ReadModelView(ApiView):
    """The figures of a model of your own, each with the fields of its files that it came from. Nothing is stored.

    `config` is a config.json as an object, `safetensors_index` the object of a model.safetensors.index.json, whose
    total then counts as the weights; `name` is what the model is called. `shape` in the answer can stand in place of
    `model` in a workload; so can `config` itself. It is null for the few models with more figures than it may hold.
    """

    @extend_schema(operation_id="read_model", request=OwnFiles, responses=answers(ReadModel, body=True))
    def post(self, request: Request) -> Response:
        refuse_parameters(request)
        reading = read_own(request.data, OWN_NAMES)
        token = reading.model.token
        shape = token if len(token) <= MAX_TOKEN else None
        page = f"{page_url('launch')}?{urlencode({'task': 'run', 'shape': shape})}" if shape else page_url("launch-own")
        return Response(
            {
                "name": reading.model.name,
                "figures": reading.model.figures,
                **reading.document,
                "shape": shape,
                "html_url": page,
            }
        )


def read_own(body: object, known: Iterable[str]) -> Reading:
    """The model in a body that is about nothing else. Raises: InvalidBody."""
    errors = body_problems(body, known)
    if not isinstance(body, dict):
        raise InvalidBody(errors)
    reading, found = read_brought(body)
    if reading is None and not found:
        found.append(InputError("config", "required", "Give the object “config”: the config.json of a model."))
    if errors or reading is None:
        raise InvalidBody(errors + found)
    return reading


def read_own_or_figures(body: object) -> Brought:
    """The same, or `figures` as they were read or kept before. Raises: InvalidBody."""
    known = (*OWN_NAMES, "figures")
    if not isinstance(body, dict) or body.get("figures") is None:
        return read_own(body, known)
    errors = body_problems(body, known)
    said = "“figures” are the whole model: give them or “config”, not both."
    errors += [InputError(name, "repeated", said) for name in OWN_NAMES if body.get(name) is not None]
    model = None
    if isinstance(body["figures"], dict):
        try:
            model = read_figures(body["figures"])
        except UnreadableModel as error:
            errors.append(InputError(f"figures.{error.field}", error.code, f"{error.field}: {error.reason}."))
    else:
        errors.append(InputError("figures", "invalid", f"“figures” must be an object, not {kind_of(body['figures'])}."))
    if errors or model is None:
        raise InvalidBody(errors)
    return GivenFigures(model)


def take_brought(workload: Body) -> tuple[Body, Reading | None, list[InputError]]:
    """A workload without the files of a brought model, and what was read from these."""
    reading, errors = read_brought(workload)
    return {name: value for name, value in workload.items() if name not in OWN_NAMES}, reading, errors


def read_brought(body: Body) -> tuple[Reading | None, list[InputError]]:
    """The model in `config` and `safetensors_index`, or what is wrong with them; nothing when neither is given."""
    errors = [
        InputError(name, "invalid", f"“{name}” must be an object, the content of a {file}, not {kind_of(body[name])}.")
        for name, file in FILES.items()
        if body.get(name) is not None and not isinstance(body[name], dict)
    ]
    config, index, name = body.get("config"), body.get("safetensors_index"), body.get("name")
    if config is None and (index is not None or name is not None):
        given = "safetensors_index" if index is not None else "name"
        errors.append(InputError(given, "invalid", f"“{given}” belongs to “config”: give the config.json too."))
    if name is not None and not _is_name(name):
        errors.append(
            InputError("name", "invalid", f"“name” must be a text of 1 to {MAX_NAME} characters on one line.")
        )
    if errors or config is None:
        return None, errors
    words = str(name or "")
    reading, errors = _try("config", CONFIG, lambda: read_files(_text(config), (), words))
    if index is not None and not errors:
        reading, errors = _try("safetensors_index", INDEX, lambda: read_files(_text(config), (_text(index),), words))
    return reading, errors


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and len(name) <= MAX_NAME and is_plain_line(name) and name == name.strip()


def _try(where: str, document: str, read: Callable[[], Reading]) -> tuple[Reading | None, list[InputError]]:
    try:
        return read(), []
    except UnreadableModel as error:
        field = where if error.field == document else f"{where}.{error.field}"
        return None, [InputError(field, error.code, f"{error}.")]


def _text(value: Any) -> str:
    """The object as the text of a file, so that the rules for files hold here too."""
    return json.dumps(value)


def at_workload(errors: list[InputError]) -> list[InputError]:
    return [replace(error, field=f"workload.{error.field}") for error in errors]


def at_config(errors: Iterable[InputError]) -> list[InputError]:
    """Errors about a model that `config` brought stand there, whatever field a page would have for it."""
    about = {"workload.shape", "workload.model"}
    return [
        replace(error, field="workload.config") if error.field in about and error.code != "repeated" else error
        for error in errors
    ]
