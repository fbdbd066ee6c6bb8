"""Turning an endpoint off that has failed for days, or says that it is gone: the owners are told."""

from __future__ import annotations

from datetime import datetime, timedelta

from catalog.links import page_url
from rentals.audit import record
from rentals.mail import send_after_commit
from rentals.models import Membership, WebhookEndpoint
from rentals.models.organizations import Role
from rentals.webhooks_endpoints import drop_waiting

DEAD_AFTER = timedelta(days=5)


def turn_off_if_dead(endpoint: WebhookEndpoint, now: datetime, *, gone: bool = False) -> bool:
    """Turn the endpoint off when nothing has reached it for `DEAD_AFTER`, or it is `gone` as it says itself.

    Called inside the failure's transaction.
    """
    failed = endpoint.failing_since is not None and now - endpoint.failing_since >= DEAD_AFTER
    if not endpoint.enabled or not (failed or gone):
        return False
    why = WebhookEndpoint.GivenUp.GONE if gone else WebhookEndpoint.GivenUp.FAILED
    endpoint.enabled, endpoint.given_up_at, endpoint.given_up_why = False, now, why
    endpoint.save(update_fields=["enabled", "given_up_at", "given_up_why"])
    drop_waiting(endpoint, now)
    organization = endpoint.organization
    record(organization, "webhook.given_up", at=now, via="system", object_id=endpoint.pk, url=endpoint.shown_url,
           why=why.value)  # fmt: skip
    owners = Membership.objects.for_organization(organization).filter(role=Role.OWNER, user__is_active=True)
    context = {
        "organization": organization,
        "url": endpoint.shown_url,
        "gone": gone,
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
