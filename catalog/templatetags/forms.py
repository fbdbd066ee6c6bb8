"""Bootstrap's classes for Django's form fields. Used through `_shared/_field.html`; no form needs to know of them."""

from collections.abc import Iterable

from django import forms, template
from django.forms.boundfield import BoundField, BoundWidget
from django.utils.safestring import SafeString

register = template.Library()


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


@register.filter
def anchor(field: BoundField) -> str:
    """The id an error summary links to: the control, or the first of several."""
    if isinstance(field.field.widget, forms.RadioSelect | forms.CheckboxSelectMultiple):
        return f"{field.auto_id}_0"
    return field.id_for_label or field.auto_id
