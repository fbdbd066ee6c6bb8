"""What lists say and nobody understands: asked once per provider and spelling, answered once for all of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from catalog.feeds import GpuNames, Places, gpu_names, places
from catalog.models import FeedQuestion, FeedState, Gpu, GpuAlias, PlaceAlias, Provider
from catalog.visible import has_something_to_see

# Of one provider; a list in which every name is another one is an accident, not that many questions, and nor is a list
# with other ones each time.
MOST_QUESTIONS = 500
# With a few words before it, it fits the reason of a history row (100 characters).
REASON_LENGTH = 80

Kind = FeedQuestion.Kind
Question = tuple[str, str]


def checked_reason(reason: str) -> str:
    """The reason without blanks around it.

    Raises: ValidationError.
    """
    reason = reason.strip()
    if not has_something_to_see(reason):
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
def resolve_questions(
    questions: Iterable[FeedQuestion],
    *,
    by: Any,
    reason: str,
    now: datetime,
    gpu: Gpu | None = None,
    country: str | None = None,
) -> None:
    """Give these questions one answer, for every provider and way of writing them; the lists are fetched again at once.

    A place without a `country` is known to name none.

    Raises: ValidationError for an answer of the wrong kind or a reason that is missing; then none is answered.
    """
    reason = checked_reason(reason)
    questions = list(questions)
    for question in {_key(question): question for question in questions}.values():
        if question.kind == Kind.GPU:
            _alias_gpu(question.raw, gpu, by, reason, now)
        else:
            _alias_place(question.raw, country, by, reason, now)
    same = alike(questions)
    fetch_again(same, now)
    same.update(resolved_at=now, resolved_by=by, reason=reason)


def alike(questions: Iterable[FeedQuestion]) -> QuerySet[FeedQuestion]:
    """The questions of all providers about the same names, however they are written."""
    wanted = {_key(question) for question in questions}
    every = FeedQuestion.objects.filter(kind__in={kind for kind, _ in wanted})
    return every.filter(pk__in=[one.pk for one in every.only("kind", "raw") if _key(one) in wanted])


def close_understood(now: datetime) -> int:
    """Close every open question whose name has a meaning by now, however it got it; how many that are.

    An alias or a GPU that was added, edited or imported answers questions that nobody looked at.
    """
    waiting = list(FeedQuestion.objects.filter(resolved_at=None).only("kind", "raw"))
    if not waiting:
        return 0
    gpus, countries = GpuNames.load(), Places.load()
    understood: defaultdict[str, list[int]] = defaultdict(list)
    for question in waiting:
        if meaning := _meaning(question, gpus, countries):
            understood[meaning].append(question.pk)
    closed = 0
    for meaning, keys in understood.items():
        reason = f"Understood since {now:%Y-%m-%d %H:%M} UTC: {meaning}."[:300]
        still = FeedQuestion.objects.filter(pk__in=keys, resolved_at=None)
        fetch_again(still, now)
        closed += still.update(resolved_at=now, resolved_by=None, reason=reason)
    return closed


def fetch_again(questions: QuerySet[FeedQuestion], now: datetime) -> None:
    """Let the lists that asked be fetched at once; one whose server failed is left the rest that it has."""
    FeedState.objects.filter(provider__in=questions.values("provider"), failures=0).update(due_at=now)


def _key(question: FeedQuestion) -> tuple[str, str]:
    """What the reader of a list compares."""
    return question.kind, gpu_names.key(question.raw) if question.kind == Kind.GPU else places.key(question.raw)


def _meaning(question: FeedQuestion, gpus: GpuNames, countries: Places) -> str:
    """What the name means, as the end of a sentence; empty while nobody knows."""
    if question.kind == Kind.GPU:
        meant = gpus.listed(question.raw)
        return f"a name of {meant}" if meant else ""
    place = countries.find(question.raw)
    return f"it means {place.country or 'no country'}" if place.understood else ""


def _alias_gpu(raw: str, gpu: Gpu | None, by: Any, reason: str, now: datetime) -> None:
    if gpu is None:
        raise ValidationError("Choose the GPU that this name means.", "gpu_missing")
    if GpuAlias.objects.filter(gpu=gpu, name=raw).exists():
        raise ValidationError(f"“{raw}” is a name of {gpu} already.", "alias_exists")
    _keep(GpuAlias(gpu=gpu, name=raw), by, reason, now)
    Gpu.history.bulk_history_create(
        [gpu], update=True, default_user=by, default_change_reason=f"Alias added: {reason}", default_date=now
    )


def _alias_place(raw: str, country: str | None, by: Any, reason: str, now: datetime) -> None:
    same = [alias for alias in PlaceAlias.objects.all() if places.key(alias.name) == places.key(raw)]
    for alias in same or [PlaceAlias(name=raw)]:
        alias.country = country or None
        _keep(alias, by, reason, now)


def _keep(alias: Any, by: Any, reason: str, now: datetime) -> None:
    """Save the alias, with who gave it and why in its history."""
    alias.full_clean()
    alias._history_user, alias._change_reason, alias._history_date = by, reason, now
    alias.save()
