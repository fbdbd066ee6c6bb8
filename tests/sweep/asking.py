"""One request after the other to every address, and what each answer must not have in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus

from django.contrib.auth.models import User
from django.test import Client

from tests.sweep import bodies
from tests.sweep.addresses import Address
from tests.sweep.classes import Access, Row
from tests.sweep.world import WORD, Tenant, World, object_of, version_of

METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "POST")
HTMX = {"HX-Request": "true"}
# After a POST there nobody is signed in any more.
SIGNS_OUT = ("account_logout", "admin:logout")


class Sweep:
    """Asks, and keeps every fault it finds: one run names all of them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.faults: list[str] = []
        self.seen = ""
        self.asked = 0
        self.own: tuple[str, ...] = ()
        self._objects: dict[str, object] = {}

    def client(self, user: User | None) -> Client:
        """Whoever is signed in reads their own name and address: those are no other's rows."""
        client = Client(raise_request_exception=False)
        self.own = ()
        if user is not None:
            client.force_login(user)
            self.own = (user.email, user.username, user.first_name, user.last_name)
        return client

    def path(self, address: Address, tenant: Tenant) -> str:
        model = address.admin_model
        if model and model not in self._objects:
            self._objects[model] = object_of(self.world.theirs, model)
        own = dict.fromkeys(("object_id", "pk", "id"), self._objects.get(model, 1))
        if address.positional > 1:
            own["history_id"] = version_of(model, own["object_id"])
        return address.path(tenant.values | own)

    def ask(
        self, client: Client, method: str, path: str, expected: Iterable[int], *, data: Any = None, query: Any = None,
        headers: dict[str, str] | None = None, shows: bool = False, keep: bool = False,
    ) -> Any:  # fmt: skip
        """Send it; note a status that is not expected and, unless the actor may see them, every foreign row in it."""
        sent: dict[str, Any] = {"headers": headers or {}}
        if query:
            sent["query_params"] = query
        if method == "POST" and isinstance(data, dict):
            response = client.post(path, data, **sent)
        elif method == "POST" and data is not None:
            response = client.post(path, data, content_type="application/json", **sent)
        else:
            response = getattr(client, method.lower())(path, **sent)
        self.asked += 1
        text = text_of(response)
        what = f"{method} {path}{f' {query}' if query else ''}{' (htmx)' if headers == HTMX else ''}"
        if response.status_code not in set(expected):
            self.faults.append(f"{what}: {response.status_code}, expected {sorted(set(expected))}")
        if found := sorted(secret for secret in self.world.secrets if secret in text):
            self.faults.append(f"{what}: shows a secret {found}")
        if not shows and (found := self.foreign(text, path, data, query, headers)):
            self.faults.append(f"{what}: {response.status_code} shows rows of another organization: {found}")
        if keep:
            self.seen += text
        return response

    def foreign(self, text: str, path: str, data: Any, query: Any, headers: Any) -> list[str]:
        """Markers in the answer that are not the question's own words come back."""
        if not any(marker in text for marker in self.world.markers) and WORD not in text.lower():
            return []
        said = {*_said(path, data, {**(query or {}), **(headers or {})}), *filter(None, self.own)}
        for each in sorted(said, key=len, reverse=True):
            text = text.replace(each, "")
        found = sorted(marker for marker in self.world.markers if marker in text)
        return found or ([WORD] if WORD in text.lower() else [])


def text_of(response: Any) -> str:
    """Everything that leaves: headers with their cookies and redirects, and the body."""
    content = b"".join(response.streaming_content) if response.streaming else response.content
    head = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    return f"{head}\n{response.cookies.output()}\n{content.decode(errors='replace')}"


def _said(path: str, data: Any, query: Any) -> Iterator[str]:
    parts = [path, *(query or {}).values()]
    if isinstance(data, dict):
        parts += [value for value in data.values() if isinstance(value, str) and WORD in value]
    elif data is not None:
        parts += [text for text in _leaves(json.loads(data)) if WORD in text]
    for part in parts:
        # An address may be carried inside of an address, and that one inside of another.
        for once in (part, quote(part), quote(part, safe=""), quote_plus(part)):
            yield from (once, escape(once), quote(once), quote(once, safe=""))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)


def expected_of(row: Row, user: User | None) -> set[int]:
    """The statuses that an outsider may get from a page; 405 says that a method exists for nobody."""
    match row.access:
        case Access.PUBLIC:
            return {200, 302, 400, 404, 405}
        case Access.SIGNED_IN:
            return {302, 405} if user is None else {200, 302, 400, 404, 405}
        case Access.TENANT:
            return {302, 405} if user is None else {404, 405}
        case Access.STAFF | Access.STAFF_DOOR:
            if user is None or not user.is_staff:
                return {302, 403}
            return {200, 302, 400, 403, 404, 405} if row.access == Access.STAFF_DOOR else {403, 405}
    raise AssertionError(f"{row.access} is no page")


def decisive_of(row: Row, user: User | None) -> set[int]:
    """What one method at least must answer: otherwise nobody was refused at all."""
    if row.access == Access.TENANT:
        return {302} if user is None else {404}
    if row.access in (Access.STAFF, Access.SIGNED_IN) and user is None:
        return {302}
    if row.access == Access.STAFF and user is not None and user.is_staff:
        return {403}
    return set(range(100, 600))


def walk(
    sweep: Sweep, user: User | None, pages: Iterable[tuple[Address, Row]], methods: tuple[str, ...] = METHODS
) -> None:
    """Every method of every page, with the other tenant's rows in its address, and again as the wizard's script."""
    client = sweep.client(user)
    for address, row in pages:
        path, expected = sweep.path(address, sweep.world.theirs), expected_of(row, user)
        form = bodies.form_of(address.name, sweep.world)
        answers = [
            sweep.ask(client, method, path, expected, data=form if method == "POST" else None) for method in methods
        ]
        for query in bodies.queries_of(address.name):
            answers.append(sweep.ask(client, "GET", path, expected, query=query))
        if row.access not in (Access.STAFF, Access.STAFF_DOOR):
            for method, data in (("GET", None), ("POST", form)):
                answers.append(sweep.ask(client, method, path, expected, data=data, headers=HTMX))
        statuses = {answer.status_code for answer in answers}
        if not statuses & decisive_of(row, user):
            sweep.faults.append(f"{address.name}: no method answered {decisive_of(row, user)}, only {statuses}")
        if row.access == Access.TENANT:
            sweep.faults += [f"{address.name}: {fault}" for answer in answers for fault in faults_of(answer)]
        if address.name in SIGNS_OUT:
            client = sweep.client(user)


def faults_of(answer: Any) -> Iterator[str]:
    """What every answer below an organization has to have, whoever asks."""
    kept = set(answer.headers.get("Cache-Control", "").split(", "))
    if not {"private", "no-store"} <= kept:
        yield f"{answer.status_code} may be kept by a proxy or a browser: Cache-Control is {sorted(kept)}"
    leads = answer.headers.get("Location", "")
    if leads and not answer.wsgi_request.user.is_authenticated and not leads.startswith("/accounts/login/?next="):
        yield f"the anonymous are sent to {leads}"
