"""An organization's SSH public keys: reading one, adding it, taking it away.

Only plain public keys of types that a server of today accepts. Options in front of a key, certificates and private keys
are refused; what is stored is written anew from what was understood, never the text as it came.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from catalog.visible import is_plain_line
from rentals.askers import Asker, check_may_order_here, made_by, record_act
from rentals.errors import InvalidSshKey, SshKeyThere, TooManySshKeys
from rentals.models import Organization, SshKey

MAX_KEYS = 50
MAX_COMMENT = 100
MAX_TEXT = 16_384
LEAST_RSA_BITS, MOST_RSA_BITS = 3072, 16_384
ED25519 = "ssh-ed25519"
RSA = "ssh-rsa"
# The curve's name inside the key, and the bytes of an uncompressed point on it.
ECDSA = {
    "ecdsa-sha2-nistp256": (b"nistp256", 65),
    "ecdsa-sha2-nistp384": (b"nistp384", 97),
    "ecdsa-sha2-nistp521": (b"nistp521", 133),
}
_KNOWN = f"Use {ED25519}, {RSA} of {LEAST_RSA_BITS} bits or more, or {', '.join(ECDSA)}."


@dataclass(frozen=True)
class PublicKey:
    kind: str
    blob: str
    comment: str
    fingerprint: str


def read_key(text: str, *, name: str = "") -> PublicKey:
    """The public key in one line as ssh-keygen writes it; `name` is its comment where given.

    Raises: InvalidSshKey.
    """
    if "PRIVATE KEY" in text:
        raise InvalidSshKey(
            "This is a private key. It was not kept. Paste the file that ends in .pub; if this key was ever sent "
            "anywhere, replace it."
        )
    lines = [line.strip() for line in text[: MAX_TEXT + 1].splitlines() if line.strip()]
    if len(text) > MAX_TEXT or len(lines) != 1:
        raise InvalidSshKey("Paste one public key: a single line such as ssh-ed25519 AAAA… name.")
    kind, _, rest = lines[0].partition(" ")
    encoded, _, comment = rest.strip().partition(" ")
    if kind not in {ED25519, RSA, *ECDSA}:
        raise InvalidSshKey(f"The line does not begin with a type of key that is accepted. {_KNOWN}")
    blob = _decoded(encoded)
    _check(kind, _fields(blob))
    comment = " ".join((name or comment).split())
    if len(comment) > MAX_COMMENT or not is_plain_line(comment):
        raise InvalidSshKey(f"Name the key in 1 to {MAX_COMMENT} printable characters, such as ada@laptop.")
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return PublicKey(kind, base64.b64encode(blob).decode(), comment, f"SHA256:{digest}")


def add_key(asker: Asker, key: PublicKey, *, now: datetime) -> SshKey:
    """The key, kept for the lots that are prepared from now on.

    Raises: NotPermitted, SshKeyThere, TooManySshKeys.
    """
    with transaction.atomic():
        # Held, so that two at once neither pass the limit nor both find the key missing.
        organization = Organization.objects.select_for_update().get(pk=asker.organization_id)
        _check_may(asker, organization, now)
        mine = SshKey.objects.for_organization(organization)
        if there := mine.filter(fingerprint=key.fingerprint).first():
            there.organization = organization
            raise SshKeyThere(there)
        if mine.count() >= MAX_KEYS:
            raise TooManySshKeys(MAX_KEYS)
        kept = SshKey.objects.create(
            organization=organization,
            kind=key.kind,
            blob=key.blob,
            comment=key.comment,
            fingerprint=key.fingerprint,
            added_at=now,
            **made_by(asker, "added_by"),
        )
        record_act(asker, organization, "ssh_key.added", at=now, object_id=kept.pk, comment=kept.comment,
                   fingerprint=kept.fingerprint)  # fmt: skip
    return kept


def remove_key(asker: Asker, key_id: int, *, now: datetime) -> SshKey:
    """The key, gone from the list; where it was put already, only whoever uses that lot can take it away.

    Raises: NotPermitted, SshKey.DoesNotExist.
    """
    with transaction.atomic():
        organization = asker.organization
        _check_may(asker, organization, now)
        key = SshKey.objects.for_organization(organization).get(pk=key_id)
        if SshKey.objects.filter(pk=key.pk).delete()[0]:
            record_act(asker, organization, "ssh_key.removed", at=now, object_id=key_id, comment=key.comment,
                       fingerprint=key.fingerprint)  # fmt: skip
    return key


def _check_may(asker: Asker, organization: Organization, now: datetime) -> None:
    refusal = "Only members who may order see and change the organization's keys. Ask an owner or admin."
    check_may_order_here(asker, organization, refusal, now=now)


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSshKey("The part after the type is not complete. Copy the whole line.") from None


def _fields(blob: bytes) -> list[bytes]:
    """The strings of the key: each has its length in four bytes before it."""
    fields = []
    while blob:
        length = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + length or len(blob) < 4:
            raise InvalidSshKey("The key is cut off or damaged. Copy the whole line.")
        fields.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    return fields


def _check(kind: str, fields: list[bytes]) -> None:
    if not fields or fields[0] != kind.encode():
        raise InvalidSshKey("The key is of another type than its line says. Copy the whole line.")
    sound = {ED25519: _sound_ed25519, RSA: _sound_rsa}.get(kind, _sound_ecdsa)
    if not sound(fields):
        raise InvalidSshKey("The key is cut off or damaged. Copy the whole line.")


def _sound_ed25519(fields: list[bytes]) -> bool:
    return len(fields) == 2 and len(fields[1]) == 32


def _sound_ecdsa(fields: list[bytes]) -> bool:
    curve, size = ECDSA[fields[0].decode()]
    return len(fields) == 3 and fields[1] == curve and len(fields[2]) == size and fields[2][0] == 4


def _sound_rsa(fields: list[bytes]) -> bool:
    if len(fields) != 3 or not all(re.match(rb"\x00[\x80-\xff]|[\x01-\x7f]", number) for number in fields[1:]):
        return False
    exponent, modulus = (int.from_bytes(number, "big") for number in fields[1:])
    if not LEAST_RSA_BITS <= modulus.bit_length() <= MOST_RSA_BITS:
        raise InvalidSshKey(
            f"This RSA key has {modulus.bit_length():,} bits; {LEAST_RSA_BITS} to {MOST_RSA_BITS:,} are accepted. "
            "Make a new one: ssh-keygen -t ed25519."
        )
    return exponent >= 3 and exponent % 2 == 1 and modulus % 2 == 1
