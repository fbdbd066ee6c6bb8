"""Secrets that Berth has to say again, as the database keeps them: without SECRET_KEY they say nothing.

SECRET_KEY_FALLBACKS are read too, so that a new key ends no secret.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class SecretUnreadable(Exception):
    """Sealed with a SECRET_KEY that this process does not have any more."""


@dataclass(frozen=True)
class Seal:
    """What seals the secrets of one purpose; nothing that another one sealed is read."""

    purpose: str

    def seal(self, secret: str) -> str:
        """The secret as the database has it."""
        return self._box().encrypt(secret.encode()).decode()

    def unseal(self, sealed: str) -> str:
        """Raises: SecretUnreadable."""
        try:
            return self._box().decrypt(sealed.encode()).decode()
        except InvalidToken:
            raise SecretUnreadable from None

    def sealed_anew(self, sealed: str) -> str | None:
        """The same secret under the present SECRET_KEY; None when it is already, or cannot be read."""
        try:
            _key(self.purpose, settings.SECRET_KEY).decrypt(sealed.encode())
        except InvalidToken:
            try:
                return self._box().rotate(sealed.encode()).decode()
            except InvalidToken:
                return None
        return None

    def _box(self) -> MultiFernet:
        return MultiFernet([_key(self.purpose, key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


@lru_cache(maxsize=16)
def _key(purpose: str, key: str) -> Fernet:
    derived = HKDF(SHA256(), length=32, salt=None, info=f"berth: {purpose}".encode()).derive(key.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


# What is sealed is read by its purpose: these words stay as they are.
FEEDS = Seal("secrets of feeds")
WEBHOOKS = Seal("secrets of webhook endpoints")
