"""What the wizard's page sends, as the names of a question.

The page has a few names of its own, which no address of an answer has: `fields` says which fields it showed, and a
notebook's memory is one figure with its unit. Fields that the page showed for another task or kind of model than the
one now chosen were not answered on purpose: only then are they left out, and the page shows the right ones.
"""

from dataclasses import dataclass
from functools import cached_property

from django.http import QueryDict

from catalog.models import SLUG
from sizing.forms import PREFERENCE_NAMES, TASKS
from sizing.models import TASKS_OF_KIND, AiModel
from sizing.workload_form import FIELDS

UNITS = {"gib": "GiB", "gb": "GB"}
SPEECH = "run-speech"
_PAGE_NAMES = ("fields", "show", "gpu_memory", "gpu_memory_unit")


def group_of(task: str | None, kind: str | None) -> str:
    """The group of fields that a task has with a kind of model; empty without a task."""
    if task not in TASKS:
        return ""
    return SPEECH if task == "run" and kind == AiModel.Kind.SPEECH else str(task)


GROUPS = {group_of(task, kind): names for (task, kind), names in FIELDS.items()}


@dataclass(frozen=True)
class Asked:
    """Answers by the names of a question, and `shown`: which fields the page had, None when no page asked."""

    answers: QueryDict
    shown: str | None

    @cached_property
    def kind(self) -> str | None:
        """The kind of the chosen model; None when there is no such model."""
        slug = self.answers.get("model", "")
        return AiModel.objects.filter(slug=slug).values_list("kind", flat=True).first() if SLUG.match(slug) else None

    @property
    def group(self) -> str:
        return group_of(self.answers.get("task"), self.kind)

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


def asked(query: QueryDict) -> Asked:
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
    return Asked(answers, shown)
