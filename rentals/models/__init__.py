"""Everything that belongs to a tenant. Each model here has `organization`, and its queries start from it."""

from rentals.models.api_keys import ApiKey
from rentals.models.audit import AuditEvent
from rentals.models.delivery import Connection, SshKey
from rentals.models.idempotency import IdempotencyRecord
from rentals.models.invitations import Invitation
from rentals.models.notices import Notice
from rentals.models.orders import Allocation, Order
from rentals.models.organizations import Membership, Organization
from rentals.models.own_models import OwnModel
from rentals.models.policies import OrganizationPolicy
from rentals.models.searches import SavedSearch
from rentals.models.sent_forms import SentForm
from rentals.models.webhooks import WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent

__all__ = [
    "Allocation",
    "ApiKey",
    "AuditEvent",
    "Connection",
    "IdempotencyRecord",
    "Invitation",
    "Membership",
    "Notice",
    "Order",
    "Organization",
    "OrganizationPolicy",
    "OwnModel",
    "SavedSearch",
    "SentForm",
    "SshKey",
    "WebhookAttempt",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookEvent",
]
