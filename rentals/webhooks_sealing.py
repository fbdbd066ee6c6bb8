"""The secrets of webhook endpoints, sealed anew after a change of SECRET_KEY."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q

from catalog.sealing import WEBHOOKS
from rentals.models import WebhookEndpoint
from rentals.tenants import Across, across_tenants, tenant


def seal_anew() -> int:
    """What an old SECRET_KEY sealed is sealed with the present one while both are known; how many were."""
    renewed = 0
    for organization_id, pk, field, sealed in _sealed():
        if anew := WEBHOOKS.sealed_anew(sealed):
            with tenant(organization_id):
                # Conditional: a secret that was rotated meanwhile stays.
                renewed += WebhookEndpoint.objects.filter(Q(**{field: sealed}), pk=pk).update(**{field: anew})
    return renewed


def _sealed() -> Iterator[tuple[int, int, str, str]]:
    with across_tenants(Across.WEBHOOKS):
        rows = list(WebhookEndpoint.objects.values_list("organization", "pk", "secret", "previous_secret"))
    for organization_id, pk, secret, previous in rows:
        yield organization_id, pk, "secret", secret
        if previous:
            yield organization_id, pk, "previous_secret", previous
