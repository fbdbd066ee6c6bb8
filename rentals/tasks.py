"""Periodic work of the tenants; the schedule is in the settings."""

from celery import shared_task
from django.utils import timezone

from rentals import endings, notices


@shared_task
def end_due_orders() -> int:
    return endings.end_due_orders(timezone.now())


@shared_task
def announce_ends() -> int:
    return notices.announce_ends(timezone.now())


@shared_task
def send_notices() -> int:
    return notices.send_notices(timezone.now)
