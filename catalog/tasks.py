"""Periodic work of the catalog; the schedule is in the settings."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from catalog import refresh
from catalog.refresh import dispatching, forgetting, secrets
from catalog.refresh.running import LONGEST_RUN


# The run ends itself before; these are for one that hangs where it cannot look at the clock. Shorter than the limit of
# all tasks, because a provider whose run hangs is not refreshed meanwhile.
@shared_task(soft_time_limit=LONGEST_RUN.seconds + 30, time_limit=LONGEST_RUN.seconds + 60)
def refresh_provider(provider_id: int) -> str:
    try:
        return refresh.refresh_provider(provider_id).outcome
    except refresh.Busy as busy:
        return busy.code


@shared_task
def refresh_due_providers() -> int:
    def send(provider_id: int, seconds: int) -> Any:
        return refresh_provider.apply_async((provider_id,), expires=seconds)

    return dispatching.send_due(send, timezone.now())


@shared_task
def forget_old_runs() -> int:
    return forgetting.forget_old_runs(timezone.now())


@shared_task
def forget_unasked_questions() -> int:
    return forgetting.forget_unasked_questions(timezone.now())


@shared_task
def seal_feed_secrets_anew() -> int:
    return secrets.seal_anew()
