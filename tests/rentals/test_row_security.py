"""Below the code: PostgreSQL itself shows a transaction the rows of the tenant it works for, and no other's (B154)."""

import logging
import os
from datetime import timedelta

import psycopg
import pytest
from allauth.account.models import EmailAddress
from django.apps import apps
from django.core.management import call_command
from django.db import ProgrammingError, connection, connections, transaction
from django.utils import timezone

from rentals import tasks
from rentals.invariants import violations
from rentals.models import ApiKey, AuditEvent, IdempotencyRecord, Invitation, Membership, Notice, Order, Organization
from rentals.organizations import create_organization
from rentals.row_security import role_faults, tenant_models, unprotected_tables
from rentals.tenants import Across, across_tenants, person, tenant
from tests.factories import make_api_key, make_invitation, make_machine, make_member, make_order, make_user
from tests.tenancy import as_in_production

postgres = pytest.mark.postgres
both_roles = pytest.mark.django_db(databases=["default", "owner"])


@pytest.fixture
def rows(acme, globex):
    for organization in (acme, globex):
        make_order(organization, make_machine())
        make_api_key(organization)
        make_invitation(organization, f"invited@{organization.slug}.example")


def of(organization, model):
    return model.objects.filter(**{"pk" if model is Organization else "organization": organization.pk})


# --- Every table, and the role --------------------------------------------------------------------------------------


def test_every_model_of_the_tenants_app_has_an_organization():
    assert set(apps.get_app_config("rentals").get_models()) == set(tenant_models())


@postgres
@pytest.mark.django_db
def test_every_table_with_an_organization_is_protected_and_forced():
    assert unprotected_tables(connection) == {}


@postgres
@both_roles
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("ALTER TABLE rentals_order DISABLE ROW LEVEL SECURITY", "not enabled"),
        ("ALTER TABLE rentals_order NO FORCE ROW LEVEL SECURITY", "not forced"),
        ("DROP POLICY tenant_rows ON rentals_order", "its policies are across_tenants, not"),
        ("CREATE POLICY all_rows ON rentals_order USING (true)", "its policies are"),
    ],
)
def test_a_table_that_lost_its_policies_is_found(change, fault):
    with connections["owner"].cursor() as cursor:
        cursor.execute(change)
    found = unprotected_tables(connections["owner"])
    assert list(found) == ["rentals_order"]
    assert fault in found["rentals_order"]


@postgres
@pytest.mark.django_db
def test_the_role_of_the_suite_cannot_pass_the_policies():
    assert role_faults(connection) == []


@postgres
@both_roles
def test_the_owner_of_the_tables_is_no_role_to_serve_with():
    assert "it owns" in role_faults(connections["owner"])[0]


@postgres
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("attributes", "fault"),
    [("SUPERUSER", "it is a superuser"), ("BYPASSRLS", "it has BYPASSRLS"), ("CREATEROLE", "it has CREATEROLE")],
)
def test_a_role_that_could_pass_them_is_named(attributes, fault):
    url = os.environ["TEST_SUPERUSER_URL"].rsplit("/", 1)[0]
    with psycopg.connect(f"{url}/{connection.settings_dict['NAME']}") as superuser:
        superuser.execute(f"CREATE ROLE unsafe {attributes}".encode())
        superuser.execute("SET ROLE unsafe")
        assert role_faults(superuser) == [fault]
        superuser.rollback()


# --- Reading without any scoping in the code --------------------------------------------------------------------------


@postgres
def test_inside_a_tenants_block_every_table_shows_its_rows_alone(acme, globex, rows):
    with as_in_production(), tenant(acme):
        seen = {model: list(model.objects.all()) for model in tenant_models()}
    for model, found in seen.items():
        assert {row.pk for row in found} == {row.pk for row in of(acme, model)}
        assert model.__name__ not in {"Order", "Allocation", "ApiKey", "AuditEvent", "Membership"} or found


@postgres
def test_outside_of_every_block_no_table_shows_anything(rows):
    with as_in_production():
        assert [model for model in tenant_models() if model.objects.exists()] == []


@postgres
def test_a_person_sees_their_memberships_and_organizations_and_nothing_of_either(acme, globex, rows):
    make_member(globex, "viewer", user=acme.owner)
    make_member(acme, user=make_user("colleague@acme.example"))
    make_user("stranger@example.com")
    with as_in_production(), person(acme.owner):
        assert {membership.user_id for membership in Membership.objects.all()} == {acme.owner.pk}
        assert {organization.slug for organization in Organization.objects.all()} == {"acme", "globex"}
        assert not Order.objects.exists()
        assert not AuditEvent.objects.exists()
    with as_in_production(), person(globex.owner):
        assert {organization.slug for organization in Organization.objects.all()} == {"globex"}
    with as_in_production(), person(make_user()):
        assert not Organization.objects.exists()


@postgres
def test_an_invitation_is_read_by_whoever_confirmed_its_address(acme, rows):
    invited = make_user("Invited@acme.example")
    with as_in_production(), person(invited):
        assert [invitation.email for invitation in Invitation.objects.all()] == ["invited@acme.example"]
    EmailAddress.objects.update(verified=False)
    with as_in_production(), person(invited):
        assert not Invitation.objects.exists()


@postgres
def test_a_key_is_found_by_its_prefix_through_one_function_alone(acme):
    key = make_api_key(acme)
    with as_in_production():
        assert ApiKey.objects.with_prefix(key.prefix).organization_id == acme.pk
        assert ApiKey.objects.with_prefix("x" * 12) is None
        assert not ApiKey.objects.filter(prefix=key.prefix).exists()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.prosecdef, p.proconfig, r.rolname <> current_user, (SELECT count(*) FROM pg_proc d"
            " WHERE d.prosecdef AND d.pronamespace = p.pronamespace), p.proacl::text FROM pg_proc p"
            " JOIN pg_roles r ON r.oid = p.proowner WHERE p.proname = 'rentals_api_key'"
        )
        definer, settings, another_owner, definers, rights = cursor.fetchone()
    assert (definer, another_owner, definers) == (True, True, 1)
    assert settings == ["search_path=pg_catalog, pg_temp"]
    # An entry without a name would be everybody's right.
    assert "{=" not in rights
    assert ",=" not in rights


# --- Writing --------------------------------------------------------------------------------------------------------


@postgres
@pytest.mark.parametrize("model", tenant_models(), ids=lambda model: model.__name__)
def test_no_row_of_another_tenant_is_changed_or_deleted(acme, globex, rows, model):
    before = of(globex, model).count()
    column = model._meta.pk.column
    with as_in_production(), tenant(acme), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {model._meta.db_table} SET {column} = {column}")
        assert cursor.rowcount == of(acme, model).count()
        cursor.execute(f"DELETE FROM {model._meta.db_table} WHERE {column} NOT IN (SELECT {column} FROM"
                       f" {model._meta.db_table})")  # fmt: skip
        assert cursor.rowcount == 0
    assert of(globex, model).count() == before


@postgres
def test_no_row_is_written_into_another_tenant_nor_moved_there(acme, globex, rows):
    def event():
        AuditEvent.objects.create(organization=globex, at=timezone.now(), via="page", action="forged")

    acts = [
        event,
        lambda: Membership.objects.create(organization=globex, user=acme.owner, role="owner"),
        lambda: Membership.objects.update(organization=globex),
        lambda: IdempotencyRecord.objects.update(organization=globex),
        lambda: Organization.objects.create(name="New", slug="new"),
    ]
    for act in acts:
        with (
            as_in_production(),
            tenant(acme),
            pytest.raises(ProgrammingError, match="row-level security"),
            transaction.atomic(),
        ):
            act()
    with as_in_production(), pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
        event()
    assert Membership.objects.filter(organization=globex).count() == 1


# --- Blocks ---------------------------------------------------------------------------------------------------------


def told():
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('app.tenant', true), current_setting('app.across', true)")
        return tuple(value or "" for value in cursor.fetchone())


@postgres
@pytest.mark.django_db(transaction=True)
def test_a_connection_carries_nothing_from_one_transaction_to_the_next():
    with as_in_production():
        with tenant(7):
            assert told() == ("7", "")
        assert told() == ("", "")
        with pytest.raises(ZeroDivisionError), across_tenants(Across.OPERATOR):
            raise ZeroDivisionError
        assert told() == ("", "")


@postgres
@pytest.mark.django_db
def test_an_inner_block_gives_the_outer_one_back(acme):
    with as_in_production(), tenant(7):
        with across_tenants(Across.OPERATOR):
            assert told() == ("", "operator's command")
        assert told() == ("7", "")
        with pytest.raises(ZeroDivisionError), tenant(8):
            raise ZeroDivisionError
        assert told() == ("7", "")
        with pytest.raises(ProgrammingError), tenant(8), connection.cursor() as cursor:
            cursor.execute("SELECT * FROM nowhere")
        assert told() == ("7", "")


@postgres
@pytest.mark.django_db(transaction=True)
def test_an_order_is_never_placed_inside_another_transaction():
    with as_in_production(), tenant(7), pytest.raises(RuntimeError, match="durable"), tenant(7, durable=True):
        pass


@postgres
@pytest.mark.django_db
def test_who_crosses_tenants_leaves_the_reason_in_the_log(caplog):
    caplog.set_level(logging.INFO, logger="rentals.tenants")
    with as_in_production(), across_tenants(Across.END_OF_TERM):
        pass
    assert [record.msg["reason"] for record in caplog.records] == ["end of term"]


@postgres
def test_a_page_is_told_its_tenant_in_one_round_trip(client, acme, django_assert_max_num_queries):
    client.force_login(acme.owner)
    with django_assert_max_num_queries(100) as captured:
        assert client.get("/o/acme/orders/").status_code == 200
    # One when the page begins; the second gives the surrounding transaction of this test back.
    told_by = [query for query in captured.captured_queries if query["sql"].startswith("SELECT set_config")]
    assert len(told_by) == 2


# --- What works outside of requests ----------------------------------------------------------------------------------


def test_periodic_work_reaches_every_tenant_without_being_one(acme, globex, mailoutbox):
    now = timezone.now()
    begun = [make_order(each, placement={"now": now - timedelta(days=6, hours=12)}) for each in (acme, globex)]
    over = [make_order(each, placement={"now": now - timedelta(days=8)}) for each in (acme, globex)]
    with as_in_production():
        assert tasks.announce_ends.run() == 2
        assert tasks.end_due_orders.run() == 2
        assert tasks.send_notices.run() > 0
    assert {order.status for order in Order.objects.filter(pk__in=[each.pk for each in over])} == {"ended"}
    assert {order.status for order in Order.objects.filter(pk__in=[each.pk for each in begun])} == {"active"}
    assert Notice.objects.filter(state="sent").count() == len(mailoutbox)
    assert {"owner@acme.example", "owner@globex.example"} == {mail.to[0] for mail in mailoutbox}
    assert not violations()


def test_commands_of_the_operator_reach_every_tenant(acme, capsys):
    make_order(acme)
    Membership.objects.all().delete()
    with as_in_production():
        with pytest.raises(Exception, match="1 rows break a rule"):
            call_command("check_invariants")
        call_command("create_api_key", "acme", "--scopes", "read,order")
    assert ApiKey.objects.get().organization == acme


@pytest.mark.django_db
def test_anybody_may_make_an_organization_whatever_names_are_taken(acme):
    user = make_user()
    with as_in_production():
        organization = create_organization(name="Acme", owner=user, now=timezone.now())
    assert organization.slug == "acme-2"
    assert Membership.objects.get(organization=organization).user == user
