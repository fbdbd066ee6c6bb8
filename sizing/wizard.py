"""What the wizard's page offers: models by family, places, contexts, and the answers given so far."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

from django.http import QueryDict

from catalog import countries
from catalog.models import Machine
from sizing.forms import TASKS, PreferencesForm, WorkloadForm, figure_label
from sizing.models import AiModel

CONTEXTS = (4096, 8192, 32_768)
_SIZES = {
    "run": "Sizes inference: weights, KV cache, margin and runtime.",
    "fine_tune": "Coming. Will size LoRA and QLoRA training on one GPU.",
    "image": "Coming. Will size every network of an image pipeline.",
    "notebook": "Coming. Will take the GPU memory you state, as it is.",
}


@dataclass(frozen=True)
class Choice:
    """One radio, box or option."""

    value: str
    label: str
    text: str = ""
    chosen: bool = False
    disabled: bool = False


@dataclass(frozen=True)
class ModelFacts:
    """The line below a chosen model."""

    model: AiModel
    missing: str | None
    contexts: tuple[int, ...]


@dataclass(frozen=True)
class Wizard:
    """The three steps with the answers given so far. `judged` shows what is wrong with them."""

    workload: WorkloadForm
    preferences: PreferencesForm
    tasks: tuple[Choice, ...]
    families: tuple[tuple[str, tuple[Choice, ...]], ...]
    facts: ModelFacts | None
    places: tuple[Choice, ...]
    eu_members: tuple[str, ...]

    @property
    def forms(self) -> tuple[WorkloadForm, PreferencesForm]:
        return self.workload, self.preferences

    @property
    def has_reserve(self) -> bool:
        return any(self.workload.data.get(name) or name in self.workload.errors for name in _RESERVE)

    @property
    def contexts(self) -> tuple[int, ...]:
        return self.facts.contexts if self.facts else CONTEXTS


_RESERVE = ("reserve_gib", "reserve_reason")


def wizard(data: Mapping[str, Any], *, judged: bool) -> Wizard:
    """The wizard with `data` as its answers, which need not be complete; they are judged only when sent."""
    workload, preferences = WorkloadForm(data), PreferencesForm(data)
    if not judged:
        workload.quietly()
        preferences.quietly()
    # The page has no fields for other kinds of models yet.
    models = list(AiModel.objects.filter(kind=AiModel.Kind.LANGUAGE))
    slug, task = workload.data.get("model"), workload.data.get("task")
    return Wizard(
        workload=workload,
        preferences=preferences,
        tasks=tuple(Choice(code, label, _SIZES[code], code == task) for code, label in TASKS.items()),
        families=_families(models, slug),
        facts=next((model_facts(model) for model in models if model.slug == slug), None),
        places=_places(set(cast(QueryDict, preferences.data).getlist("countries"))),
        eu_members=tuple(name for code, name in countries.names().items() if code in countries.eu_members()),
    )


def model_facts(model: AiModel) -> ModelFacts:
    """The published figures a person checks a model by, and the contexts that it can be asked for."""
    missing = model.missing_figure
    most = model.max_context or 0
    contexts = tuple(sorted({*(context for context in CONTEXTS if context < most), most} - {0}))
    return ModelFacts(model, figure_label(missing) if missing else None, contexts)


def _families(models: Iterable[AiModel], chosen: str | None) -> tuple[tuple[str, tuple[Choice, ...]], ...]:
    ordered = sorted(models, key=lambda model: (model.family.lower(), model.parameters or 0, model.name))
    groups = groupby(ordered, key=lambda model: model.family)
    return tuple((family, tuple(_model_choice(model, chosen) for model in group)) for family, group in groups)


def _model_choice(model: AiModel, chosen: str | None) -> Choice:
    missing = model.missing_figure
    if missing:
        label = f"{model.name} · cannot be sized: its {figure_label(missing)} is not published"
    else:
        label = f"{model.name} · {_short(model.parameters or 0)} parameters · {model.license or 'license not stated'}"
    return Choice(model.slug, label, chosen=model.slug == chosen, disabled=missing is not None)


def _short(parameters: int) -> str:
    """Parameters as the models' own cards write them, cut after two decimals: 8.03 billion."""
    for unit, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if parameters >= unit:
            whole, rest = divmod(parameters * 100 // unit, 100)
            return f"{whole:,}.{rest:02d} {name}"
    return f"{parameters:,}"


def _places(chosen: set[str]) -> tuple[Choice, ...]:
    """`EU`, then every country with a listed machine or already chosen, by name."""
    listed = set(Machine.objects.listed().filter(country__isnull=False).values_list("country", flat=True).distinct())
    names = countries.names()
    eu = Choice(countries.EU, "EU (27 countries)", chosen=countries.EU in chosen)
    return eu, *(Choice(code, name, chosen=code in chosen) for code, name in names.items() if code in listed | chosen)
