"""What staff do to many machines at once: in chunks, each change with its reason in the history, all or nothing."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from django import forms
from django.contrib.admin.helpers import ActionForm
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from simple_history.utils import bulk_update_with_history

from catalog.models import Machine

CHUNK = 500
MOST_DELETED = 1000


class ReasonForm(ActionForm):
    reason = forms.CharField(required=False, max_length=100, label="Reason")


class Done(NamedTuple):
    """Machines that were changed, that were so before, and that a feed decides about."""

    changed: int
    same: int = 0
    synced: int = 0


class BulkChange(Protocol):
    def __call__(self, machines: QuerySet[Machine], value: bool, *, user: User, reason: str, now: datetime) -> Done: ...


def change_online(machines: QuerySet[Machine], value: bool, *, user: User, reason: str, now: datetime) -> Done:
    """Whether machines can be had, as the operator declares; of those with a feed the feed says it."""
    declared = machines.filter(provider__feed_url="")
    synced = machines.exclude(provider__feed_url="").count()
    done = _change(declared, "online", value, user=user, reason=reason, now=now)
    return done._replace(synced=synced)


def change_listed(machines: QuerySet[Machine], value: bool, *, user: User, reason: str, now: datetime) -> Done:
    """Whether machines are on the pages at all."""
    return _change(machines, "listed", value, user=user, reason=reason, now=now)


def most_at_once(machines: Any) -> str:
    """Why so many machines are not deleted at once; empty when they are few enough."""
    chosen = machines.count() if isinstance(machines, QuerySet) else len(machines)
    return f"{chosen:,} machines: at most {MOST_DELETED:,} are deleted at once." if chosen > MOST_DELETED else ""


def _change(machines: QuerySet[Machine], field: str, value: bool, *, user: User, reason: str, now: datetime) -> Done:
    with transaction.atomic():
        same, changed = machines.filter(**{field: value}).count(), 0
        for chunk in _chunks(machines.filter(**{field: not value})):
            for machine in chunk:
                setattr(machine, field, value)
                machine.updated_at = now
            bulk_update_with_history(
                chunk, Machine, [field, "updated_at"], default_user=user, default_change_reason=reason
            )
            changed += len(chunk)
    return Done(changed, same)


def _chunks(machines: QuerySet[Machine]) -> Iterator[list[Machine]]:
    """By their key, so that rows are locked in the order in which everybody locks them."""
    last = 0
    while chunk := list(machines.select_related(None).order_by("pk").filter(pk__gt=last)[:CHUNK]):
        yield chunk
        last = chunk[-1].pk
