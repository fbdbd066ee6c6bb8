"""Staff put a brought model into the catalog: its derived figures, with a source, and their origin in its history."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction

from catalog.models import slug_validator
from catalog.web_addresses import WebAddressField
from sizing.models import AiModel
from sizing.own_forms import OwnModelForm
from sizing.own_shape import OwnShape

_COPIED = (
    "parameters", "active_parameters", "layers", "hidden_size", "intermediate_size", "expert_intermediate_size",
    "attention_heads", "kv_heads", "head_dim", "vocab_size", "max_context", "state_bytes_per_sequence", "cache_note",
    "accepts_images",
)  # fmt: skip


class PublishForm(forms.Form):
    """What the catalog says of a model beside its figures. A source is needed, and a revision or why there is none."""

    slug = forms.CharField(
        max_length=64, validators=[slug_validator], help_text="Its id in addresses and the API, such as llama-3.1-8b."
    )
    name = forms.CharField(max_length=120)
    family = forms.CharField(max_length=60)
    license = forms.CharField(max_length=160, required=False, help_text="As published.")
    source_url = WebAddressField(label="Source", max_length=300, help_text="Where the configuration is published.")
    revision = forms.CharField(
        max_length=80, required=False, help_text="The commit of the configuration, or its date and digest."
    )
    not_published = forms.CharField(
        label="Why not",
        max_length=200,
        required=False,
        help_text="The reason why a license or a revision is not given. Only without one of them.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        missing = [name for name in ("license", "revision") if not cleaned.get(name)]
        if missing and not cleaned.get("not_published"):
            for name in missing:
                self.add_error(name, ValidationError(f"Give the {name}, or the reason why there is none.", "required"))
        elif not missing and cleaned.get("not_published"):
            said = "License and revision are given: leave the reason why not empty."
            self.add_error("not_published", ValidationError(said, "invalid"))
        return cleaned

    def publish(self, model: OwnShape, reading: Mapping[str, Any]) -> AiModel | None:
        """The model in the catalog; None when the catalog refuses it, which is then told at the form's fields."""
        try:
            return publish(model, reading, **{name: self.cleaned_data[name] for name in PublishForm.base_fields})
        except ValidationError as error:
            for field, sentences in error.message_dict.items():
                self.add_error(field if field in self.fields else None, sentences)
            return None


class ImportForm(OwnModelForm, PublishForm):
    """A config.json, and what the catalog says of its model."""

    field_order = ("config_text", "config_file", *PublishForm.base_fields)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Files of weights are one checkpoint; the catalog has the model, at every precision.
        del self.fields["weights"], self.fields["own_name"]


def publish(
    model: OwnShape,
    reading: Mapping[str, Any],
    *,
    slug: str,
    name: str,
    family: str,
    license: str,
    source_url: str,
    revision: str,
    not_published: str,
) -> AiModel:
    """A new model of the catalog. What a checkpoint stores is not part of it.

    Raises: ValidationError by field, when the catalog has the slug or the name already.
    """
    row = AiModel(
        slug=slug,
        name=name,
        family=family,
        kind=AiModel.Kind.LANGUAGE,
        license=license,
        source_url=source_url,
        revision=revision,
        not_published=not_published,
        sources=[source_url],
        cache_groups=[{"kv_heads": None, "window": None} | group for group in model.figures["cache_groups"]],
        projections=model.figures.get("projections", []),
        **{field: getattr(model, field) for field in _COPIED},
    )
    row._change_reason = origin(reading)  # type: ignore[attr-defined]  # read by the history
    with transaction.atomic():
        row.full_clean()
        row.save()
    return row


def origin(reading: Mapping[str, Any]) -> str:
    """Where each figure came from, one line each."""
    lines = [f"Imported: {reading.get('architecture', '')}."]
    for one in reading.get("provenance", []):
        lines.append(f"{one['figure']} = {one['value']} from {', '.join(one['fields'])}: {one['rule']}")
    return "\n".join(lines)
