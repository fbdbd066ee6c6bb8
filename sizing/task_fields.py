"""Which fields each task has, with which kind of model, and what tasks, kinds and figures are called."""

from sizing.fields import either
from sizing.models import MISSING_FIGURES, TASKS_OF_KIND, AiModel
from sizing.own_shape import OwnShape

SizedModel = AiModel | OwnShape

TASKS = {
    "run": "Run a model",
    "fine_tune": "Fine-tune a model",
    "image": "Generate images",
    "notebook": "Open a notebook",
}
KINDS = {
    AiModel.Kind.LANGUAGE.value: "a language model",
    AiModel.Kind.IMAGE.value: "an image pipeline",
    AiModel.Kind.SPEECH.value: "a speech recognition model",
}
RESERVE = ("reserve_gib", "reserve_reason")
# The fields of each task with each kind of model, beside `task`.
FIELDS = {
    ("run", AiModel.Kind.LANGUAGE.value): ("model", "shape", "precision_bits", "context", "requests", *RESERVE),
    ("run", AiModel.Kind.SPEECH.value): ("model", "precision_bits", "streams", *RESERVE),
    ("fine_tune", AiModel.Kind.LANGUAGE.value): (
        "model", "shape", "precision_bits", "sequence_length", "batch_size", "rank", "target_modules", "method",
        *RESERVE,
    ),
    ("image", AiModel.Kind.IMAGE.value): ("model", *RESERVE),
    ("notebook", None): ("gpu_memory_gib", "gpu_memory_gb"),
}  # fmt: skip
_FIGURES = {
    **MISSING_FIGURES,
    "kv_heads": "number of KV heads",
    "head_dim": "head dimension",
    "elements_per_token": "cache size per token",
    "window": "attention window",
    "split_width": "MLP width",
    "state_bytes_per_sequence": "state per sequence",
}


def fields_of(task: str, kind: str | None = None) -> tuple[str, ...]:
    """The fields of a task beside `task` itself, with models of one kind, or of any when `kind` is None."""
    sets = [names for (one, its_kind), names in FIELDS.items() if one == task and kind in (None, its_kind)]
    return tuple(dict.fromkeys(name for names in sets for name in names))


def wrong_kind(model: SizedModel, task: str) -> str:
    wanted = [words for kind, words in KINDS.items() if task in TASKS_OF_KIND[kind]]
    kind = KINDS.get(model.kind, "of a kind that is not sized")
    return f"{model.name} is {kind}; “{TASKS[task]}” needs {either(wanted)}."


def figure_label(field: str) -> str:
    """The name of a model's figure in words."""
    return _FIGURES.get(field, field.replace("_", " "))
