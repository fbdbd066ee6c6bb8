"""A model that a person brought: the figures derived from its files, as data that can be carried and kept.

It stands wherever a model of the catalog does, and has the same rules. Its figures travel in an address (`shape`) or
lie with a tenant; either way they are read back as any input is: strictly, and refused by the name of the figure.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

from sizing.checkpoints.agreement import TOLERANCE_PERCENT
from sizing.checkpoints.errors import UnreadableModel, shown
from sizing.checkpoints.imported import MOST_ELEMENTS, MOST_PARAMETERS, MOST_STATE_BYTES, ImportedModel
from sizing.checkpoints.json_reading import Limits, read_object
from sizing.engine.errors import UnsizableModel
from sizing.engine.shapes import CacheGroup, LanguageModel, Projection, TrainingShape
from sizing.figures import cache_group_problems, cache_groups, projection_problems, projections

MAX_TOKEN = 6000
MAX_NAME = 80
MAX_TEXT = 300
MAX_ENTRIES = 64
MOST_WIDTH = 2**31 - 1
MOST_STORED = 10**15
OWN_PREFIX = "own:"

_DOCUMENT = "shape"
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_READ_AGAIN = "Read the model's files again"
_MOST = {
    "parameters": MOST_PARAMETERS,
    "active_parameters": MOST_PARAMETERS,
    "stored_bytes": MOST_STORED,
    "state_bytes_per_sequence": MOST_STATE_BYTES,
}
_REQUIRED = (
    "name", "architecture", "parameters", "layers", "hidden_size", "attention_heads", "vocab_size", "max_context",
    "cache_groups",
)  # fmt: skip
_TEXTS = {"name": MAX_NAME, "architecture": MAX_NAME, "quantization": MAX_NAME, "cache_note": MAX_TEXT}
_FLAGS = ("accepts_images",)
_LISTS = ("cache_groups", "projections")


@dataclass(frozen=True)
class OwnShape:
    """A language model by its derived figures. It answers what is asked of a model of the catalog (`AiModel`).

    Shape: `slug` is empty, or `own:` and the slug under which a tenant keeps it. `quantization` is how its weights are
    quantized, in words; empty when they are not.
    Units: `stored_bytes` of the whole checkpoint, None where no index or header was given.
    """

    name: str
    architecture: str
    parameters: int
    layers: int
    hidden_size: int
    attention_heads: int
    vocab_size: int
    max_context: int
    cache_groups: tuple[CacheGroup, ...]
    active_parameters: int | None = None
    intermediate_size: int | None = None
    expert_intermediate_size: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    state_bytes_per_sequence: int = 0
    cache_note: str = ""
    accepts_images: bool = False
    projections: tuple[Projection, ...] = ()
    stored_bytes: int | None = None
    quantization: str = ""
    slug: str = ""

    kind: ClassVar[str] = "language"
    tasks: ClassVar[tuple[str, ...]] = ("run", "fine_tune")
    missing_figure: ClassVar[None] = None
    unsizable_reason: ClassVar[str] = ""
    # Nobody has published it here: there is no card, no license and no revision to name.
    license: ClassVar[str] = ""
    source_url: ClassVar[str] = ""
    revision: ClassVar[str] = ""
    sources: ClassVar[tuple[str, ...]] = ()
    read_at: ClassVar[tuple[str, str]] = ("", "")

    @property
    def pk(self) -> str:
        return self.slug

    @property
    def license_text(self) -> str:
        return "your own model"

    @property
    def is_stored(self) -> bool:
        """Whether its weights are counted by the bytes of its checkpoint, so that a precision does not apply."""
        return self.stored_bytes is not None

    def shape(self) -> LanguageModel:
        """The figures for running it."""
        return LanguageModel(
            name=self.name,
            parameters=self.parameters,
            attention_heads=self.attention_heads,
            cache_groups=self.cache_groups,
            max_context=self.max_context,
            split_width=self.expert_intermediate_size or self.intermediate_size,
            state_bytes_per_sequence=self.state_bytes_per_sequence,
            stored_bytes=self.stored_bytes,
            quantized=bool(self.quantization),
        )

    def trainable_shape(self) -> LanguageModel:
        """The figures for fine-tuning it.

        Raises: UnsizableModel saying why it cannot be fine-tuned.
        """
        if reason := self.untrainable_reason:
            raise UnsizableModel(reason, field="quantization" if self.is_stored else "projections")
        training = TrainingShape(self.layers, self.hidden_size, self.vocab_size, self.projections)
        return replace(self.shape(), training=training)

    @property
    def untrainable_reason(self) -> str:
        """Why it cannot be fine-tuned, in words; empty when it can."""
        if self.is_stored and self.quantization:
            return (
                f"{self.name} is quantized ({self.quantization}), and what a trainer makes of such a checkpoint is not "
                "known: bring the config.json of the unquantized model to fine-tune it."
            )
        if self.state_bytes_per_sequence:
            return f"{self.name} has linear-attention or state-space layers, whose activations are not known."
        if not self.projections:
            return f"{self.name} has no list of projections that an adapter could be put on."
        return ""

    def missing_for(self, task: str) -> str | None:
        """The name of the figure for want of which it cannot be sized for `task`, or None."""
        if task not in self.tasks:
            return "kind"
        if task == "fine_tune" and self.untrainable_reason:
            return "quantization" if self.is_stored and self.quantization else "projections"
        return None

    # --- As data ------------------------------------------------------------------------------------------------------

    @cached_property
    def figures(self) -> dict[str, Any]:
        """The figures as JSON has them, in a fixed order, without those that say nothing. `read_figures` reads them."""
        found: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "slug" and value not in (None, "", (), False, 0):
                found[field.name] = [_entry(one) for one in value] if isinstance(value, tuple) else value
        return found

    @cached_property
    def token(self) -> str:
        """The figures as one word for an address; see `from_token`."""
        text = json.dumps(self.figures, separators=(",", ":"), ensure_ascii=False)
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    @property
    def asked_as(self) -> tuple[str, str]:
        """The input that names it, and its value: `model` with the tenant's slug, or `shape` with all figures."""
        return ("model", self.slug) if self.slug else ("shape", self.token)


def _entry(value: CacheGroup | Projection) -> dict[str, Any]:
    found = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Projection):
        found["serves"] = list(value.serves)
    return {name: one for name, one in found.items() if one is not None}


def from_imported(model: ImportedModel, name: str = "") -> OwnShape:
    """The figures of what was read from a model's files, under a name that the person gave or its architecture's.

    Raises: UnreadableModel when they are beyond what an input may be.
    """
    quantization = model.quantization
    words = ""
    if quantization is not None:
        words = quantization.method + (f", {quantization.bits} bits" if quantization.bits else "")
    figures = {
        "name": name or f"Your {model.architecture}",
        "architecture": model.architecture,
        "parameters": model.parameters,
        "layers": model.layers,
        "hidden_size": model.hidden_size,
        "attention_heads": model.attention_heads,
        "vocab_size": model.vocab_size,
        "max_context": model.max_context,
        "cache_groups": [_entry(group) for group in model.cache_groups],
        "active_parameters": model.active_parameters,
        "intermediate_size": model.intermediate_size,
        "expert_intermediate_size": model.expert_intermediate_size,
        "kv_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "state_bytes_per_sequence": model.state_bytes_per_sequence,
        "cache_note": model.cache_note[:MAX_TEXT],
        "accepts_images": model.accepts_images,
        "projections": [] if model.training is None else [_entry(one) for one in model.projections],
        "stored_bytes": model.stored_bytes,
        "quantization": words[:MAX_NAME].strip(),
    }
    return read_figures({key: value for key, value in figures.items() if value not in (None, "", [], False, 0)})


def from_token(token: str) -> OwnShape:
    """The model in an address.

    Raises: UnreadableModel naming `shape` or the figure in it.
    """
    if len(token) > MAX_TOKEN:
        raise UnreadableModel(_DOCUMENT, f"it is longer than {MAX_TOKEN:,} characters", _READ_AGAIN)
    if not _TOKEN.fullmatch(token):
        raise UnreadableModel(_DOCUMENT, "it is not the figures of a model as this site writes them", _READ_AGAIN)
    try:
        data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (binascii.Error, ValueError):
        raise UnreadableModel(_DOCUMENT, "a part of it is missing", "Copy the whole address") from None
    return read_figures(read_object(data, _DOCUMENT, Limits(bytes=MAX_TOKEN, tokens=MAX_TOKEN)))


def check_token(model: OwnShape) -> None:
    """Refuse a model with too many figures for an address.

    Raises: UnreadableModel.
    """
    if len(model.token) > MAX_TOKEN:
        raise UnreadableModel(
            _DOCUMENT,
            f"the figures take {len(model.token):,} characters, an address carries {MAX_TOKEN:,}",
            "Sign in and keep the model with your organization, or ask over the API",
        )


# --- Read back ----------------------------------------------------------------------------------------------------


def read_figures(written: Mapping[str, Any], slug: str = "") -> OwnShape:
    """The model of figures as `OwnShape.figures` has them.

    Raises: UnreadableModel naming the figure.
    """
    known = {field.name for field in fields(OwnShape)} - {"slug"}
    for name in written:
        if name not in known:
            raise UnreadableModel(name, "it is not a figure of a model", _READ_AGAIN)
    for name in _REQUIRED:
        if name not in written:
            raise UnreadableModel(name, "it is missing", _READ_AGAIN)
    values = {name: _value(name, value) for name, value in written.items()}
    layers = sum(group.layers for group in values["cache_groups"])
    if layers > values["layers"]:
        raise UnreadableModel("cache_groups", f"they have {layers:,} layers, the model fewer", _READ_AGAIN)
    model = OwnShape(**values, slug=slug)
    _check_stored(model)
    try:
        model.shape()
    except UnsizableModel as error:
        raise UnreadableModel(error.field, shown(str(error)), _READ_AGAIN) from None
    return model


def _check_stored(model: OwnShape) -> None:
    """An address says no type of the weights: 8 bits are the least that a checkpoint without quantization has."""
    least = model.parameters * (1 if model.quantization else 8) // 8
    if model.stored_bytes is not None and model.stored_bytes * 100 < least * (100 - TOLERANCE_PERCENT):
        raise UnreadableModel(
            "stored_bytes",
            f"{model.stored_bytes:,} bytes are too few for {model.parameters:,} parameters: they take {least:,}",
            _READ_AGAIN,
        )


def _value(name: str, value: Any) -> Any:
    if name in _TEXTS:
        if not isinstance(value, str) or not 0 < len(value) <= _TEXTS[name] or not _is_plain(value):
            raise UnreadableModel(name, f"it must be a text of 1 to {_TEXTS[name]} characters on one line", _READ_AGAIN)
        return value
    if name in _FLAGS:
        if value is not True:
            raise UnreadableModel(name, "it must be true, or left out", _READ_AGAIN)
        return value
    if name in _LISTS:
        return _entries(name, value)
    most = _MOST.get(name, MOST_WIDTH)
    if type(value) is not int or not 1 <= value <= most:
        raise UnreadableModel(name, f"it must be a whole number of 1 to {most:,}", _READ_AGAIN)
    return value


def _entries(name: str, value: Any) -> tuple[Any, ...]:
    problems: Callable[[object], list[str]] = cache_group_problems
    read: Callable[[object], tuple[Any, ...]] = cache_groups
    if name == "projections":
        problems, read = projection_problems, projections
    if not isinstance(value, list) or not 0 < len(value) <= MAX_ENTRIES:
        raise UnreadableModel(name, f"it must be a list of 1 to {MAX_ENTRIES} entries", _READ_AGAIN)
    if found := problems(value):
        raise UnreadableModel(name, shown(found[0].rstrip("."), longest=200), _READ_AGAIN)
    numbers = (number for entry in value for number in entry.values() if isinstance(number, int))
    if any(number > MOST_ELEMENTS for number in numbers):
        raise UnreadableModel(name, f"its numbers must be {MOST_ELEMENTS:,} or less", _READ_AGAIN)
    return read(value)


def _is_plain(text: str) -> bool:
    """One line of whole characters that can be shown and stored anywhere."""
    return text.isprintable() and text == text.strip()
