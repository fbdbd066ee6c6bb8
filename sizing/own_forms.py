"""The form by which a person brings a model: its config.json as text or file, and what says how it is stored."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile

from catalog.visible import is_plain_line
from sizing.checkpoints.errors import UnreadableModel
from sizing.checkpoints.gguf_header import MAGIC
from sizing.own_reading import MOST_FILES, Reading, config_bytes, read_files, weights_bytes
from sizing.own_shape import MAX_NAME

MOST_FORM_FILES = min(300, MOST_FILES)


class FilesInput(forms.ClearableFileInput):
    """Several files in one field: a checkpoint has a header in each of its shards."""

    allow_multiple_selected = True


class FilesField(forms.FileField):
    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:
        files = data if isinstance(data, (list, tuple)) else [data] if data else []
        if len(files) > MOST_FORM_FILES:
            raise ValidationError(
                f"{len(files)} files are more than the {MOST_FORM_FILES} that are read here. "
                "Give the model.safetensors.index.json instead: it lists the tensors of all of them.",
                "max_files",
            )
        return [super(FilesField, self).clean(one, initial) for one in files]


class OwnModelForm(forms.Form):
    """When valid, `reading` is what was read. A refusal names the field of the file, the reason and the fix."""

    reading: Reading

    own_name = forms.CharField(
        label="Name",
        required=False,
        max_length=MAX_NAME,
        help_text="Under which the model is shown. Left empty, it is named after its architecture.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    config_text = forms.CharField(
        label="Text of config.json",
        required=False,
        strip=False,
        help_text="The whole file, from its first brace to its last.",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "autocomplete": "off", "class": "code-area"}),
    )
    config_file = forms.FileField(
        label="or the file config.json",
        required=False,
        allow_empty_file=True,
        widget=forms.FileInput(attrs={"accept": ".json,application/json"}),
    )
    weights = FilesField(
        label="How it is stored",
        required=False,
        allow_empty_file=True,
        help_text=(
            "model.safetensors.index.json, or the safetensors files, or one GGUF file without a config.json. Only the "
            "start of a file is read: its header."
        ),
        widget=FilesInput(attrs={"accept": ".json,.safetensors,.gguf"}),
    )

    def __init__(self, *args: Any, form_id: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.use_required_attribute = False
        if form_id:
            for field in self.fields.values():
                field.widget.attrs["form"] = form_id

    def clean_own_name(self) -> str:
        name = self.cleaned_data["own_name"].strip()
        if name and not is_plain_line(name):
            raise ValidationError("The name must be plain text on one line.", "invalid")
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            self._read(cleaned)
        return cleaned

    def _read(self, cleaned: dict[str, Any]) -> None:
        text, file, weights = cleaned["config_text"].strip(), cleaned["config_file"], cleaned.get("weights", [])
        if text and file is not None:
            self.add_error(
                "config_file", ValidationError("Give config.json as text or as a file, not both.", "repeated")
            )
            return
        where = "config_file" if file is not None else "config_text"
        config = self._try(where, lambda: config_bytes(file.chunks()) if file is not None else text.encode())
        starts = [weights_bytes(one.chunks()) for one in weights]
        alone = any(start[:4] == MAGIC for start in starts)
        if config is None:
            return
        if not config and not alone:
            said = "Paste the text of a config.json, choose the file, or give one GGUF file."
            self.add_error(where, ValidationError(said, "required"))
            return
        # First the configuration by itself, so that a refusal stands at the field that it is about.
        name = cleaned.get("own_name", "")
        reading = self._try(where, lambda: read_files(config, (), name)) if config and not alone else None
        if starts and not self.errors:
            reading = self._try("weights", lambda: read_files(config or None, starts, name))
        if reading is not None:
            self.reading = reading

    def _try(self, field: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except UnreadableModel as error:
            self.add_error(field, ValidationError(f"{error}.", error.code))
        except UnicodeEncodeError:
            self.add_error(field, ValidationError("It has half a character in it: paste the text again.", "invalid"))
        return None
