"""The JSON shapes of what an organization keeps beside its orders."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from catalog.links import page_url
from rentals.documents import instant
from rentals.models import OwnModel, SavedSearch, SshKey, WebhookDelivery, WebhookEndpoint
from rentals.saved_searches import result_url
from sizing.json_input import PREFERENCE_KINDS, TEXTS, WHOLE, WORKLOAD_KINDS
from sizing.own_shape import OWN_PREFIX


def ssh_key_document(key: SshKey) -> dict[str, Any]:
    return {
        "id": key.pk,
        "name": key.comment,
        "type": key.kind,
        "fingerprint": key.fingerprint,
        "key": key.line,
        "added_at": instant(key.added_at),
        "added_by": key.added_by_name or None,
        "html_url": page_url("ssh-keys", key.organization.slug),
    }


def endpoint_document(endpoint: WebhookEndpoint, *, now: datetime, in_full: bool) -> dict[str, Any]:
    """A webhook endpoint, without its secrets. `in_full` is for who may change it: the address may have a password."""
    overlapping = endpoint.previous_until is not None and endpoint.previous_until > now
    return {
        "id": endpoint.pk,
        "url": endpoint.url if in_full else endpoint.shown_url,
        "description": endpoint.description,
        "events": endpoint.events,
        "enabled": endpoint.enabled,
        "secret_made_at": instant(endpoint.secret_made_at),
        "previous_secret_until": instant(endpoint.previous_until) if overlapping else None,
        "failing_since": instant(endpoint.failing_since),
        "given_up_at": instant(endpoint.given_up_at),
        "created_at": instant(endpoint.created_at),
        "created_by": endpoint.created_by_name or None,
        "html_url": page_url("webhook", endpoint.organization.slug, endpoint.pk),
    }


def delivery_document(delivery: WebhookDelivery, slug: str) -> dict[str, Any]:
    """What became of one event for one endpoint; `slug` is the organization's."""
    waiting = delivery.state == WebhookDelivery.State.PENDING
    return {
        "endpoint_id": delivery.endpoint_id,
        "event_id": str(delivery.event_id),
        "type": delivery.event.kind,
        "state": delivery.state,
        "created_at": instant(delivery.created_at),
        "next_attempt_at": instant(delivery.next_attempt_at) if waiting else None,
        "finished_at": instant(delivery.finished_at),
        "attempts": [
            {
                "at": instant(attempt.at),
                "milliseconds": attempt.milliseconds,
                "status": attempt.status,
                "problem": attempt.problem or None,
                "answer": attempt.answer,
            }
            for attempt in delivery.attempts.all()
        ],
        "html_url": page_url("webhook-delivery", slug, delivery.endpoint_id, delivery.pk),
    }


def search_document(search: SavedSearch) -> dict[str, Any]:
    """A saved search: its question as POST /recommendations takes it, and what was found when it was last asked."""
    asked = parse_qs(search.query)
    return {
        "id": search.pk,
        "name": search.name,
        "workload": _of_kinds(asked, WORKLOAD_KINDS),
        "preferences": _of_kinds(asked, PREFERENCE_KINDS),
        "machine_count": search.machines,
        "checked_at": instant(search.checked_at),
        "found_at": instant(search.found_at),
        "problem": search.problem or None,
        "created_at": instant(search.created_at),
        "created_by": search.created_by_name or None,
        "result_url": result_url(search),
        "html_url": page_url("saved-searches", search.organization.slug),
    }


def _of_kinds(asked: dict[str, list[str]], kinds: dict[str, str]) -> dict[str, Any]:
    """The values of an address as JSON has them."""
    found: dict[str, Any] = {}
    for name, kind in kinds.items():
        if values := asked.get(name):
            found[name] = values if kind == TEXTS else int(values[0]) if kind == WHOLE else values[0]
    return found


def own_model_document(model: OwnModel) -> dict[str, Any]:
    """A model of the organization's own; where its figures came from is in `reading`, for who asks for the one."""
    unreadable = "Its figures cannot be read any more. Delete it and bring it again."
    return {
        "slug": model.slug,
        "model": f"{OWN_PREFIX}{model.slug}",
        "name": model.name,
        "figures": model.figures,
        "problem": None if model.readable else unreadable,
        "created_at": instant(model.created_at),
        "created_by": model.created_by_name or None,
        "html_url": page_url("own-model", model.organization.slug, model.slug),
    }
