"""A person's own model without an account: read, shown with the origin of each figure, carried on in the address.

Nothing is stored. The answers that the wizard already has stay in the address and go on with the model.
"""

from typing import Any

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from sizing.checkpoints.errors import UnreadableModel
from sizing.forms import NAMES
from sizing.own_forms import OwnModelForm
from sizing.own_shape import OwnShape, check_token
from sizing.task_fields import figure_label

_NOT_KEPT = ("model", "shape")
_LABELS = {
    "intermediate_size": "MLP width",
    "expert_intermediate_size": "Expert width",
    "dtype": "Data type",
    "state_bytes_per_sequence": "State per sequence, in bytes",
}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def launch_own(request: HttpRequest) -> HttpResponse:
    """The form for a model of one's own; sent, what was read from it, with the way on into the wizard."""
    if request.method != "POST":
        return _form_page(request, OwnModelForm())
    form = OwnModelForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            check_token(form.reading.model)
        except UnreadableModel as error:
            form.add_error(None, ValidationError(f"{error}.", error.code))
    if not form.is_valid():
        return _form_page(request, form, status=400)
    model = form.reading.model
    context = {
        **reading_context(model, form.reading.document),
        "use_it": f"{reverse('launch')}?{onward(request.GET, model).urlencode()}#step-model",
        "again": f"{reverse('launch-own')}?{kept_answers(request.GET).urlencode()}",
    }
    return render(request, "sizing/own_model_read.html", context)


def kept_answers(query: QueryDict) -> QueryDict:
    """The wizard's answers in an address, without the model and without empty ones."""
    kept = QueryDict(mutable=True)
    for name in NAMES:
        if name not in _NOT_KEPT and (values := [value for value in query.getlist(name) if value]):
            kept.setlist(name, values)
    return kept


def onward(query: QueryDict, model: OwnShape) -> QueryDict:
    """The address of the wizard with this model and the answers so far, those that do not apply to it left out."""
    answers = kept_answers(query)
    if answers.get("task") not in model.tasks or (answers["task"] == "fine_tune" and model.untrainable_reason):
        answers["task"] = model.tasks[0]
    if model.is_stored and answers["task"] == "run":
        answers.pop("precision_bits", None)
    name, value = model.asked_as
    answers[name] = value
    return answers


def reading_context(model: OwnShape, document: dict[str, Any]) -> dict[str, Any]:
    """What the table of figures shows: each with its value, the fields that it came from and the rule."""
    return {
        "model": model,
        "reading": document,
        "figures": [{**one, "label": _label(one["figure"])} for one in document.get("provenance", [])],
    }


def _label(figure: str) -> str:
    words = figure_label(figure).removeprefix("number of ")
    return _LABELS.get(figure, words[:1].upper() + words[1:])


def _form_page(request: HttpRequest, form: OwnModelForm, *, status: int = 200) -> HttpResponse:
    answers = kept_answers(request.GET).urlencode()
    context = {"form": form, "query": answers, "back": f"{reverse('launch')}?{answers}#step-model"}
    return render(request, "sizing/own_model.html", context, status=status)
