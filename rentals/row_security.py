"""PostgreSQL's row-level security: the policies of every table with an organization, and what is missing of them.

A migration that makes such a table ends with `EnableTenantPolicies()`; it may be repeated, and does nothing on SQLite.
`rentals.tenants` says for whom a transaction works. A row is visible when one policy allows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps as installed
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

# In a subquery each is computed once a statement, not once a row. After its transaction a setting reads as ''.
TENANT = "(SELECT nullif(current_setting('app.tenant', true), '')::bigint)"
USER = "(SELECT nullif(current_setting('app.user', true), '')::bigint)"
ACROSS = "(SELECT coalesce(current_setting('app.across', true), '') <> '')"
FIND_API_KEY = "rentals_api_key"


def tenant_models(apps: Any = installed) -> list[Any]:
    """The organization itself and every model with a foreign key `organization`; `apps` may be a migration's."""
    organization = apps.get_model("rentals", "Organization")
    return [organization] + [
        model
        for model in apps.get_models()
        if any(field.name == "organization" and field.related_model is organization for field in model._meta.fields)
    ]


class EnableTenantPolicies(Operation):
    """Enable and force row-level security on every table with an organization, and set its policies anew."""

    reversible = True
    reduces_to_sql = False

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models stay as they are."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        for model in tenant_models(to_state.apps):
            for statement in policies_of(model, schema_editor.quote_name):
                schema_editor.execute(statement)
        for statement in api_key_function(schema_editor.quote_name(current_schema(schema_editor.connection))):
            schema_editor.execute(statement)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        for model in tenant_models(to_state.apps):
            table = schema_editor.quote_name(model._meta.db_table)
            schema_editor.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY")

    def describe(self) -> str:
        return "Row-level security on every table with an organization"


def policies_of(model: Any, quote: Any) -> Iterator[str]:
    """The statements that put the policies of one table in place, whatever was there before."""
    table = quote(model._meta.db_table)
    # FORCE: the owner of a table is held by its policies too.
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
    for name, rule in _rules(model, table, quote):
        yield f"DROP POLICY IF EXISTS {name} ON {table}"
        yield f"CREATE POLICY {name} ON {table} {rule}"


def _rules(model: Any, table: str, quote: Any) -> Iterator[tuple[str, str]]:
    name = model._meta.model_name
    yield "tenant_rows", f"USING ({'id' if name == 'organization' else 'organization_id'} = {TENANT})"
    yield "across_tenants", f"USING ({ACROSS})"
    if name == "organization":
        # The subquery is held by the policies of memberships: it finds the person's own.
        own = f"SELECT organization_id FROM {quote('rentals_membership')} WHERE user_id = {USER}"
        yield "of_member", f"FOR SELECT USING (id IN ({own}))"
    if name == "membership":
        yield "own_memberships", f"FOR SELECT USING (user_id = {USER})"
    if name == "invitation":
        addresses = f"SELECT lower(email) FROM {quote('account_emailaddress')} WHERE user_id = {USER} AND verified"
        yield "own_invitations", f"FOR SELECT USING (lower(email) IN ({addresses}))"
    if name == "apikey":
        # For the function below alone: it runs as the owner, and the application's role is another.
        yield "found_by_function", "FOR SELECT TO CURRENT_USER USING (true)"


def api_key_function(schema: str) -> Iterator[str]:
    """The one way to a row before its tenant is known: a key by the part it is looked up by."""
    yield (
        f"CREATE OR REPLACE FUNCTION {schema}.{FIND_API_KEY}(wanted text) RETURNS SETOF {schema}.rentals_apikey"
        " LANGUAGE sql STABLE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp"
        f" AS $$ SELECT * FROM {schema}.rentals_apikey WHERE prefix = wanted $$"
    )
    # The application's role has it by the owner's default privileges.
    yield f"REVOKE ALL ON FUNCTION {schema}.{FIND_API_KEY}(text) FROM PUBLIC"


def current_schema(connection: BaseDatabaseWrapper) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        return str(cursor.fetchone()[0])


def unprotected_tables(connection: BaseDatabaseWrapper) -> dict[str, str]:
    """Tables of tenants that lack something, and what."""
    query = """
        SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity,
               array(SELECT p.polname::text FROM pg_policy p WHERE p.polrelid = c.oid)
        FROM pg_class c WHERE c.relname = ANY(%s) AND c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid)
    """
    tables = {model._meta.db_table: model for model in tenant_models()}
    with connection.cursor() as cursor:
        cursor.execute(query, [list(tables)])
        found = {name: rest for name, *rest in cursor.fetchall()}
    missing = {}
    for table, model in tables.items():
        enabled, forced, policies = found.get(table, (False, False, []))
        wanted = {name for name, _ in _rules(model, table, str)}
        if not enabled:
            missing[table] = "row-level security is not enabled"
        elif not forced:
            missing[table] = "row-level security is not forced"
        elif set(policies) != wanted:
            missing[table] = f"its policies are {', '.join(sorted(policies))}, not {', '.join(sorted(wanted))}"
    return missing


def role_faults(connection: BaseDatabaseWrapper) -> list[str]:
    """Why the role of this connection is not held by the policies; empty when it is."""
    query = """
        SELECT r.rolsuper, r.rolbypassrls, r.rolcreaterole,
               array(SELECT c.relname::text FROM pg_class c WHERE c.relname = ANY(%s) AND pg_table_is_visible(c.oid)
                     AND pg_has_role(r.oid, c.relowner, 'MEMBER') ORDER BY 1)
        FROM pg_roles r WHERE r.rolname = current_user
    """
    with connection.cursor() as cursor:
        cursor.execute(query, [[model._meta.db_table for model in tenant_models()]])
        superuser, bypasses, makes_roles, owned = cursor.fetchone()
    faults = []
    if superuser:
        faults.append("it is a superuser")
    if bypasses:
        faults.append("it has BYPASSRLS")
    if makes_roles:
        faults.append("it has CREATEROLE")
    if owned and not superuser:
        faults.append(f"it owns {len(owned)} tables of tenants ({owned[0]} …), itself or through another role")
    return faults
