"""A file on its way into a table: planned when it is uploaded, planned again and applied when it is confirmed."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction

from catalog.importing.reading import Unreadable, read
from catalog.importing.tables import Importable, Plan
from catalog.models import ImportDraft

# Long enough to read a preview, and no copy of a file lies about for longer.
KEPT_FOR = timedelta(hours=1)
NewTable = Callable[[], Importable]


class Prepared(NamedTuple):
    """The plan of a file. There is a draft when it can be confirmed: nothing is wrong and something would change."""

    plan: Plan
    draft: ImportDraft | None = None


def prepare(new_table: NewTable, content: bytes, *, user: User, file_name: str, reason: str, now: datetime) -> Prepared:
    """Plan the file and keep it until its uploader confirms. Earlier files of theirs for this table are forgotten."""
    table, plan = _planned(new_table, content)
    name = table._meta.model._meta.model_name
    ImportDraft.objects.filter(user=user, table=name).delete()
    ImportDraft.objects.filter(created_at__lt=now - KEPT_FOR).delete()
    if plan.faults or not plan.changes_something:
        return Prepared(plan)
    draft = ImportDraft.objects.create(
        key=uuid.uuid4(),
        user=user,
        table=name,
        file_name=file_name[:200],
        content=content,
        reason=reason,
        shown=plan.digest,
        created_at=now,
    )
    return Prepared(plan, draft)


def draft_of(new_table: NewTable, key: object, *, user: User, now: datetime) -> ImportDraft | None:
    """The file with the key, if it is this person's, for this table, and not too old."""
    name = new_table()._meta.model._meta.model_name
    try:
        number = uuid.UUID(str(key))
    except ValueError:
        return None
    kept = ImportDraft.objects.filter(user=user, table=name, created_at__gte=now - KEPT_FOR)
    return kept.filter(key=number).first()


def confirm(new_table: NewTable, draft: ImportDraft, *, now: datetime) -> Prepared | None:
    """Apply the file if it still does what its preview showed; the draft is gone then.

    Otherwise nothing is changed, and what it would do now is there to be looked at. None when somebody else has just
    confirmed the same draft.

    Raises: Unapplicable when the table changes at this very moment.
    """
    # Before anything is held: this takes as long as the preview took.
    table, plan = _planned(new_table, bytes(draft.content))
    with transaction.atomic():
        # Of two who confirm at once, one waits here and then finds nothing.
        if not ImportDraft.objects.select_for_update().filter(pk=draft.pk).exists():
            return None
        if plan.faults or plan.digest != draft.shown:
            draft.shown = plan.digest
            draft.save(update_fields=["shown"])
            return Prepared(plan, None if plan.faults or not plan.changes_something else draft)
        table.apply(user=draft.user, reason=f"Import: {draft.reason}", now=now)
        draft.delete()
        return Prepared(plan)


def _planned(new_table: NewTable, content: bytes) -> tuple[Importable, Plan]:
    table = new_table()
    try:
        rows = read(content, known=table.columns(), required=table.required)
    except Unreadable as refused:
        return table, Plan(faults=refused.faults)
    return table, table.plan_table(rows)
