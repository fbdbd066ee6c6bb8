"""Turning an endpoint off that has failed for days: nobody is there, and the owners are told."""

from __future__ import annotations

from datetime import datetime, timedelta

from catalog.links import page_url
from rentals.audit import record
from rentals.mail import send_after_commit
from rentals.models import Membership, WebhookEndpoint
from rentals.models.organizations import Role
from rentals.webhooks_endpoints import drop_waiting

DEAD_AFTER = timedelta(days=5)


def turn_off_if_dead(endpoint: WebhookEndpoint, now: datetime) -> bool:
    """Turn the endpoint off when nothing has reached it for `DEAD_AFTER`; called inside the failure's transaction."""
    if not endpoint.enabled or endpoint.failing_since is None or now - endpoint.failing_since < DEAD_AFTER:
        return False
    endpoint.enabled, endpoint.given_up_at = False, now
    endpoint.save(update_fields=["enabled", "given_up_at"])
    drop_waiting(endpoint, now)
    organization = endpoint.organization
    record(organization, "webhook.given_up", at=now, via="system", object_id=endpoint.pk, url=endpoint.shown_url)
    owners = Membership.objects.for_organization(organization).filter(role=Role.OWNER, user__is_active=True)
    context = {
        "organization": organization,
        "url": endpoint.shown_url,
        "since": endpoint.failing_since,
        "link": page_url("webhook", organization.slug, endpoint.pk),
    }
    for address in sorted({owner.user.email for owner in owners.select_related("user") if owner.user.email}):
        send_after_commit(
            to=address,
            subject=f"A webhook of {organization.name} is turned off",
            template="rentals/mail/webhook_given_up.txt",
            context=context,
        )
    return True
