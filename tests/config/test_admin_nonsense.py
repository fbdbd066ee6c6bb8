"""Whatever staff send to the administration, it answers in words: every model registered, every kind of nonsense.

The list of models is the site's own: one that is registered tomorrow is asked tomorrow.
"""

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tests.factories import make_gpu, make_user
from tests.sweep import world as worlds
from tests.sweep.world import object_of

NUL, HUGE = "\0", str(10**30)
LONG = "x" * 10_000
JSON = ("[" * 20_000, "[" * 500 + "]" * 500, '["\\ud800"]', "[1e400]", "9" * 5_000, '["\\u0000"]', "{}", NUL)
IDS = ("abc", "%00", HUGE, "-1", "²", "_FF", "%ED%A0%80", "1" * 3_000, "1.0")
# Parameters that Django reads in every list, and lookups of fields: of a wrong type, unknown, forbidden.
PARAMETERS = (
    "o", "p", "e", "all", "_facets", "_popup", "_to_field", "_changelist_filters", "id__exact", "id__in", "id__range",
    "id__isnull", "id__regex", "id__date", "no_such", "__",
)  # fmt: skip
COUNTS = (("abc", "abc"), ("1", HUGE), ("-1", "-1"), ("5", "5"), ("", ""), (NUL, NUL), ("40", "0"))
STRANGE = ("id__in=%00", "q=%00", f"q={LONG}", f"q={'x%20' * 2_000}", "q=%22", "o=1.-1.999.x&p=2", "e=1&q=%00")
PAGES = (
    "r/abc/abc/", f"r/{HUGE}/1/", "jsi18n/?x=%00", "abc/", "%00/", "catalog/", "catalog/machine/export.abc",
    "catalog/machine/export.csv?q=%00", f"catalog/machine/export.json?provider={HUGE}", "password_change/?x=%00",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Asking:
    """A superuser of the staff who sends nonsense; a fault for each answer that is none."""

    def __init__(self, world: Any) -> None:
        self.world, self.faults, self.asked = world, list[str](), 0
        self.rows = {name: object_of(world.theirs, name) for name, _ in registered()}
        self.client = Client(raise_request_exception=False)
        self.client.force_login(world.people["staff"])

    def get(self, path: str, query: str = "") -> Any:
        return self._seen(f"GET {path[:200]}?{query[:80]}", self.client.get(f"{path}?{query}" if query else path))

    def post(self, path: str, data: dict[str, Any]) -> Any:
        shown = {name: str(value)[:40] for name, value in list(data.items())[:6]}
        return self._seen(f"POST {path[:200]} {shown}", self.client.post(path, data))

    def _seen(self, what: str, response: Any) -> Any:
        self.asked += 1
        # Nobody reads what is said, and each request would carry all of it on.
        self.client.cookies.pop("messages", None)
        if response.status_code not in (200, 302, 400, 403, 404, 405):
            said = response.exc_info[1] if getattr(response, "exc_info", None) else ""
            self.faults.append(f"{what}: {response.status_code} {said!r:.200}")
        elif response.status_code != 302 and not response.streaming and not words_of(response):
            self.faults.append(f"{what}: {response.status_code} without a word")
        return response

    def forms(self) -> Iterator[tuple[str, Any, str, Any]]:
        """Every form of a row that staff may send: a new one's and that of a row that is there."""
        for name, _ in registered():
            for path in (reverse(f"admin:{name}_add"), reverse(f"admin:{name}_change", args=[self.object_of(name)])):
                page = self.client.get(path)
                if page.status_code == 200 and page.context and "adminform" in page.context:
                    yield path, page, name, sent_by(page)

    def object_of(self, name: str) -> Any:
        """The row that was there when everything was made: one may be deleted or renamed by what is asked."""
        return self.rows[name]


def words_of(response: Any) -> str:
    return re.sub(r"<[^>]*>|\s", "", response.content.decode(errors="replace"))


def registered() -> Iterator[tuple[str, Any]]:
    for model, model_admin in admin.site._registry.items():
        yield f"{model._meta.app_label}_{model._meta.model_name}", model_admin


def sent_by(page: Any) -> dict[str, Any]:
    """What the form of a page sends when nothing is changed."""
    there = [page.context["adminform"].form]
    for inline in page.context["inline_admin_formsets"]:
        there += [inline.formset.management_form, *inline.formset.forms]
    values = {field.html_name: field.value() for form in there for field in form}
    sent = {name: value for name, value in values.items() if value is not None and value is not False}
    return {name: "on" if value is True else value for name, value in sent.items()}


@pytest.fixture
def asking(db: None) -> Iterator[Asking]:
    asking = Asking(worlds.build())
    yield asking
    assert asking.asked > 30
    assert not asking.faults, "\n".join([f"{len(asking.faults)} faults:", *asking.faults])


@pytest.mark.system
def test_lists_that_are_asked_for_nonsense(asking: Asking) -> None:
    for name, model_admin in registered():
        path = reverse(f"admin:{name}_changelist")
        own = [one if isinstance(one, str) else getattr(one, "parameter_name", "") for one in model_admin.list_filter]
        if model_admin.date_hierarchy:
            own += [f"{model_admin.date_hierarchy}__{part}" for part in ("year", "month", "day", "gte")]
        for parameter in (*PARAMETERS, *own):
            for word in ("abc", HUGE):
                asking.get(path, f"{parameter}={word}")
        asking.get(path, "&".join(f"{parameter}=%00" for parameter in own))
        for query in STRANGE:
            asking.get(path, query)


@pytest.mark.system
def test_actions_on_rows_that_are_none(asking: Asking) -> None:
    for name, model_admin in registered():
        path, request = reverse(f"admin:{name}_changelist"), asking.client.get("/admin/").wsgi_request
        actions = [*model_admin.get_actions(request), "no_such", NUL, ""]
        for action in actions:
            for chosen in ("abc", NUL, HUGE, "-1", LONG, ["1"] * 200, []):
                asking.post(path, {"action": action, "_selected_action": chosen, "reason": "x"})
        for more in ({"index": "x"}, {"index": HUGE}, {"select_across": "x"}, {"_save": "1"}, {"reason": LONG + NUL}):
            asking.post(path, {"action": actions[0], "_selected_action": "abc", **more})
        asking.post(path, {})


@pytest.mark.system
def test_pages_of_rows_that_are_none(asking: Asking) -> None:
    for name, _ in registered():
        there = reverse(f"admin:{name}_changelist")
        for one in IDS:
            for page in ("change/", "history/", "delete/", "password/", "", f"history/{one}/"):
                asking.get(f"{there}{one}/{page}")
            asking.post(f"{there}{one}/change/", {"name": "x"})
            asking.post(f"{there}{one}/delete/", {"post": "yes"})
        asking.get(f"{there}{asking.object_of(name)}/history/abc/")
        asking.get(f"{there}{asking.object_of(name)}/history/{HUGE}/")


@pytest.mark.system
def test_forms_with_nonsense_in_each_field(asking: Asking) -> None:
    for path, page, _, sent in asking.forms():
        fields = page.context["adminform"].form.fields
        for word in (NUL, HUGE, LONG, "1e400", ""):
            asking.post(path, sent | dict.fromkeys(fields, word))
        for field, kind in fields.items():
            for word in JSON if isinstance(kind, forms.JSONField) else ():
                asking.post(path, sent | {field: word})
            if "_preview" in page.content.decode():
                asking.post(path, sent | {field: JSON[0], "_preview": "on"})


@pytest.mark.system
def test_forms_whose_inner_rows_were_tampered_with(asking: Asking) -> None:
    for path, page, _, sent in asking.forms():
        for inline in page.context["inline_admin_formsets"]:
            prefix = inline.formset.prefix
            for total, initial in COUNTS:
                asking.post(path, sent | {f"{prefix}-TOTAL_FORMS": total, f"{prefix}-INITIAL_FORMS": initial})
            asking.post(path, {name: value for name, value in sent.items() if not name.startswith(prefix)})
            for column in inline.formset.empty_form.fields:
                for word in ("abc", NUL, HUGE):
                    for initial in ("1", "0"):
                        counted = {f"{prefix}-TOTAL_FORMS": "1", f"{prefix}-INITIAL_FORMS": initial}
                        asking.post(path, sent | counted | {f"{prefix}-0-{column}": word})


def test_fields_that_complete_what_one_types(asking: Asking) -> None:
    path = reverse("admin:autocomplete")
    for _, model_admin in registered():
        model = model_admin.model._meta
        for field in model.get_fields():
            asking.get(path, f"app_label={model.app_label}&model_name={model.model_name}&field_name={field.name}")
    for field in ("provider", "gpu"):
        for term in ("%00", HUGE, LONG, "x%20" * 2_000, "&page=abc", f"&page={HUGE}", "&page=-1"):
            asking.get(path, f"app_label=catalog&model_name=machine&field_name={field}&term={term}")
    for query in (
        "",
        "app_label=%00&model_name=%00&field_name=%00",
        "app_label=catalog&model_name=machine&field_name=x",
    ):
        asking.get(path, query)


def test_pages_of_their_own(asking: Asking) -> None:
    for page in PAGES:
        asking.get(f"/admin/{page}")
    for table in ("machine", "gpu", "gpualias", "placealias"):
        for data in ({"key": NUL}, {"key": HUGE}, {"file": "x", "reason": NUL}, {"key": LONG}):
            asking.post(f"/admin/catalog/{table}/import/", data)
    for number in ("1", HUGE):
        for act in ("refresh", "accept"):
            asking.post(f"/admin/catalog/provider/{number}/{act}/", {"reason": NUL})
            asking.post(f"/admin/catalog/provider/{number}/{act}/", {"reason": LONG})
        asking.post(f"/admin/rentals/ownmodel/{number}/publish/", {"slug": NUL, "name": NUL, "revision": LONG})
    for name in ("feedquestion", "machine", "option"):
        asking.post(f"/admin/catalog/{name}/{asking.object_of(f'catalog_{name}')}/change/", {"reason": NUL, "gpu": NUL})
    asking.post("/admin/rentals/order/add/", {"organization": NUL, "machine": NUL, "lots": HUGE, "place": "1"})
    for pk in (asking.object_of("rentals_allocation"), HUGE):
        asking.post(f"/admin/rentals/allocation/{pk}/change/", {"host": NUL, "port": HUGE, "login": NUL, "notes": NUL})


def test_what_is_sent_without_its_token_is_refused(asking: Asking) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(asking.world.people["staff"])
    for name, _ in registered():
        for page in (
            reverse(f"admin:{name}_changelist"),
            reverse(f"admin:{name}_change", args=[asking.object_of(name)]),
        ):
            response = strict.post(page, {"action": "delete_selected", "_selected_action": "1", "name": NUL})
            asking.asked += 1
            assert response.status_code == 403, page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("page", "data", "said"),
    [
        ("?id__in=abc", None, "What the address asks for in “id__in” is nothing that a row can have"),
        (f"?provider={HUGE}", None, "0 machines"),
        (f"?q={'x%20' * 30}", None, "Search for at most 20 words"),
        ("?no_such=1", None, "“no_such” is nothing that a row can have"),
        ("", {"action": "mark_off_line", "_selected_action": "abc"}, "“abc” names no row of this list"),
        ("", {"action": "mark_off_line", "_selected_action": HUGE}, "names no row of this list"),
        ("", {"action": "no_such", "_selected_action": "1"}, "No action selected"),
        ("abc/change/", None, "doesn’t exist"),
        ("abc/history/", None, "doesn’t exist"),
        ("1/history/abc/", None, "doesn’t exist"),
    ],
)
def test_what_was_wrong_is_said(page: str, data: Any, said: str) -> None:
    client = Client()
    client.force_login(make_user(is_staff=True, is_superuser=True))
    url = f"/admin/catalog/machine/{page}"
    response = client.get(url, follow=True) if data is None else client.post(url, data, follow=True)
    assert said in response.content.decode()


@pytest.mark.django_db
def test_a_spelling_that_is_there_already_is_an_error_in_its_row() -> None:
    """Whoever opened the page earlier sends a new row that has come to be meanwhile."""
    client, gpu = Client(), make_gpu()
    client.force_login(make_user(is_staff=True, is_superuser=True))
    page = client.get(url := f"/admin/catalog/gpu/{gpu.pk}/change/")
    sent = sent_by(page) | {"aliases-0-name": "GeForce", "aliases-0-change_reason": "Its datasheet"}
    assert client.post(url, sent).status_code == 302
    response = client.post(url, sent)
    assert response.status_code == 200
    assert "already exists" in response.content.decode()
