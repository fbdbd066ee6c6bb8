"""What the wizard's page offers: models by family, places, contexts, and the answers given so far."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, cast

from django.forms import BoundField
from django.http import QueryDict

from catalog import countries
from catalog.models import Machine
from catalog.wording import EU_LABEL
from sizing.asked import GROUPS, UNITS, group_of, own_model
from sizing.engine.workloads import TARGET_WORDS
from sizing.forms import TASKS, OwnModels, PreferencesForm, WorkloadForm, figure_label
from sizing.models import TASKS_OF_KIND, AiModel
from sizing.own_shape import OwnShape
from sizing.workload_form import SizedModel

CONTEXTS = (4096, 8192, 32_768)
LENGTHS = (2048, 4096, 8192)
_SIZES = {
    "run": "Sizes a language or speech model: weights, cache, margin and runtime.",
    "fine_tune": "Sizes LoRA and QLoRA training on one GPU: base, adapters and activations.",
    "image": "Sizes every network of an image pipeline, for one image at a time.",
    "notebook": "Takes the GPU memory you state, as it is.",
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
    """The line below a chosen model. `contexts` are lengths it can be asked for; `missing` is for the chosen task."""

    model: SizedModel
    missing: str | None
    contexts: tuple[int, ...]


class Problem(NamedTuple):
    """Something wrong with an answer; `anchor` is set where the field's own is not on the page."""

    field: BoundField
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class Wizard:
    """The three steps with the answers given so far. `judged` shows what is wrong with them.

    Shape: `group` names the fields of step two, empty before a task is chosen. `brought` is a model that the address
    carries instead of choosing one.
    """

    workload: WorkloadForm
    preferences: PreferencesForm
    group: str
    tasks: tuple[Choice, ...]
    families: tuple[tuple[str, tuple[Choice, ...]], ...]
    facts: ModelFacts | None
    targets: tuple[Choice, ...]
    eu: Choice
    countries: tuple[Choice, ...]
    eu_members: tuple[str, ...]
    brought: OwnShape | None = None

    @property
    def names_countries(self) -> bool:
        """Whether a single country is chosen: the page then shows them unfolded."""
        return any(country.chosen for country in self.countries)

    @property
    def carries_model(self) -> bool:
        """Whether the address carries a model, readable or not, for a task that takes one."""
        return bool(self.workload.data.get("shape")) and "shape" in GROUPS.get(self.group, ())

    @property
    def has_reserve(self) -> bool:
        return any(self.workload.data.get(name) or name in self.workload.errors for name in _RESERVE)

    @property
    def task(self) -> str:
        return TASKS.get(self.workload.data.get("task") or "", "")

    @property
    def takes_reserve(self) -> bool:
        return "reserve_gib" in GROUPS.get(self.group, ())

    @property
    def contexts(self) -> tuple[int, ...]:
        if self.facts:
            return self.facts.contexts
        return LENGTHS if self.group == "fine_tune" else CONTEXTS

    @property
    def marker(self) -> str:
        """What the fields on the page depend on; it is sent back with them."""
        words = ",".join(choice.value for choice in self.targets)
        return f"{self.group}:{words}" if self.targets else self.group

    def swap(self, marker: str | None) -> str:
        """What of step two a page with `marker` must exchange: "model" (all of it), "task" (below the model) or ""."""
        if marker is None or marker == self.marker:
            return ""
        return "task" if marker and _task_of(marker) == _task_of(self.marker) else "model"

    @property
    def takes_own_model(self) -> bool:
        """Images and notebooks are sized by other figures than a config.json has."""
        return _takes_own_model(self.group)

    def swaps_own_model(self, marker: str | None) -> bool:
        """Whether a page with `marker` offers a model of one's own where it should not, or the other way round."""
        return marker is not None and _takes_own_model(_task_of(marker)) != self.takes_own_model

    @property
    def stated(self) -> tuple[str, tuple[Choice, ...]]:
        """A notebook's figure and its unit."""
        unit = next((unit for unit in reversed(UNITS) if self.workload.data.get(f"gpu_memory_{unit}")), "gib")
        figure = self.workload.data.get(f"gpu_memory_{unit}") or ""
        return figure, tuple(Choice(code, label, chosen=code == unit) for code, label in UNITS.items())

    @property
    def stated_errors(self) -> list[str]:
        return [str(error) for unit in UNITS for error in self.workload[f"gpu_memory_{unit}"].errors]

    @property
    def problems(self) -> list[Problem]:
        """Everything that is wrong, in the order of the page's fields."""
        fields = [*self.workload, *self.preferences]
        return [self._problem(field, str(error)) for field in fields for error in field.errors if self._counts(field)]

    @property
    def strays(self) -> list[str]:
        """What is wrong with answers that the page has no field for."""
        return [problem.text for problem in self.problems if problem.anchor == "step-model"]

    def _problem(self, field: BoundField, text: str) -> Problem:
        if field.name == "task":
            return Problem(field, text, "id_task_0")
        if field.name.startswith("gpu_memory_") and self.group == "notebook":
            return Problem(field, text, "id_gpu_memory")
        if field.form is self.workload and (field.name not in GROUPS.get(self.group, ()) or field.name == "method"):
            return Problem(field, text, "step-model")
        return Problem(field, text)

    def _counts(self, field: BoundField) -> bool:
        """Before a task is chosen nothing that belongs to one is missing."""
        return bool(self.group or field.form is not self.workload or field.name == "task" or field.data)


_RESERVE = ("reserve_gib", "reserve_reason")


def _task_of(marker: str) -> str:
    return marker.partition(":")[0].partition("-")[0]


def _takes_own_model(group: str) -> bool:
    """Before a task is chosen too: bringing a model then chooses to run it."""
    return not group or _task_of(group) in OwnShape.tasks


def wizard(data: Mapping[str, Any], *, judged: bool, own_models: OwnModels | None = None) -> Wizard:
    """The wizard with `data` as its answers, which need not be complete; they are judged only when sent.

    `own_models` are the person's own that can be chosen, beside those of the catalog.
    """
    workload, preferences = WorkloadForm(data, own_models=own_models), PreferencesForm(data)
    own = own_model(data, own_models)
    if not judged:
        workload.quietly()
        preferences.quietly()
    slug, task = workload.data.get("model"), workload.data.get("task") or ""
    models = [model for model in AiModel.objects.all() if task in TASKS_OF_KIND.get(model.kind, ())]
    model: SizedModel | None = own or next((model for model in models if model.slug == slug), None)
    group = group_of(task, model.kind if model else None, stored=own is not None and own.is_stored)
    offered = tuple(own_models.values()) if task in OwnShape.tasks and own_models else ()
    yours = (("Your models", tuple(_model_choice(one, task, slug) for one in offered)),) if offered else ()
    ticked = cast(QueryDict, workload.data).getlist("target_modules")
    chosen = set(cast(QueryDict, preferences.data).getlist("countries"))
    return Wizard(
        workload=workload,
        preferences=preferences,
        group=group,
        tasks=tuple(Choice(code, label, _SIZES[code], code == task) for code, label in TASKS.items()),
        families=yours + _families(models, task, slug),
        facts=model_facts(model, task) if model and task in model.tasks else None,
        targets=_targets(model, ticked) if group == "fine_tune" else (),
        eu=Choice(countries.EU, EU_LABEL, chosen=countries.EU in chosen),
        countries=_countries(chosen),
        eu_members=tuple(name for code, name in countries.names().items() if code in countries.eu_members()),
        brought=own if own is not None and not own.slug else None,
    )


def model_facts(model: SizedModel, task: str) -> ModelFacts:
    """The published figures a person checks a model by, and the lengths that it can be asked for."""
    missing = model.missing_for(task)
    most, usual = model.max_context or 0, LENGTHS if task == "fine_tune" else CONTEXTS
    contexts = tuple(sorted({*(context for context in usual if context < most), most} - {0}))
    return ModelFacts(model, figure_label(missing) if missing else None, contexts)


def _targets(model: SizedModel | None, ticked: Iterable[str]) -> tuple[Choice, ...]:
    """The target modules that the model has; one that is ticked stays, so that it can be unticked."""
    there: set[str] = set(TARGET_WORDS)
    if model is not None and model.missing_for("fine_tune") is None:
        training = model.trainable_shape().training
        there = set(training.target_words) if training else there
    ticked = set(ticked)
    return tuple(Choice(word, word, chosen=word in ticked) for word in TARGET_WORDS if word in there | ticked)


def _families(models: Iterable[AiModel], task: str, chosen: str | None) -> tuple[tuple[str, tuple[Choice, ...]], ...]:
    """Models by family; those for speech together, and last."""

    def family(model: AiModel) -> str:
        return "Speech" if model.kind == AiModel.Kind.SPEECH else model.family

    def order(model: AiModel) -> tuple[bool, str, int, str]:
        return model.kind == AiModel.Kind.SPEECH, family(model).lower(), model.parameters or 0, model.name

    groups = groupby(sorted(models, key=order), key=family)
    return tuple((name, tuple(_model_choice(model, task, chosen) for model in group)) for name, group in groups)


def _model_choice(model: SizedModel, task: str, chosen: str | None) -> Choice:
    missing = model.missing_for(task)
    if missing and isinstance(model, OwnShape):
        label = f"{model.name} · cannot be sized for fine-tuning"
    elif missing:
        purpose = " for fine-tuning" if task == "fine_tune" else ""
        label = f"{model.name} · cannot be sized{purpose}: its {figure_label(missing)} is not published"
    else:
        label = f"{model.name} · {_short(_parameters(model))} parameters · {model.license_text}"
    return Choice(model.slug, label, chosen=model.slug == chosen, disabled=missing is not None)


def _parameters(model: SizedModel) -> int:
    if isinstance(model, OwnShape):
        return model.parameters
    return model.parameters or sum(network["parameters"] for network in model.networks)


def _short(parameters: int) -> str:
    """Parameters as the models' own cards write them, cut after two decimals: 8.03 billion."""
    for unit, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if parameters >= unit:
            whole, rest = divmod(parameters * 100 // unit, 100)
            return f"{whole:,}.{rest:02d} {name}"
    return f"{parameters:,}"


def _countries(chosen: set[str]) -> tuple[Choice, ...]:
    """Every country with a listed machine or already chosen, by name."""
    listed = set(Machine.objects.listed().filter(country__isnull=False).values_list("country", flat=True).distinct())
    names = countries.names()
    return tuple(Choice(code, name, chosen=code in chosen) for code, name in names.items() if code in listed | chosen)
