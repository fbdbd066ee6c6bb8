"""What lists say and nobody understands: asked once per provider and spelling, answered once for all of them."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from catalog.models import FeedQuestion, FeedState, Gpu, GpuAlias, PlaceAlias, Provider

# Of one provider; a list in which every name is another one is an accident, not that many questions, and nor is a list
# with other ones each time.
MOST_QUESTIONS = 500
# With a few words before it, it fits the reason of a history row (100 characters).
REASON_LENGTH = 80

Question = tuple[str, str]


def checked_reason(reason: str) -> str:
    """The reason without blanks around it.

    Raises: ValidationError.
    """
    reason = reason.strip()
    if not reason:
        raise ValidationError("Give a reason: it is kept in the history.", "reason_missing")
    if len(reason) > REASON_LENGTH:
        raise ValidationError(f"Keep the reason to {REASON_LENGTH} characters; it has {len(reason)}.", "reason_long")
    return reason


def ask(provider: Provider, asked: Counter[Question], examples: Mapping[Question, str], *, now: datetime) -> None:
    """Keep what a list that was read at `now` left open; a question that was answered before that and came again opens.

    An answer that was given while the list was being read is not lost: its aliases were not looked at yet.
    """
    kept = asked.most_common(MOST_QUESTIONS)
    FeedQuestion.objects.bulk_create(
        [
            FeedQuestion(
                provider=provider,
                kind=kind,
                raw=raw,
                count=count,
                example=examples.get((kind, raw), ""),
                first_seen_at=now,
                last_seen_at=now,
            )
            for (kind, raw), count in sorted(kept)
        ],
        update_conflicts=True,
        unique_fields=["provider", "kind", "raw"],
        update_fields=["count", "example", "last_seen_at"],
    )
    questions = FeedQuestion.objects.filter(provider=provider)
    questions.filter(last_seen_at=now, resolved_at__lt=now).update(resolved_at=None, resolved_by=None, reason="")
    questions.filter(last_seen_at__lt=now, count__gt=0).update(count=0)
    waiting = questions.filter(resolved_at=None).order_by("-count", "-last_seen_at", "pk")
    FeedQuestion.objects.filter(pk__in=list(waiting.values_list("pk", flat=True)[MOST_QUESTIONS:])).delete()


@transaction.atomic
def resolve_question(
    question: FeedQuestion, *, by: Any, reason: str, now: datetime, gpu: Gpu | None = None, country: str | None = None
) -> None:
    """Answer the question for every provider that wrote the same; their lists are fetched again at once.

    A place without a `country` is known to name none.

    Raises: ValidationError for an answer of the wrong kind or a reason that is missing.
    """
    reason = checked_reason(reason)
    if question.kind == FeedQuestion.Kind.GPU:
        _alias_gpu(question.raw, gpu, by, reason, now)
    else:
        _alias_place(question.raw, country)
    same = FeedQuestion.objects.filter(kind=question.kind, raw__iexact=question.raw)
    FeedState.objects.filter(provider__in=same.values("provider")).update(due_at=now)
    same.update(resolved_at=now, resolved_by=by, reason=reason)


def _alias_gpu(raw: str, gpu: Gpu | None, by: Any, reason: str, now: datetime) -> None:
    if gpu is None:
        raise ValidationError("Choose the GPU that this name means.", "gpu_missing")
    alias = GpuAlias(gpu=gpu, name=raw)
    if GpuAlias.objects.filter(gpu=gpu, name=raw).exists():
        raise ValidationError(
            f"“{raw}” is a name of {gpu} already; the memory that the offer states, or does not state, fits no single "
            "GPU of that name.",
            "alias_exists",
        )
    alias.full_clean()
    alias.save()
    Gpu.history.bulk_history_create(
        [gpu], update=True, default_user=by, default_change_reason=f"Alias added: {reason}", default_date=now
    )


def _alias_place(raw: str, country: str | None) -> None:
    alias = PlaceAlias.objects.filter(name__iexact=raw).first() or PlaceAlias(name=raw)
    alias.country = country or None
    alias.full_clean()
    alias.save()
