"""Making, recognising and revoking API keys. A key is `berth_<prefix>_<secret>`; the secret is told once, then gone.

The secret has 256 random bits, so one SHA-256 of it is enough: there is no dictionary to slow anybody down against.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.core.cache import cache
from django.db import transaction
from django.db.models import Q
from django.utils.crypto import constant_time_compare
from redis.exceptions import RedisError

from rentals.audit import record
from rentals.errors import InvalidApiKey, KeyNotAccepted, NotPermitted
from rentals.models import ApiKey, Membership, Organization
from rentals.models.api_keys import PREFIX_LENGTH, Scope
from rentals.tenants import tenant

if TYPE_CHECKING:
    from django.contrib.auth.models import User

# Letters and digits only: a double click selects the whole key.
_ALPHABET = string.ascii_letters + string.digits
# 43 characters of 62 are 256 bits.
_SECRET_LENGTH = 43
_KEY = re.compile(rf"\Aberth_([A-Za-z0-9]{{{PREFIX_LENGTH}}})_([A-Za-z0-9]{{{_SECRET_LENGTH}}})\Z")
# `last_used_at` is written at most this often: a busy key must not make a hot row.
USE_IS_NOTED_EVERY = timedelta(minutes=1)
# How long after its last use a key passes an address from which many wrong ones come.
KNOWN_FOR = timedelta(days=30)


def create_api_key(
    organization: Organization,
    *,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    actor: User | None,
    via: str,
    now: datetime,
) -> tuple[ApiKey, str]:
    """A new key and its text, which nobody can read again.

    `actor` must manage the organization; without one it is the operator at the command line.

    Raises: NotPermitted, InvalidApiKey.
    """
    asked = set(scopes)
    chosen = [scope for scope in Scope.values if scope in asked]
    if not chosen or asked - set(chosen):
        raise InvalidApiKey("scopes", f"Choose at least one of {' and '.join(Scope.values)}.")
    if expires_at is not None and expires_at <= now:
        raise InvalidApiKey("expires", "The key would have expired already. Choose a later day.")
    prefix, secret = _random(PREFIX_LENGTH), _random(_SECRET_LENGTH)
    with transaction.atomic():
        _check_manages(organization, actor)
        key = ApiKey.objects.create(
            organization=organization,
            name=name,
            scopes=chosen,
            prefix=prefix,
            secret_hash=_hash(secret),
            created_by=actor,
            created_at=now,
            expires_at=expires_at,
        )
        record(organization, "api_key.created", at=now, actor=actor, via=via, object_id=prefix, name=name,
               scopes=chosen)  # fmt: skip
    text = f"berth_{prefix}_{secret}"
    _remember(text)
    return key, text


def revoke_api_key(organization: Organization, key_id: int, *, actor: User | None, via: str, now: datetime) -> ApiKey:
    """The key, which opens nothing from now on; revoking a revoked one changes nothing. Staff may revoke any.

    Raises: NotPermitted, ApiKey.DoesNotExist.
    """
    with transaction.atomic():
        if not (via == "staff" and actor is not None and actor.is_staff):
            _check_manages(organization, actor)
        key = ApiKey.objects.for_organization(organization).get(pk=key_id)
        if ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=now):
            key.revoked_at = now
            record(organization, "api_key.revoked", at=now, actor=actor, via=via, object_id=key.prefix, name=key.name)
    return key


def authenticate(text: str, *, now: datetime) -> ApiKey:
    """The live key that this text is; that it was used is noted.

    Raises: KeyNotAccepted, with the same words for every text that never was a key.
    """
    read = _KEY.match(text)
    if read is None:
        raise KeyNotAccepted
    prefix, secret = read.groups()
    key = ApiKey.objects.with_prefix(prefix)
    if key is None or not constant_time_compare(key.secret_hash, _hash(secret)):
        raise KeyNotAccepted
    # Who has the secret may know what became of the key.
    if key.revoked_at is not None:
        raise KeyNotAccepted("This API key has been revoked.")
    if not key.is_live(now):
        raise KeyNotAccepted("This API key has expired.")
    if _note_use(key, now):
        _remember(text)
    return key


def is_known(text: str) -> bool:
    """Whether this was a key when it was last used, as far as the cache remembers: no proof that it is one now."""
    try:
        return _KEY.match(text) is not None and cache.get(_known(text)) is not None
    except (RedisError, OSError):
        return False


def _remember(text: str) -> None:
    # A cache that is away must not take the service with it.
    with suppress(RedisError, OSError):
        cache.set(_known(text), 1, timeout=KNOWN_FOR.total_seconds())


def _known(text: str) -> str:
    return f"api-key:known:{_hash(text)}"


def check_still_live(key: ApiKey, *, now: datetime) -> None:
    """Asked inside the transaction of an act: a key revoked since it opened the request changes nothing any more.

    Raises: KeyNotAccepted.
    """
    if not ApiKey.objects.for_organization(key.organization).live(now).filter(pk=key.pk).exists():
        raise KeyNotAccepted("This API key has been revoked.")


def _note_use(key: ApiKey, now: datetime) -> bool:
    """Whether it was time to note it again."""
    since = now - USE_IS_NOTED_EVERY
    if key.last_used_at is not None and key.last_used_at > since:
        return False
    unnoted = Q(last_used_at__isnull=True) | Q(last_used_at__lte=since)
    with tenant(key.organization_id):
        # Conditional: of many requests at the same moment one writes, the others find it written.
        ApiKey.objects.filter(unnoted, pk=key.pk).update(last_used_at=now)
    key.last_used_at = now
    return True


def _check_manages(organization: Organization, actor: User | None) -> None:
    if actor is None:
        return
    membership = Membership.objects.for_organization(organization).filter(user=actor).first()
    if membership is None or not membership.may_manage:
        raise NotPermitted("Only owners and admins manage API keys.")


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
