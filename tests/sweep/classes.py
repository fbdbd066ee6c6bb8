"""Who may open which address: one row for each. A new address needs its row here; the sweep fails without it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.sweep.addresses import Address, all_addresses


class Access(enum.StrEnum):
    PUBLIC = "everybody, signed in or not"
    SIGNED_IN = "whoever is signed in; about the person, not about one organization"
    TENANT = "members of the organization in the address; to all others it does not exist"
    STAFF = "staff with a permission for it"
    STAFF_DOOR = "any staff: doors and menus of the administration"
    API_PUBLIC = "everybody; a wrong key is refused"
    API_KEY = "a key of the organization"


@dataclass(frozen=True)
class Row:
    """`scopes` says which scope of a key a method needs (`*`: each other one); `acts` that a POST changes rows."""

    access: Access
    scopes: dict[str, str] = field(default_factory=dict)
    acts: bool = False

    def scope_of(self, method: str) -> str | None:
        return self.scopes.get(method, self.scopes.get("*"))


PUBLIC, SIGNED_IN, STAFF = Row(Access.PUBLIC), Row(Access.SIGNED_IN), Row(Access.STAFF)
STAFF_DOOR, API_PUBLIC, TENANT = Row(Access.STAFF_DOOR), Row(Access.API_PUBLIC), Row(Access.TENANT)
TENANT_ACT, API_KEY = Row(Access.TENANT, acts=True), Row(Access.API_KEY)
API_READ = Row(Access.API_KEY, {"*": "read"})
# What a GET reads and a DELETE takes away.
API_ROW = Row(Access.API_KEY, {"*": "read", "DELETE": "order"})
API_ACT = Row(Access.API_KEY, {"*": "order"}, acts=True)

# Add an address here, by its name (with its namespace) or, without one, by its route. An address with TENANT_ACT or
# API_ACT also gets a body in tests/sweep/bodies.py with which its POST does something.
TABLE: dict[str, Row] = {
    # Pages for everybody
    "home": PUBLIC,
    "launch": PUBLIC,
    "launch-own": PUBLIC,
    "launch-result": PUBLIC,
    "calculator": PUBLIC,
    "calculator-stages": PUBLIC,
    "help-memory": PUBLIC,
    "help-tiers": PUBLIC,
    "catalog": PUBLIC,
    "machine": PUBLIC,
    "glossary": PUBLIC,
    "set-theme": PUBLIC,
    "status": PUBLIC,
    "healthz": PUBLIC,
    "readyz": PUBLIC,
    # For who has its token; nobody has in the suite.
    "metrics": PUBLIC,
    # The link of an invitation: whoever has its token sees the organization's name. The sweep has none.
    "invitation": PUBLIC,
    "invitation-join": PUBLIC,
    # About the person
    "order-review-entry": SIGNED_IN,
    "planner-entry": SIGNED_IN,
    "organization-new": SIGNED_IN,
    # About one organization
    "organization": TENANT,
    "organization-launch": TENANT,
    "organization-launch-result": TENANT,
    "own-models": TENANT_ACT,
    "own-model": TENANT,
    "own-model-delete": TENANT_ACT,
    "keys": TENANT_ACT,
    "key-revoke": TENANT_ACT,
    "policy": TENANT_ACT,
    "activity": TENANT,
    "members": TENANT_ACT,
    "member-role": TENANT_ACT,
    "member-remove": TENANT_ACT,
    "member-transfer": TENANT_ACT,
    "invitation-resend": TENANT_ACT,
    "invitation-revoke": TENANT_ACT,
    "ssh-keys": TENANT_ACT,
    "ssh-key-remove": TENANT_ACT,
    "planner": TENANT,
    "statements": TENANT,
    "statement": TENANT,
    "statement-csv": TENANT,
    "orders-csv": TENANT,
    "orders": TENANT,
    "order-review": TENANT_ACT,
    "order": TENANT,
    "order-receipt": TENANT,
    "allocation-stop": TENANT_ACT,
    "allocation-start": TENANT_ACT,
    "webhooks": TENANT_ACT,
    "webhook": TENANT_ACT,
    "webhook-secret": TENANT_ACT,
    "webhook-test": TENANT_ACT,
    "webhook-remove": TENANT_ACT,
    "webhook-delivery": TENANT,
    "webhook-replay": TENANT_ACT,
    "saved-searches": TENANT_ACT,
    "saved-search-delete": TENANT_ACT,
    # Accounts
    "account_login": PUBLIC,
    "account_logout": PUBLIC,
    "account_inactive": PUBLIC,
    "account_signup": PUBLIC,
    "account_email_verification_sent": PUBLIC,
    "account_confirm_email": PUBLIC,
    "account_reset_password": PUBLIC,
    "account_reset_password_done": PUBLIC,
    "account_reset_password_from_key": PUBLIC,
    "account_reset_password_from_key_done": PUBLIC,
    "account_reauthenticate": SIGNED_IN,
    "account_request_reauthentication_code": SIGNED_IN,
    "account_confirm_reauthentication_code": SIGNED_IN,
    "account_confirm_login_code": SIGNED_IN,
    "account_email": SIGNED_IN,
    "account_change_password": SIGNED_IN,
    "account_set_password": SIGNED_IN,
    "mfa_index": SIGNED_IN,
    "mfa_authenticate": SIGNED_IN,
    "mfa_reauthenticate": SIGNED_IN,
    "mfa_activate_totp": SIGNED_IN,
    "mfa_deactivate_totp": SIGNED_IN,
    "mfa_view_recovery_codes": SIGNED_IN,
    "mfa_generate_recovery_codes": SIGNED_IN,
    "mfa_download_recovery_codes": SIGNED_IN,
    "usersessions_list": SIGNED_IN,
    # API
    "api-gpus": API_PUBLIC,
    "api-gpu": API_PUBLIC,
    "api-machines": API_PUBLIC,
    "api-machine": API_PUBLIC,
    "api-options": API_PUBLIC,
    "api-option": API_PUBLIC,
    "api-sizing": API_PUBLIC,
    "api-vectors": API_PUBLIC,
    "api-recommendations": API_PUBLIC,
    "api-models": API_PUBLIC,
    "api-models-read": API_PUBLIC,
    "api-model": API_PUBLIC,
    "api-calculator": API_PUBLIC,
    "api-calculator-stages": API_PUBLIC,
    "api-schema": API_PUBLIC,
    "api-docs": API_PUBLIC,
    "api-errors": API_PUBLIC,
    "api-nowhere": API_PUBLIC,
    "api-quotes": API_KEY,
    "api-planner": API_KEY,
    "api-orders": Row(Access.API_KEY, {"*": "read", "POST": "order"}, acts=True),
    "api-order": API_READ,
    "api-allocation-stop": API_ACT,
    "api-allocation-start": API_ACT,
    "api-key": API_KEY,
    "api-organization": API_READ,
    "api-policy": API_READ,
    "api-usage": API_READ,
    "api-members": API_READ,
    "api-audit": API_READ,
    "api-ssh-keys": Row(Access.API_KEY, {"*": "read", "POST": "order"}, acts=True),
    "api-ssh-key": API_ROW,
    "api-webhooks": Row(Access.API_KEY, {"*": "read", "POST": "order"}, acts=True),
    "api-webhook": Row(Access.API_KEY, {"*": "read", "PATCH": "order", "DELETE": "order"}),
    "api-webhook-secret": API_ACT,
    "api-webhook-test": API_ACT,
    "api-webhook-deliveries": API_READ,
    "api-webhook-delivery": API_READ,
    "api-webhook-replay": API_ACT,
    "api-own-models": Row(Access.API_KEY, {"*": "read", "POST": "order"}, acts=True),
    "api-own-model": API_ROW,
    "api-saved-searches": Row(Access.API_KEY, {"*": "read", "POST": "order"}, acts=True),
    "api-saved-search": API_ROW,
    # The administration: pages beyond the standard ones of ADMIN_MODELS
    "admin:index": STAFF_DOOR,
    "admin:login": STAFF_DOOR,
    "admin:logout": STAFF_DOOR,
    "admin:password_change": STAFF_DOOR,
    "admin:password_change_done": STAFF_DOOR,
    "admin:autocomplete": STAFF_DOOR,
    "admin:jsi18n": STAFF_DOOR,
    "admin:view_on_site": STAFF_DOOR,
    "admin:app_list": STAFF_DOOR,
    "admin/(?P<url>.*)$": STAFF_DOOR,
    "admin:auth_user_password_change": STAFF,
    "admin:catalog_provider_accept": STAFF,
    "admin:catalog_provider_refresh": STAFF,
    "admin:rentals_order_cancel": STAFF,
    "admin:rentals_ownmodel_publish": STAFF,
}

# Pages that models of the administration have, and the models.
ADMIN_PAGES = ("changelist", "add", "history", "simple_history", "delete", "change", "import", "export")
ADMIN_MODELS = (
    "account_emailaddress", "auth_group", "auth_user", "mfa_authenticator", "usersessions_usersession",
    "catalog_feedquestion", "catalog_feedrun", "catalog_gpu", "catalog_gpualias", "catalog_machine", "catalog_option",
    "catalog_placealias", "catalog_provider",
    "sizing_aimodel",
    "rentals_allocation", "rentals_apikey", "rentals_auditevent", "rentals_invitation", "rentals_membership",
    "rentals_notice", "rentals_order", "rentals_organization", "rentals_organizationpolicy", "rentals_ownmodel",
    "rentals_savedsearch", "rentals_sshkey", "rentals_webhookdelivery", "rentals_webhookendpoint",
)  # fmt: skip


def row_of(address: Address) -> Row | None:
    if address.name in TABLE:
        return TABLE[address.name]
    model = address.admin_model
    if model in ADMIN_MODELS:
        if address.name in {f"admin:{model}_{page}" for page in ADMIN_PAGES}:
            return STAFF
        if not address.named:
            # Where a row's page was in earlier versions of Django: it leads on to the page that asks who it is.
            return STAFF_DOOR
    return None


def addresses(*wanted: Access) -> Iterator[tuple[Address, Row]]:
    """The addresses of these classes."""
    for address in all_addresses():
        row = row_of(address)
        if row is not None and row.access in wanted:
            yield address, row
