"""Bootstrap's classes for Django's form fields. Used through `_shared/_field.html`; no form needs to know of them."""

import uuid
from collections.abc import Iterable

from django import forms, template
from django.forms.boundfield import BoundField, BoundWidget
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# The field in which a form carries its own key, and is recognised when it comes twice.
FORM_KEY = "form_key"


@register.filter
def kind(field: BoundField) -> str:
    """Which shape a field is drawn in: hidden, check (one box), choices (radios or boxes), or input."""
    widget = field.field.widget
    if widget.is_hidden:
        return "hidden"
    if isinstance(widget, forms.CheckboxInput):
        return "check"
    if isinstance(widget, forms.RadioSelect | forms.CheckboxSelectMultiple):
        return "choices"
    return "input"


@register.filter
def control(field: BoundField, option: str = "") -> SafeString:
    """The field's control alone. `{{ field|control:"bare" }}` drops its placeholder, where the label says the same."""
    widget = field.field.widget
    if isinstance(widget, forms.CheckboxInput):
        css = "form-check-input"
    elif isinstance(widget, forms.Select):
        css = "form-select"
    else:
        css = "form-control"
    classes = [css, widget.attrs.get("class", ""), "is-invalid" if field.errors else ""]
    attrs: dict[str, str | bool] = {"class": " ".join(filter(None, classes))}
    if option == "bare":
        attrs["placeholder"] = False
    return field.as_widget(attrs=attrs)


@register.filter
def options(field: BoundField) -> Iterable[BoundWidget]:
    """The radios or boxes of a field, one by one, ready for `{{ option.tag }}`."""
    for option in field.subwidgets:
        option.data["attrs"]["class"] = "form-check-input"
        yield option


@register.simple_tag
def problems_of(form: object, more: Iterable[tuple[str, str]] | None = None) -> list[tuple[str, str]]:
    """Everything wrong with a form, each once, as (where, sentence); a label goes before what does not begin with it.

    `more` are such pairs of what is no field of the form.
    """
    if not isinstance(form, forms.BaseForm):
        return list(more or ())
    found = [("", str(error)) for error in form.non_field_errors()]
    for field in form:
        for error in map(str, field.errors):
            label = str(field.label)
            plain = field.is_hidden or isinstance(field.field.widget, forms.CheckboxInput)
            named = plain or error.lower().startswith(label.lower())
            found.append(("" if field.is_hidden else anchor(field), error if named else f"{label}: {error}"))
    return list({sentence: (where, sentence) for where, sentence in [*(more or ()), *found]}.values())


@register.filter
def anchor(field: BoundField) -> str:
    """The id an error summary links to: the control, or the first of several."""
    if isinstance(field.field.widget, forms.RadioSelect | forms.CheckboxSelectMultiple):
        return f"{field.auto_id}_0"
    return field.id_for_label or field.auto_id


@register.simple_tag
def form_key() -> SafeString:
    """A key for one form as it is shown now: whoever acts on the form acts once for each key."""
    return format_html('<input type="hidden" name="{}" value="{}">', FORM_KEY, uuid.uuid4())
