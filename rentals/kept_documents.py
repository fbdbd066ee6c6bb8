"""The JSON shapes of what an organization keeps beside its orders."""

from __future__ import annotations

from typing import Any

from catalog.links import page_url
from rentals.documents import instant
from rentals.models import SshKey


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
