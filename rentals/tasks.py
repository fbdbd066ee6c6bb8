"""Periodic work of the tenants; the schedule is in the settings."""

from celery import shared_task
from django.utils import timezone

from rentals import endings, gone_machines, notices, saved_searches, webhooks_events, webhooks_sealing, webhooks_sending


@shared_task
def end_due_orders() -> int:
    return endings.end_due_orders(timezone.now())


@shared_task
def announce_ends() -> int:
    return notices.announce_ends(timezone.now())


@shared_task
def send_notices() -> int:
    return notices.send_notices(timezone.now)


@shared_task
def send_webhooks() -> int:
    return webhooks_sending.send_webhooks(timezone.now)


@shared_task
def tell_of_ends() -> int:
    return webhooks_events.tell_of_ends(timezone.now())


@shared_task
def check_saved_searches() -> int:
    return saved_searches.check_saved_searches(timezone.now())


@shared_task
def forget_gone_machines() -> int:
    return gone_machines.forget_gone_machines(timezone.now())


@shared_task
def prune_webhooks() -> int:
    return webhooks_sending.prune(timezone.now())


@shared_task
def seal_webhook_secrets_anew() -> int:
    return webhooks_sealing.seal_anew()
