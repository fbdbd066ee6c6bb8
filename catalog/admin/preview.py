"""Forms of the administration that show what would be saved, before it is: a button of the form, no script needed."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict


def computed_from(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What a method of the admin shows follows from these fields of the form; from all of them when none is named.

    While one of them is wrong, its row still has the value that was saved: what follows from that is not shown.
    """

    def decorated(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def shown(self: Any, row: Any) -> Any:
            wrong = [label for name, label in getattr(row, "wrong_fields", {}).items() if not names or name in names]
            if wrong:
                return f"Not shown until this is corrected: {', '.join(wrong)}."
            return method(self, row)

        return shown

    return decorated


class PreviewsForm(admin.ModelAdmin):
    """The button `_preview` renders the form again as it was sent; what is computed from its fields is shown anew.

    The form is bound, so its mistakes are told, and read-only fields that are methods of the admin are given its
    unsaved instance. Nothing is saved.
    """

    change_form_template = "admin/preview_change_form.html"
    # Name and label of each button that previews, and the parts of the page that a script may renew while one types.
    preview_buttons: tuple[tuple[str, str], ...] = (("_preview", "Preview"),)
    previewed_parts: tuple[str, ...] = ()

    def previewed(self, request: HttpRequest, button: str, data: QueryDict) -> None:
        """Change `data`, a copy of what was sent, as the button says."""

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        pressed = [name for name, _ in self.preview_buttons if name in request.POST]
        if request.method == "POST" and pressed:
            if not (self.has_change_permission(request) if object_id else self.has_add_permission(request)):
                raise PermissionDenied
            data = request.POST.copy()
            self.previewed(request, pressed[0], data)
            request.previewed_data = data  # type: ignore[attr-defined]
            # Shown as by GET, so that Django's own view cannot come to save it; the token was checked before.
            request.method = "GET"
            messages.info(request, "A preview: nothing is saved yet.")
        context = {
            "preview_buttons": self.preview_buttons,
            "previewed_parts": ",".join(f".field-{name} .readonly" for name in self.previewed_parts),
            **(extra_context or {}),
        }
        return super().changeform_view(request, object_id, form_url, context)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        data: QueryDict | None = getattr(request, "previewed_data", None)
        if data is None:
            return form

        class Bound(form):  # type: ignore[misc, valid-type]  # a class that Django has just made
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(data, *args, **options)

        return Bound

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        # The instance takes the fields' values while the form is checked; what is shown of it must come after.
        form = context["adminform"].form
        form.instance.wrong_fields = {
            name: form.fields[name].label or name if name in form.fields else "what is said at the top"
            for name in form.errors
        }
        return super().render_change_form(request, context, *args, **kwargs)
