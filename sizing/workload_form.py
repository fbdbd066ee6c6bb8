"""What a person wants to do, with which model: the fields of every task, and the workload that they make.

Every field has one name and belongs to one or several tasks. A field of another task is an error that says so, because
leaving it out silently would answer another question than the one that was asked.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from catalog import units
from catalog.models import SLUG
from catalog.quoting import did_you_mean, shown
from catalog.visible import is_plain_line
from sizing.checkpoints.errors import UnreadableModel
from sizing.engine.adapters import TRAINED_PARAMETER_BYTES
from sizing.engine.workloads import (
    ATTENTION_TARGETS,
    MAX_RANK,
    MAX_REQUESTS,
    PRECISIONS_BITS,
    TARGET_WORDS,
    FineTune,
    GenerateImages,
    Notebook,
    RunModel,
    Transcribe,
    Workload,
)
from sizing.fields import (
    AmountField,
    NumberChoiceField,
    TextField,
    WholeNumberField,
    WordField,
    WordsField,
    either,
)
from sizing.inputs import Data, InputForm
from sizing.models import AiModel
from sizing.own_shape import OWN_PREFIX, OwnShape, from_token
from sizing.task_fields import KINDS, RESERVE, TASKS, SizedModel, fields_of, figure_label, wrong_kind

DEFAULT_CONTEXT = 4096
DEFAULT_SEQUENCE_LENGTH = 2048
DEFAULT_RANK = 16
MAX_RESERVE_GIB = Decimal("100000.00")
MAX_STATED = Decimal("100000.00")
MAX_REASON_LENGTH = 200
METHODS = ("lora",)


class MethodField(TextField):
    """How a model is fine-tuned: LoRA alone. Full fine-tuning is refused by name, with what it would take."""

    def clean(self, value: Any) -> str:
        text = super().clean(value)
        if text == "full":
            raise ValidationError(
                "Full fine-tuning is not sized: it needs weight, gradient and both moments of the optimizer for every "
                f"parameter, {TRAINED_PARAMETER_BYTES} bytes each before any activation. Method must be lora.",
                "not_sizable",
            )
        if text not in METHODS:
            qlora = " QLoRA is lora with a precision of 4 bits." if text.lower() == "qlora" else ""
            raise ValidationError(f"Method must be lora; “{shown(text)}” is not.{qlora}", "invalid_choice")
        return text


def _stated(unit: str, example: str) -> AmountField:
    return AmountField(
        label="GPU memory you need",
        unit=unit,
        least=Decimal("0.01"),
        most=MAX_STATED,
        places=2,
        example=example,
        hint="Compared as it is with the memory of one GPU; nothing is added.",
    )


class WorkloadForm(InputForm):
    """What a person wants to do, with which model. When valid, `workload` is set, and `ai_model`, None for a notebook.

    Shape: it has the fields of all tasks. `names` are those that count, which the task decides and, for running a
    model, the model's kind. `own_models` are a caller's own, by the slug that `model` names as `own:<slug>`; `brought`
    is a model given beside the fields, which then name none.
    """

    defaults = {
        "precision_bits": "16",
        "context": str(DEFAULT_CONTEXT),
        "requests": "1",
        "streams": "1",
        "sequence_length": str(DEFAULT_SEQUENCE_LENGTH),
        "batch_size": "1",
        "rank": str(DEFAULT_RANK),
        "target_modules": ATTENTION_TARGETS,
        "method": METHODS[0],
    }
    ai_model: SizedModel | None
    workload: Workload

    task = WordField(label="Task", words=TASKS, required_message="Choose what you want to do.")
    model = TextField(label="Model", error_messages={"required": "Choose a model."})
    shape = TextField(label="Your own model", required=False, hint="The figures of a model that you brought.")
    precision_bits = NumberChoiceField(label="Precision", numbers=PRECISIONS_BITS, unit="bits")
    context = WholeNumberField(
        label="Context", example=DEFAULT_CONTEXT, hint="Tokens per request. Set it to what your requests really use."
    )
    requests = WholeNumberField(
        label="Requests at once",
        most=MAX_REQUESTS,
        example=1,
        why=" (the most that is computed)",
        hint="How many requests run at the same time. Each keeps its own KV cache.",
    )
    streams = WholeNumberField(
        label="Audio streams at once",
        most=MAX_REQUESTS,
        example=1,
        why=" (the most that is computed)",
        hint="How many recordings are transcribed at the same time. Their length does not matter.",
    )
    sequence_length = WholeNumberField(
        label="Sequence length",
        example=DEFAULT_SEQUENCE_LENGTH,
        hint="Tokens of the longest example. Longer ones are cut off by most training scripts.",
    )
    batch_size = WholeNumberField(
        label="Batch size",
        most=MAX_REQUESTS,
        example=1,
        why=" (the most that is computed)",
        hint="Sequences that go through the model together, before gradients are accumulated.",
    )
    rank = WholeNumberField(
        label="LoRA rank",
        most=MAX_RANK,
        example=DEFAULT_RANK,
        why=" (the most that is computed)",
        hint="The width of the adapters.",
    )
    target_modules = WordsField(
        label="Target modules",
        words=TARGET_WORDS,
        hint="Where adapters are put: q, k, v, o are the attention, gate, up, down the MLP.",
    )
    method = MethodField(label="Method", error_messages={"required": "Method is empty: give lora."})
    gpu_memory_gib = _stated("GiB", "24")
    gpu_memory_gb = _stated("GB", "24")
    reserve_gib = AmountField(
        label="Own reserve",
        unit="GiB",
        least=Decimal(0),
        most=MAX_RESERVE_GIB,
        places=2,
        example="2.5",
        hint="Added on each GPU as its own line; no margin is put on it.",
    )
    reserve_reason = TextField(
        label="Reason for the reserve",
        required=False,
        hint="A margin without a reason is no more reliable than none. Printed beside the line.",
        widget=forms.TextInput(attrs={"maxlength": MAX_REASON_LENGTH, "autocomplete": "off"}),
    )

    def __init__(
        self, data: Data, *, own_models: Mapping[str, OwnShape] | None = None, brought: OwnShape | None = None
    ) -> None:
        super().__init__(data)
        # Whether it is empty is not asked: a tenant's own are read from the database when the first is looked up.
        self.own_models, self.brought = {} if own_models is None else own_models, brought
        self._given = {name for name in self.fields if _is_given(data, name)}
        self._absent = {name for name in self.fields if name not in data}
        if brought is not None:
            self._given.add("shape")
        # A model that was brought stands for one that is chosen, so that none need be.
        self.fields["model"].required = "shape" not in self._given

    # --- Single fields ------------------------------------------------------------------------------------------------

    def clean_model(self) -> SizedModel | None:
        slug = self.cleaned_data["model"]
        if "shape" in self._given:
            if slug:
                raise ValidationError("Give a model of the catalog or your own, not both.", "repeated")
            return self._own(self.brought) if self.brought is not None else None
        if slug.startswith(OWN_PREFIX) and (own := self.own_models.get(slug.removeprefix(OWN_PREFIX))):
            return self._own(own)
        model = AiModel.objects.filter(slug=slug).first() if SLUG.match(slug) else None
        if model is None:
            slugs = AiModel.objects.values_list("slug", flat=True)
            raise ValidationError(
                f"“{shown(slug)}” is not a model of the catalog.{did_you_mean(slug, slugs)}", "unknown_model"
            )
        task = self.cleaned_data.get("task")
        if task and task != "notebook" and task not in model.tasks:
            raise ValidationError(wrong_kind(model, task), "wrong_kind")
        if missing := model.missing_figure:
            raise ValidationError(
                f"{model.name} cannot be sized: its {figure_label(missing)} is not published.", "not_sizable"
            )
        if task in model.tasks and (missing := model.missing_for(task)):
            raise ValidationError(
                f"{model.name} cannot be sized for fine-tuning: its {figure_label(missing)} is not published.",
                "not_sizable",
            )
        return model

    def clean_shape(self) -> OwnShape | None:
        token = self.cleaned_data["shape"]
        if not token:
            return None
        if self.brought is not None:
            raise ValidationError("Give your own model once: its files or its shape, not both.", "repeated")
        try:
            model = self._own(from_token(token))
        except UnreadableModel as error:
            raise ValidationError(f"Your own model: {error}.", "unreadable_model") from error
        if not self.has_error("model"):
            self.cleaned_data["model"] = model
        return model

    def _own(self, model: OwnShape) -> OwnShape:
        """The model where the task is for it and it can be sized for that; a refusal that says why else."""
        task = self.cleaned_data.get("task")
        # A shape that is given for another task is told of as any other field is.
        if task and task != "notebook" and task not in model.tasks and "shape" not in self._given:
            raise ValidationError(wrong_kind(model, task), "wrong_kind")
        if task == "fine_tune" and model.untrainable_reason:
            raise ValidationError(
                f"Fine-tuning cannot be sized: {model.untrainable_reason.removesuffix('.')}.", "not_sizable"
            )
        return model

    def clean_reserve_reason(self) -> str:
        reason = self.cleaned_data["reserve_reason"]
        if len(reason) > MAX_REASON_LENGTH:
            raise ValidationError(
                f"The reason for the reserve must be {MAX_REASON_LENGTH} characters or less.", "max_length"
            )
        if reason and not is_plain_line(reason):
            raise ValidationError("The reason for the reserve must be plain text on one line.", "invalid")
        return reason

    # --- Together -----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that count. Without a known task all of those of language-model inference do."""
        task, model = self.cleaned_data.get("task"), self.cleaned_data.get("model")
        if task is None:
            return fields_of("run", AiModel.Kind.LANGUAGE.value)
        return fields_of(task, model.kind if model is not None and task in model.tasks else None)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        self._refuse_fields_of_other_tasks()
        self._check_precision()
        self._check_length("context")
        self._check_length("sequence_length")
        self._check_targets()
        self._check_stated_memory()
        self._check_reserve()
        if not self.errors:
            self._build()
        return cleaned

    def _refuse_fields_of_other_tasks(self) -> None:
        names, task, model = self.names, self.cleaned_data.get("task"), self.cleaned_data.get("model")
        for name in self.fields:
            if name == "task" or name in names:
                continue
            if name in self._errors:
                del self._errors[name]
            self.cleaned_data.pop(name, None)
            if name in self._given and task is not None:
                self.add_error(name, ValidationError(self._not_of_this_task(name, task, model), "other_task"))

    def _check_precision(self) -> None:
        """Stored weights have the precision they have: one that is given would be another question."""
        model = self.cleaned_data.get("model")
        if self.cleaned_data.get("task") != "run" or not isinstance(model, OwnShape) or not model.is_stored:
            return
        if "precision_bits" in self._given:
            text = f"Precision does not apply to {model.name}: its weights are counted as stored. Leave it out."
            self._errors.pop("precision_bits", None)
            self.add_error("precision_bits", ValidationError(text, "as_stored"))
        self.cleaned_data["precision_bits"] = None

    def _not_of_this_task(self, name: str, task: str, model: SizedModel | None) -> str:
        label = self.fields[name].label if name not in ("gpu_memory_gib", "gpu_memory_gb") else f"{name}"
        if model is not None and name in fields_of(task):
            return f"{label} does not apply to {model.name}, {KINDS[model.kind]}: leave it out."
        owners = [f"“{words}”" for code, words in TASKS.items() if name in fields_of(code)]
        return f"{label} belongs to {either(owners)}, not to “{TASKS[task]}”: leave it out."

    def _check_length(self, name: str) -> None:
        model, length = self.cleaned_data.get("model"), self.cleaned_data.get(name)
        if model is None or length is None or model.max_context is None or length <= model.max_context:
            return
        if name in self._absent:
            self.cleaned_data[name] = model.max_context
            return
        label = self.fields[name].label
        stated = "maximum that its files state for" if isinstance(model, OwnShape) else "published maximum of"
        self.add_error(
            name,
            ValidationError(f"{label} must be {model.max_context:,} or less ({stated} {model.name}).", "max_value"),
        )

    def _check_targets(self) -> None:
        model, targets = self.cleaned_data.get("model"), self.cleaned_data.get("target_modules")
        if model is None or not targets:
            return
        if model.missing_for("fine_tune"):
            return
        there = model.trainable_shape().training
        words = there.target_words if there else ()
        if missing := [word for word in targets if word not in words]:
            self.add_error(
                "target_modules",
                ValidationError(
                    f"Target modules: {model.name} has no module for {either(missing, 'and')} that an adapter "
                    f"can be put on; it has {either(words, 'and')}.",
                    "invalid_choice",
                ),
            )

    def _check_stated_memory(self) -> None:
        if self.cleaned_data.get("task") != "notebook":
            return
        given = [name for name in ("gpu_memory_gib", "gpu_memory_gb") if self.cleaned_data.get(name) is not None]
        if any(self.has_error(name) for name in ("gpu_memory_gib", "gpu_memory_gb")):
            return
        if not given:
            error = ValidationError("GPU memory you need is empty: give it in GiB or in GB, such as 24.", "required")
            self.add_error("gpu_memory_gib", error)
        if len(given) > 1:
            error = ValidationError("GPU memory you need must be given once: in GiB or in GB, not in both.", "repeated")
            self.add_error("gpu_memory_gb", error)

    def _check_reserve(self) -> None:
        if self.has_error("reserve_gib") or self.has_error("reserve_reason"):
            return
        reserve, reason = self.cleaned_data.get("reserve_gib"), self.cleaned_data.get("reserve_reason")
        if reserve and not reason:
            self.add_error("reserve_reason", ValidationError("A reserve needs its reason: write one.", "required"))
        if reason and not reserve:
            self.add_error("reserve_gib", ValidationError("Give the reserve in GiB, or empty its reason.", "required"))

    def _build(self) -> None:
        cleaned = self.cleaned_data
        self.ai_model = cleaned.get("model")
        if self.ai_model is None:
            self.workload = _notebook(cleaned)
            return
        reserve = {
            "reserve_bytes": units.gib_to_bytes(cleaned["reserve_gib"] or Decimal(0)),
            "reserve_reason": cleaned["reserve_reason"],
        }
        made = _MADE[cleaned["task"], self.ai_model.kind]
        counts = {name: cleaned[name] for name in self.names if name not in ("model", "shape", "method", *RESERVE)}
        self.workload = made(self.ai_model, **counts, **reserve)


_MADE: dict[tuple[str, str], Callable[..., Workload]] = {
    ("run", AiModel.Kind.LANGUAGE.value): lambda model, **given: RunModel(model.shape(), **given),
    ("run", AiModel.Kind.SPEECH.value): lambda model, **given: Transcribe(model.speech_model(), **given),
    ("fine_tune", AiModel.Kind.LANGUAGE.value): lambda model, **given: FineTune(model.trainable_shape(), **given),
    ("image", AiModel.Kind.IMAGE.value): lambda model, **given: GenerateImages(model.image_pipeline(), **given),
}


def _notebook(cleaned: dict[str, Any]) -> Notebook:
    if (figure := cleaned.get("gpu_memory_gib")) is not None:
        return Notebook(units.gib_to_bytes(figure), f"{figure.normalize():f} GiB")
    figure = cleaned["gpu_memory_gb"]
    return Notebook(units.gb_to_bytes(figure), f"{figure.normalize():f} GB")


def _is_given(data: Data, name: str) -> bool:
    """Whether a value was given that says something: an empty one of another task's field asks for nothing."""
    if name not in data:
        return False
    values = data.getlist(name) if hasattr(data, "getlist") else data[name]
    return any(value not in ("", None) for value in (values if isinstance(values, (list, tuple)) else [values]))


WORKLOAD_NAMES = tuple(WorkloadForm.base_fields)
