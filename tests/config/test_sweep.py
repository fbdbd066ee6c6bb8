"""Two tenants, everybody who might look, every address and method: no row of the other one in any answer.

The walk reads the URL resolver. A new address fails it until tests/sweep/classes.py says who may open it; a new table
of tenants fails it until tests/sweep/world.py has a row of it. On PostgreSQL the tenants' part is walked once more with
the scoping of the code switched off, so that row-level security alone must hold.
"""

import json
import logging
import re
import uuid

import pytest
from django.db import connection
from django.db.models import QuerySet

from rentals.querysets import MembershipQuerySet, OrganizationQuerySet, TenantQuerySet
from rentals.row_security import tenant_models
from tests.sweep import bodies
from tests.sweep import world as worlds
from tests.sweep.addresses import all_addresses
from tests.sweep.asking import HTMX, METHODS, Sweep, faults_of, walk
from tests.sweep.classes import ADMIN_MODELS, TABLE, Access, addresses, row_of

PAGES = (Access.TENANT, Access.SIGNED_IN, Access.PUBLIC)
ADMINISTRATION = (Access.STAFF, Access.STAFF_DOOR)
OUTSIDERS = ("owner of another organization", "user without organization", "removed member", "staff")
ANONYMOUS = "anonymous"
LOOKING_AROUND = (ANONYMOUS, "owner of another organization", "removed member")
both_ways = pytest.mark.parametrize("scoping", ["scoped", pytest.param("unscoped", marks=pytest.mark.postgres)])


@pytest.fixture(autouse=True)
def _quiet():
    """A line of log for each of thousands of refusals takes longer than the refusal."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def world(db):
    return worlds.build()


@pytest.fixture
def sweep(world, request, monkeypatch):
    """Checks when the test is over that nothing of the other tenant was shown or changed."""
    sweep = Sweep(world)
    before = worlds.digests(world.theirs.organization)
    if getattr(request.node, "callspec", None) and request.node.callspec.params.get("scoping") == "unscoped":
        switch_scoping_off(monkeypatch)
    yield sweep
    monkeypatch.undo()
    after = worlds.digests(world.theirs.organization)
    changed = sorted(row for row in before.keys() | after.keys() if before.get(row) != after.get(row))
    assert sweep.asked
    assert not sweep.faults, "\n".join([f"{len(sweep.faults)} faults:", *sweep.faults])
    assert not changed, f"rows of the other organization were made, changed or deleted: {changed}"


def switch_scoping_off(monkeypatch):
    """No query of a tenant's table starts from its organization any more, however the code says so."""
    monkeypatch.setattr(TenantQuerySet, "for_organization", lambda rows, organization: rows.all())
    monkeypatch.setattr(MembershipQuerySet, "of_person", lambda rows, user: rows.select_related("organization"))
    monkeypatch.setattr(OrganizationQuerySet, "of_member", lambda rows, user: rows.all())

    def unscoped(rows, *args, **kwargs):
        kept = {name: value for name, value in kwargs.items() if name not in ("organization", "organization_id")}
        return QuerySet.filter(rows, *args, **kept)

    monkeypatch.setattr(TenantQuerySet, "filter", unscoped)


# --- Nothing is left out ---------------------------------------------------------------------------------------------


def test_every_address_has_its_class():
    missing = [f"{address.name}  ({address.route})" for address in all_addresses() if row_of(address) is None]
    assert not missing, (
        "Say who may open these, in TABLE of tests/sweep/classes.py (a new model of the administration: in "
        "ADMIN_MODELS; an address of a tenant that does something: TENANT_ACT or API_ACT, with a body in "
        "tests/sweep/bodies.py):\n" + "\n".join(missing)
    )


def test_no_class_is_left_of_an_address_that_is_gone():
    names, models = {address.name for address in all_addresses()}, {each.admin_model for each in all_addresses()}
    assert not set(TABLE) - names
    assert not set(ADMIN_MODELS) - models


def test_every_table_of_tenants_has_a_row_of_both(world):
    assert {model._meta.label for model in tenant_models()} <= set(worlds.rows_of(world.theirs.organization))
    for tenant in (world.ours, world.theirs):
        empty = [label for label, rows in worlds.rows_of(tenant.organization).items() if not rows]
        assert not empty, f"Make a row of {empty} in tests/sweep/world.py, with the tenant's word in its texts."


# --- Pages -----------------------------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("actor", [ANONYMOUS, *OUTSIDERS])
def test_to_an_outsider_the_organization_does_not_exist(sweep, scoping, actor):
    """B155: another organization's pages are 404 or the sign-in, and no other page tells of its rows."""
    person = sweep.world.people.get(actor)
    # What everybody may open is opened by those who might find most there.
    around = actor in LOOKING_AROUND and (scoping == "scoped" or actor == "owner of another organization")
    walk(sweep, person, addresses(*(PAGES if around else [Access.TENANT])))


@both_ways
def test_another_organizations_id_under_ones_own_address_does_not_exist(sweep, scoping):
    """B150 and B152: the same answer as for an id that nobody has."""
    ours, theirs = sweep.world.ours.values, sweep.world.theirs.values
    client = sweep.client(sweep.world.ours.owner)
    # A month is nobody's, and a lot's number is one of its order's.
    nobodys = dict.fromkeys(theirs, 999999) | {"order_id": uuid.uuid4(), "event_id": uuid.uuid4()}
    nobodys["model_slug"] = "nobodys"
    found = 0
    for address, _ in addresses(Access.TENANT):
        ids = [name for name in address.parameters if name not in ("organization", "month", "number")]
        if not ids:
            continue
        form, found = bodies.form_of(address.name, sweep.world), found + 1
        answers = []
        for values in (theirs, nobodys):
            path = address.path({**ours, **{name: values[name] for name in ids}})
            answers.append([
                sweep.ask(client, method, path, {404, 405}, data=form if method == "POST" else None).status_code
                for method in METHODS
            ])  # fmt: skip
        if answers[0] != answers[1] or 404 not in answers[0]:
            sweep.faults.append(f"{address.name}: {answers[0]} for another's id, {answers[1]} for nobody's")
        if len(ids) > 1:
            # Below a row of one's own neither.
            for name in ids:
                path = address.path(ours | {name: theirs[name]})
                for method in ("GET", "POST"):
                    sweep.ask(client, method, path, {404, 405}, data=form if method == "POST" else None)
    assert found > 10


@both_ways
def test_pages_of_ones_own_organization_show_nothing_of_another(sweep, scoping):
    client, ours = sweep.client(sweep.world.ours.owner), sweep.world.ours
    rows = list(addresses(Access.TENANT))
    for address, _ in rows:
        path = sweep.path(address, ours)
        asked = [{"headers": HTMX}, *({"query": query} for query in bodies.queries_of(address.name))]
        for method in METHODS[:-1]:
            sweep.faults += faults_of(sweep.ask(client, method, path, {200, 302, 405}))
        for how in asked:
            sweep.ask(client, "GET", path, {200, 302, 400, 405}, **how)
    for address, _ in rows:
        form = bodies.form_of(address.name, sweep.world)
        sweep.ask(client, "POST", sweep.path(address, ours), {200, 302, 400, 403, 404, 405, 409}, data=form)


def test_the_sweep_finds_rows_where_neither_lock_holds(world, monkeypatch):
    """With the scoping off, SQLite has nothing left; on PostgreSQL the policies are what is left."""
    sweep = Sweep(world)
    client = sweep.client(world.ours.owner)
    switch_scoping_off(monkeypatch)
    for address, _ in addresses(Access.TENANT):
        sweep.ask(client, "GET", sweep.path(address, world.ours), {200, 302, 404, 500})
    shown = {fault.partition(":")[0] for fault in sweep.faults}
    assert (len(shown) > 10) == (connection.vendor != "postgresql"), shown


def test_a_viewer_looks_at_the_organization_and_changes_nothing(sweep):
    world = sweep.world
    client = sweep.client(world.theirs.viewer)
    # Those who may order see how a lot is reached, those who manage see keys and who is invited.
    for address, _ in addresses(Access.TENANT):
        path = sweep.path(address, world.theirs)
        sweep.ask(client, "GET", path, {200, 302, 403}, shows=True, keep=True)
        form = bodies.owner_form(address.name, world, world.theirs)
        sweep.ask(client, "POST", path, {200, 302, 400, 403, 404, 405}, data=form, shows=True, keep=True)
    assert world.theirs.organization.name in sweep.seen
    for hidden in (
        "gpu.quillmere.example", "quillmere-login", "door of", "invited@quillmere.example", "both quillmere",
        "hooks.quillmere.example", "quillmere@laptop",
    ):  # fmt: skip
        assert hidden not in sweep.seen


def test_a_member_sees_what_outsiders_were_refused(world):
    """The sweep would pass on a console without pages: here the same addresses answer, with the markers."""
    sweep = Sweep(world)
    client = sweep.client(world.theirs.owner)
    for address, _ in addresses(Access.TENANT):
        path = sweep.path(address, world.theirs)
        sweep.ask(client, "GET", path, {200, 302}, shows=True, keep=True)
        # The sign-in leads by GET to where a POST was refused: there is never a blank page.
        response = client.get(path, follow=True)
        assert response.status_code == 200, path
        assert response.content or response.streaming, path
    assert not sweep.faults, sweep.faults
    seen = [marker for marker in world.markers if marker in sweep.seen]
    for marker in ("Quillmere Laboratories", str(world.theirs.order.pk), "gpu.quillmere.example", "12,318.95",
                   "both quillmere", "quillmere@laptop", "invited@quillmere.example", "Secret of quillmere",
                   "member@quillmere.example", "notes-quillmere"):  # fmt: skip
        assert marker in seen


@pytest.mark.parametrize("name", [address.name for address, row in addresses(Access.TENANT) if row.acts])
def test_what_the_sweep_sends_does_something_for_an_owner(world, name):
    sweep, mine = Sweep(world), world.theirs
    address = next(each for each in all_addresses() if each.name == name)
    client, path = sweep.client(mine.owner), sweep.path(address, mine)
    if name == "allocation-start":
        client.post(path.replace("/start/", "/stop/"))
    before = worlds.digests(mine.organization)
    sweep.ask(client, "POST", path, {200, 302}, data=bodies.owner_form(name, world, mine), shows=True)
    assert not [fault for fault in sweep.faults if "secret" not in fault], sweep.faults
    assert worlds.digests(mine.organization) != before, f"say in tests/sweep/bodies.py what makes {name} act"


def test_a_number_that_no_row_can_have_is_a_page_that_does_not_exist(world):
    sweep, mine = Sweep(world), world.theirs
    people = {Access.TENANT: mine.owner, Access.STAFF: world.people["staff"]}
    headers = headers_of(world, mine.keys["both"].text)
    asked = set()
    for address, row in addresses(Access.PUBLIC, Access.TENANT, Access.STAFF, Access.API_PUBLIC, Access.API_KEY):
        for name in re.findall(r"<int:(\w+)>", address.route):
            client = sweep.client(people.get(row.access))
            for number in (2**63, 10**30):
                path = address.path(mine.values | {name: number})
                for method in ("GET", "POST"):
                    data = {} if row.access not in (Access.API_PUBLIC, Access.API_KEY) else "{}"
                    sweep.ask(client, method, path, {404, 405}, data=data, headers=headers, shows=True)
            asked.add(address.name)
    assert {"machine", "webhook-delivery", "member-remove", "api-machine", "admin:catalog_provider_refresh"} <= asked
    assert not sweep.faults, sweep.faults


# --- The administration ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", [ANONYMOUS, "owner of another organization", "staff without permissions"])
def test_the_administration_opens_to_staff_with_the_permission_alone(sweep, actor):
    walk(sweep, sweep.world.people.get(actor), addresses(*ADMINISTRATION))


def test_who_keeps_the_catalog_sees_no_tenant_in_the_administration(sweep):
    catalog = ("catalog_", "sizing_")
    pages = [(each, row) for each, row in addresses(*ADMINISTRATION) if not each.admin_model.startswith(catalog)]
    walk(sweep, sweep.world.people["staff of the catalog"], pages, methods=("GET", "POST"))


def test_staff_see_tenants_and_an_empty_form_changes_nothing(sweep):
    client = sweep.client(sweep.world.people["staff"])
    for address, _ in addresses(*ADMINISTRATION):
        path = sweep.path(address, sweep.world.theirs)
        for method in ("GET", "POST"):
            sweep.ask(client, method, path, {200, 302, 400, 403, 404, 405}, data={} if method == "POST" else None,
                      shows=True, keep=True)  # fmt: skip
        if address.name == "admin:logout":
            client = sweep.client(sweep.world.people["staff"])
    for marker in ("Quillmere Laboratories", str(sweep.world.theirs.order.pk), "gpu.quillmere.example"):
        assert marker in sweep.seen


# --- The API ---------------------------------------------------------------------------------------------------------

ANSWERED = {200, 201, 202, 204, 400, 404, 405, 409}


def headers_of(world, key):
    sent = {"Idempotency-Key": world.theirs.order.idempotency_key}
    return sent | ({"Authorization": f"Bearer {key}"} if key else {})


def walk_api(sweep, key, expect, tenant, *, shows=False, client=None):
    client = client or sweep.client(None)
    for address, row in addresses(Access.API_PUBLIC, Access.API_KEY):
        path = sweep.path(address, tenant)
        for method in METHODS:
            expected = expect(address, row, method)
            for body in bodies.json_of(address.name, sweep.world) if method == "POST" else [None]:
                sent = None if body is None else json.dumps(body)
                answer = sweep.ask(client, method, path, expected, data=sent, headers=headers_of(sweep.world, key),
                                   shows=shows, keep=shows)  # fmt: skip
                if answer.status_code == 401 and not answer.headers["WWW-Authenticate"].startswith("Bearer"):
                    sweep.faults.append(f"{method} {path}: a 401 without the way to sign in")


@both_ways
@pytest.mark.parametrize("scopes", ["both", "read", "order"])
def test_a_key_of_one_organization_opens_nothing_of_another(sweep, scoping, scopes):
    def expect(address, row, method):
        if row.access == Access.API_PUBLIC:
            return ANSWERED
        if scopes != "both" and row.scope_of(method) not in (None, scopes):
            return {403}
        # OPTIONS tells the methods of an address, whatever stands in it.
        return {404, 405} if address.parameters and method != "OPTIONS" else ANSWERED

    walk_api(sweep, sweep.world.ours.keys[scopes].text, expect, sweep.world.theirs)


@pytest.mark.parametrize("whose", [ANONYMOUS, "signed in", "revoked", "expired", "nobody's"])
def test_without_a_live_key_the_api_tells_of_no_tenant(sweep, whose):
    """B155: a session is no key either; a wrong key is refused also where none is needed."""
    theirs = sweep.world.theirs
    keys = {"revoked": theirs.keys["revoked"].text, "expired": theirs.keys["expired"].text}
    keys["nobody's"] = f"berth_{'x' * 12}_{'y' * 43}"

    def expect(address, row, method):
        if row.access == Access.API_KEY:
            return {401, 405}
        return ANSWERED if whose not in keys else {401, 404, 405, 200}

    client = sweep.client(theirs.owner) if whose == "signed in" else None
    walk_api(sweep, keys.get(whose), expect, theirs, client=client)


def test_to_the_api_another_organizations_rows_and_nobodys_are_the_same_bytes(sweep):
    """B152."""
    client, headers = sweep.client(None), headers_of(sweep.world, sweep.world.ours.keys["both"].text)
    theirs = sweep.world.theirs.values
    nobodys = dict.fromkeys(theirs, 999_999) | {"order_id": uuid.uuid4(), "event_id": uuid.uuid4(), "number": 1}
    nobodys["model_slug"] = "nobodys"

    def answers(address, values):
        for method in ("GET", "PATCH", "DELETE", "POST"):
            answer = sweep.ask(client, method, address.path(values), {404, 405}, data="{}", headers=headers)
            yield answer.status_code, answer.content.replace(answer.json()["request_id"].encode(), b"")

    with_ids = [each for each, _ in addresses(Access.API_KEY) if each.parameters]
    assert {"order_id", "ssh_key_id"} <= {name for each in with_ids for name in each.parameters}
    for address in with_ids:
        assert list(answers(address, theirs)) == list(answers(address, nobodys)), address.name


def test_a_key_that_only_reads_changes_nothing_of_its_own_organization(sweep):
    def expect(address, row, method):
        return {403} if row.scope_of(method) == "order" else ANSWERED

    theirs = sweep.world.theirs
    walk_api(sweep, theirs.keys["read"].text, expect, theirs, shows=True)
    for marker in (
        "Quillmere Laboratories",
        str(theirs.order.pk),
        "member@quillmere.example",
        theirs.keys["read"].prefix,
    ):
        assert marker in sweep.seen
