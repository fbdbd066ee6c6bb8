"""Secrets of webhook endpoints: made, sealed for the database, and what a delivery is signed with.

Source: Standard Webhooks, https://www.standardwebhooks.com (symmetric signatures, version v1).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

if TYPE_CHECKING:
    from rentals.models import WebhookEndpoint

PREFIX = "whsec_"
SECRET_BYTES = 32
# How long the secret before the present one signs too.
OVERLAP = timedelta(hours=24)


class SecretUnreadable(Exception):
    """Sealed with a SECRET_KEY that this process does not have any more."""


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def seal(secret: str) -> str:
    """The secret as the database has it: without SECRET_KEY it says nothing."""
    return _box().encrypt(secret.encode()).decode()


def unseal(sealed: str) -> str:
    """Raises: SecretUnreadable."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable from None


def sealed_anew(sealed: str) -> str | None:
    """The same secret under the present SECRET_KEY; None when it is already, or cannot be read."""
    try:
        _key(settings.SECRET_KEY).decrypt(sealed.encode())
    except InvalidToken:
        try:
            return _box().rotate(sealed.encode()).decode()
        except InvalidToken:
            return None
    return None


def signing_headers(endpoint: WebhookEndpoint, event_id: str, body: bytes, *, now: datetime) -> dict[str, str]:
    """The three headers of a delivery; two signatures while two secrets are live.

    Raises: SecretUnreadable.
    """
    timestamp = int(now.timestamp())
    live = [unseal(endpoint.secret)]
    if endpoint.previous_until is not None and now < endpoint.previous_until:
        with suppress(SecretUnreadable):
            live.append(unseal(endpoint.previous_secret))
    signatures = [signature(secret, event_id, timestamp, body) for secret in live]
    return {"webhook-id": event_id, "webhook-timestamp": str(timestamp), "webhook-signature": " ".join(signatures)}


def signature(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and the HMAC-SHA256 of id, timestamp and body, in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{event_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"


def _box() -> MultiFernet:
    return MultiFernet([_key(text) for text in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


@lru_cache(maxsize=8)
def _key(text: str) -> Fernet:
    derived = HKDF(SHA256(), length=32, salt=None, info=b"berth: secrets of webhook endpoints").derive(text.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
