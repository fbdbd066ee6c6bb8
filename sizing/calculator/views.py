"""The calculator's pages. The address is the whole state, and looking stores nothing."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from catalog.programs import Call, Program
from sizing.calculator.addresses import (
    EXAMPLE,
    STAGES_EXAMPLE,
    Pairs,
    chain_pairs,
    chain_request,
    changed,
    envelope_pairs,
    envelope_request,
    stage_pairs,
)
from sizing.calculator.bars import chain_bars, envelope_bar
from sizing.calculator.candidates import candidates
from sizing.calculator.documents import envelope_document, stages_document
from sizing.calculator.forms import (
    EntryForm,
    RowForm,
    Rows,
    StageForm,
    WeightsForm,
    chain_of,
    envelope_question,
    known_names,
    rows_from,
    unknown_in_address,
)
from sizing.calculator.words import FORMATS
from sizing.forms import InputError, InputForm, InvalidInput

WEIGHTS_NAMES = tuple(WeightsForm.base_fields)


def calculator(request: HttpRequest) -> HttpResponse:
    """Weights only and the indicative envelope of the figures in the address."""
    if unknown := unknown_in_address(request.GET, EntryForm, WEIGHTS_NAMES):
        return _unknown(request, unknown, known_names(EntryForm, WEIGHTS_NAMES), "calculator")
    weights = WeightsForm({name: values for name, values in request.GET.lists() if name in WEIGHTS_NAMES})
    rows = rows_from(request.GET, EntryForm)
    try:
        question = envelope_question(weights, rows.filled, rows.errors)
    except InvalidInput as invalid:
        return _form_page(
            request, "sizing/calculator.html", [weights], rows, invalid.errors, {"example": urlencode(EXAMPLE)}
        )
    pairs = envelope_pairs(question)
    if not _is_canonical(request, pairs):
        return redirect(f"{reverse('calculator')}?{urlencode(pairs)}")
    found = candidates(question.envelope.total_bytes, now=timezone.now())
    context = {
        "answer": envelope_document(question, found),
        "bar": envelope_bar(question.envelope),
        "program": _program(request, "/api/v1/calculator", envelope_request(question)),
        "permalink": _absolute(request, "calculator", pairs),
        "format_links": [(label, urlencode(changed(pairs, "bits", str(bits)))) for bits, label in FORMATS.items()],
    }
    return _form_page(request, "sizing/calculator.html", [weights], rows, [], context)


def stages(request: HttpRequest) -> HttpResponse:
    """A chain of stages, everything resident beside step by step."""
    if unknown := unknown_in_address(request.GET, StageForm):
        return _unknown(request, unknown, known_names(StageForm), "calculator-stages")
    rows = rows_from(request.GET, StageForm)
    try:
        chain = chain_of(rows.filled, rows.errors)
    except InvalidInput as invalid:
        example = {"example": urlencode(stage_pairs(STAGES_EXAMPLE))}
        return _form_page(request, "sizing/calculator_stages.html", [], rows, invalid.errors, example)
    pairs = chain_pairs(chain)
    if not _is_canonical(request, pairs):
        return redirect(f"{reverse('calculator-stages')}?{urlencode(pairs)}")
    context = {
        "answer": stages_document(chain),
        "bars": chain_bars(chain),
        "program": _program(request, "/api/v1/calculator/stages", chain_request(chain)),
        "permalink": _absolute(request, "calculator-stages", pairs),
    }
    return _form_page(request, "sizing/calculator_stages.html", [], rows, [], context)


def _is_canonical(request: HttpRequest, pairs: Pairs) -> bool:
    """Whether the address needs no other; one that asks for more rows is left as it is, or they would be gone."""
    return "rows" in request.GET or request.META["QUERY_STRING"] == urlencode(pairs)


def _absolute(request: HttpRequest, name: str, pairs: Pairs) -> str:
    return request.build_absolute_uri(f"{reverse(name)}?{urlencode(pairs)}")


def _program(request: HttpRequest, path: str, body: dict[str, Any]) -> Program:
    return Program(Call(request.build_absolute_uri(path), body, "POST"))


# --- Pages --------------------------------------------------------------------------------------------------------


def _form_page(
    request: HttpRequest,
    template: str,
    forms: list[InputForm],
    rows: Rows,
    errors: Iterable[InputError],
    context: dict[str, Any],
) -> HttpResponse:
    """The form with its answers. They are judged when sent, not on an empty page and not while rows are added."""
    judged = bool(errors) and bool(request.GET) and (("rows" not in request.GET) or bool(rows.problems))
    if not judged:
        for form in (*forms, *rows.forms):
            form.quietly()
    for row in rows.forms:
        if row.is_empty:
            row.quietly()
    problems = _problems(forms, rows, errors) if judged else []
    return render(
        request,
        template,
        {"weights": forms[0] if forms else None, "rows": rows, "judged": judged, "problems": problems, **context},
    )


def _problems(forms: list[InputForm], rows: Rows, errors: Iterable[InputError]) -> list[tuple[str, str]]:
    """Every error as the id that its link leads to and its sentence, the row named in front."""
    found = [(_anchor(form, error.field), error.detail) for form in forms for error in form.input_errors]
    first = rows.forms[0]
    found += [(first[next(iter(first.fields))].auto_id, error.detail) for error in rows.problems]
    for row in rows.filled:
        found += [(_anchor(row, error.field), f"{row.label}: {error.detail}") for error in row.input_errors]
    # What no field has, such as a chain without any stage, is put right in the first row.
    return found or [(first[next(iter(first.fields))].auto_id, error.detail) for error in errors]


def _anchor(form: InputForm | RowForm, name: str) -> str:
    field = form[name]
    radios = field.field.widget.__class__.__name__ == "RadioSelect"
    return f"{field.auto_id}_0" if radios else str(field.auto_id)


def _unknown(request: HttpRequest, unknown: list[InputError], known: list[str], back: str) -> HttpResponse:
    context = {"unknown": unknown, "known": known, "back": reverse(back)}
    return render(request, "sizing/calculator_unknown.html", context, status=400)
