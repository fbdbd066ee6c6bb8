"""The landing page, the wizard and its answer. The address is the whole state; looking stores and reserves nothing.

`launch` and `launch_result` take a `Frame`, so that an organization can have the same pages inside its own: it makes a
frame with its addresses, its limits and its context, and calls these functions with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import replace_url

from catalog.parameters import without_parameters
from catalog.programs import Call, Program
from sizing.answers import HardLimits
from sizing.asked import asked
from sizing.forms import NAMES, InputError, InvalidInput, OwnModels, question_from, unknown_names
from sizing.matching import recommend
from sizing.own_forms import OwnModelForm
from sizing.own_views import kept_answers
from sizing.permalinks import canonical_query, question_document
from sizing.result import Result
from sizing.wizard import wizard

# A long list is shown in part; this, and no part of the question, asks for all of it.
SHOW_ALL = "show=all"
EXAMPLE = {"task": "run", "model": "llama-3.1-8b", "precision_bits": "16", "context": "4096"}


@dataclass(frozen=True)
class Frame:
    """Where the wizard's pages stand.

    Shape: `base` is the template they extend; `launch_url` and `result_url` are the pages' own addresses, `review_url`
    the one that a Launch button leads to with `?machine=…` and the question; `limits` are hard rules beside the
    question's own, such as a policy; `context` is what else the templates may read (`organization` for its navigation).
    `own_models` can be chosen beside those of the catalog, and are kept at `own_url`; without that page a model of
    one's own is carried in the address. `save_url` keeps a question by POST, where somebody may; `keys_url` is where
    the keys of the API are made that the same answer needs there.
    """

    launch_url: str
    result_url: str
    review_url: str
    base: str = "base.html"
    limits: HardLimits = field(default_factory=HardLimits)
    context: Mapping[str, Any] = field(default_factory=dict)
    own_models: OwnModels = field(default_factory=dict)
    own_url: str = ""
    save_url: str = ""
    keys_url: str = ""

    @property
    def public(self) -> bool:
        return "organization" not in self.context


def public_frame() -> Frame:
    """The pages that anybody may open."""
    return Frame(reverse("launch"), reverse("launch-result"), reverse("order-review-entry"))


@require_safe
@without_parameters
def home(request: HttpRequest) -> HttpResponse:
    """What Berth does, with a worked answer at once."""
    context: dict[str, Any] = {"frame": public_frame()}
    try:
        question = question_from(EXAMPLE)
    except InvalidInput:
        # A catalog without the example's model is still worth a landing page.
        return render(request, "sizing/home.html", context)
    result = Result(recommend(question, now=timezone.now()), context["frame"].review_url)
    return render(request, "sizing/home.html", {**context, "result": result, "query": canonical_query(question)})


@require_safe
def launch(request: HttpRequest, *, frame: Frame | None = None) -> HttpResponse:
    """The wizard; answers that the address already has are filled in and judged only when sent."""
    frame = frame or public_frame()
    question = asked(request.GET, frame.own_models)
    if unknown := unknown_names(question.answers, NAMES):
        return _unknown(request, frame, unknown)
    if question.shown is not None:
        return redirect(f"{frame.launch_url}?{question.applicable.urlencode()}#step-model")
    return _wizard_page(request, frame, question.answers)


def asked_by_script(request: HttpRequest) -> bool:
    """Whether the wizard's script asks, by the attribute that django-htmx's middleware adds."""
    return bool(getattr(request, "htmx", False))


@require_safe
@vary_on_headers("HX-Request")
def launch_result(request: HttpRequest, *, frame: Frame | None = None) -> HttpResponse:
    """The answer to the question in the address; the wizard with its problems when it is none.

    A question in another order, or without its defaults, is sent on to its canonical address. Asked by the wizard's
    script, the answer is one sentence. When the page showed the fields of another task than was chosen on it, it comes
    back with the right ones.
    """
    frame = frame or public_frame()
    page = asked(request.GET, frame.own_models)
    unknown, answers = unknown_names(page.answers, NAMES), page.applicable if page.moved else page.answers
    if page.moved and not unknown and not asked_by_script(request):
        return _wizard_page(request, frame, answers, moved=True)
    try:
        question = question_from(page.answers if unknown else answers, own_models=frame.own_models)
    except InvalidInput as invalid:
        if asked_by_script(request):
            return _sentence(request, frame, answers, invalid.errors[0].detail)
        if invalid.unknown_names:
            return _unknown(request, frame, invalid.unknown_names)
        return _wizard_page(request, frame, answers, judged=True)
    query = canonical_query(question)
    if not asked_by_script(request) and request.META["QUERY_STRING"] not in (query, f"{query}&{SHOW_ALL}"):
        return redirect(f"{frame.result_url}?{query}")
    answer = recommend(question, now=timezone.now(), limits=frame.limits)
    result = Result(answer, frame.review_url, show_all=request.GET.get("show") == "all")
    if asked_by_script(request):
        return _sentence(request, frame, answers, result.sentence)
    return render(
        request,
        "sizing/result.html",
        {
            **frame.context,
            "frame": frame,
            "result": result,
            "query": query,
            "show_all": SHOW_ALL,
            "permalink": request.build_absolute_uri(f"{frame.result_url}?{query}"),
            "program": Program(
                Call(request.build_absolute_uri("/api/v1/recommendations"), question_document(question), "POST"),
                with_key=not frame.public,
            ),
        },
    )


def _wizard_page(
    request: HttpRequest, frame: Frame, answers: QueryDict, *, judged: bool = False, moved: bool = False
) -> HttpResponse:
    context = {
        **frame.context,
        "frame": frame,
        "wizard": wizard(answers, judged=judged, own_models=frame.own_models),
        "own_form": OwnModelForm(form_id="own-model"),
        "own_query": kept_answers(answers).urlencode(),
        "judged": judged,
        "moved": moved,
        "live": None if judged else _live(frame, answers),
        "canonical": request.build_absolute_uri(frame.launch_url),
    }
    return render(request, "sizing/launch.html", context)


def _live(frame: Frame, answers: QueryDict) -> str | None:
    """The live line for answers that are already complete."""
    try:
        question = question_from(answers, own_models=frame.own_models)
        answer = recommend(question, now=timezone.now(), limits=frame.limits)
    except InvalidInput:
        return None
    return Result(answer, frame.review_url).sentence


def _sentence(request: HttpRequest, frame: Frame, answers: QueryDict, sentence: str) -> HttpResponse:
    """The wizard's live line, with what depends on the chosen task and model; the address follows the answers."""
    state = wizard(answers, judged=False, own_models=frame.own_models)
    marker = request.GET.get("fields")
    context = {
        **frame.context,
        "sentence": sentence,
        "wizard": state,
        "frame": frame,
        "swap": state.swap(marker),
        "own_form": OwnModelForm(form_id="own-model") if state.swaps_own_model(marker) else None,
    }
    kept = QueryDict(mutable=True)
    for name, values in answers.lists():
        # No target module at all is an answer, and a wrong one; leaving it out would tick the usual ones again.
        kept.setlist(name, [value for value in values if value or name == "target_modules"])
    return replace_url(render(request, "sizing/_live.html", context), f"{frame.launch_url}?{kept.urlencode()}")


def _unknown(request: HttpRequest, frame: Frame, unknown: Iterable[InputError]) -> HttpResponse:
    context = {**frame.context, "frame": frame, "unknown": unknown, "known": NAMES}
    return render(request, "sizing/unknown_names.html", context, status=400)
