"""Periodic work of the tenants; the schedule is in the settings."""

from celery import shared_task
from django.utils import timezone

from rentals import endings


@shared_task
def end_due_orders() -> int:
    return endings.end_due_orders(timezone.now())
