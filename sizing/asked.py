"""What the wizard's page sends, as the names of a question.

The page has a few names of its own, which no address of an answer has: `fields` says which fields it showed, and a
notebook's memory is one figure with its unit. Fields that the page showed for another task or kind of model than the
one now chosen were not answered on purpose: only then are they left out, and the page shows the right ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import QueryDict

from catalog.models import SLUG
from sizing.checkpoints.errors import UnreadableModel
from sizing.forms import PREFERENCE_NAMES, TASKS, OwnModels
from sizing.models import TASKS_OF_KIND, AiModel
from sizing.own_shape import OWN_PREFIX, OwnShape, from_token
from sizing.task_fields import FIELDS

UNITS = {"gib": "GiB", "gb": "GB"}
SPEECH = "run-speech"
STORED = "run-stored"
_PAGE_NAMES = ("fields", "show", "gpu_memory", "gpu_memory_unit")


def group_of(task: str | None, kind: str | None, *, stored: bool = False) -> str:
    """The group of fields that a task has with a kind of model; empty without a task. Weights that are `stored` have
    no precision to choose."""
    if task not in TASKS:
        return ""
    if task == "run" and stored:
        return STORED
    return SPEECH if task == "run" and kind == AiModel.Kind.SPEECH else str(task)


GROUPS = {group_of(task, kind): names for (task, kind), names in FIELDS.items()}
GROUPS[STORED] = tuple(name for name in GROUPS["run"] if name != "precision_bits")


@dataclass(frozen=True)
class Asked:
    """Answers by the names of a question, and `shown`: which fields the page had, None when no page asked.

    Shape: `own` is the person's own model that the answers name, None when they name none or none that can be read.
    """

    answers: QueryDict
    shown: str | None
    own: OwnShape | None = None

    @cached_property
    def kind(self) -> str | None:
        """The kind of the chosen model; None when there is no such model."""
        if self.own is not None:
            return self.own.kind
        slug = self.answers.get("model", "")
        return AiModel.objects.filter(slug=slug).values_list("kind", flat=True).first() if SLUG.match(slug) else None

    @property
    def group(self) -> str:
        return group_of(self.answers.get("task"), self.kind, stored=self.own is not None and self.own.is_stored)

    @property
    def moved(self) -> bool:
        """Whether the page showed the fields of another task or kind of model than is chosen now."""
        return self.shown is not None and self.group != "" and self.shown.partition(":")[0] != self.group

    @property
    def applicable(self) -> QueryDict:
        """The answers that say something for the chosen task, without empty ones."""
        task, kept = self.answers.get("task"), QueryDict(mutable=True)
        for name in ("task", *GROUPS.get(self.group, ()), *PREFERENCE_NAMES):
            values = [value for value in self.answers.getlist(name) if value]
            if name == "model" and self.kind is not None and task not in TASKS_OF_KIND.get(self.kind, ()):
                values = []
            if values:
                kept.setlist(name, values)
        return kept


def asked(query: QueryDict, own_models: OwnModels | None = None) -> Asked:
    """What the query of an address asks, whether the page or a person wrote it."""
    answers = QueryDict(mutable=True)
    for name, values in query.lists():
        if name not in _PAGE_NAMES:
            answers.setlist(name, values)
    shown = query.get("fields")
    if (figure := query.get("gpu_memory")) is not None:
        # An unknown unit makes an unknown name, which is refused by that name.
        answers.appendlist(f"gpu_memory_{query.get('gpu_memory_unit', '')}", figure)
    if "target_modules" in answers:
        written = ",".join(answers.getlist("target_modules")).split(",")
        answers.setlist("target_modules", [word.strip() for word in written])
    elif shown is not None and shown.startswith("fine_tune:"):
        # Boxes that are all unticked send nothing, which is not the same as never having been asked.
        answers.setlist("target_modules", [""])
    return Asked(answers, shown, own_model(answers, own_models))


def own_model(answers: Mapping[str, Any], own_models: OwnModels | None) -> OwnShape | None:
    """The person's own model that answers name: one of `own_models`, or one that they carry."""
    slug, token = answers.get("model") or "", answers.get("shape") or ""
    if slug.startswith(OWN_PREFIX):
        return (own_models or {}).get(slug.removeprefix(OWN_PREFIX))
    try:
        return from_token(token) if token else None
    except UnreadableModel:
        return None
