"""Secrets of webhook endpoints: how they are made, and what a delivery is signed with.

Source: Standard Webhooks, https://www.standardwebhooks.com (symmetric signatures, version v1).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from catalog.sealing import WEBHOOKS, SecretUnreadable

if TYPE_CHECKING:
    from rentals.models import WebhookEndpoint

PREFIX = "whsec_"
SECRET_BYTES = 32
# How long the secret before the present one signs too.
OVERLAP = timedelta(hours=24)


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signing_headers(endpoint: WebhookEndpoint, event_id: str, body: bytes, *, now: datetime) -> dict[str, str]:
    """The three headers of a delivery; two signatures while two secrets are live.

    Raises: SecretUnreadable.
    """
    timestamp = int(now.timestamp())
    live = [WEBHOOKS.unseal(endpoint.secret)]
    if endpoint.previous_until is not None and now < endpoint.previous_until:
        with suppress(SecretUnreadable):
            live.append(WEBHOOKS.unseal(endpoint.previous_secret))
    signatures = [signature(secret, event_id, timestamp, body) for secret in live]
    return {"webhook-id": event_id, "webhook-timestamp": str(timestamp), "webhook-signature": " ".join(signatures)}


def signature(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and the HMAC-SHA256 of id, timestamp and body, in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{event_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"
