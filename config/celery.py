"""The Celery application and its one schedule.

One schedule drives production (Celery beat) and the embedded default (config/scheduler.py): there is no second list.
"""

import logging.config
import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, task_success
from django.conf import settings
from django.utils import timezone
from django_structlog.celery.steps import DjangoStructLogInitStep

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("berth")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Each line that a task writes says whose it is.
app.steps["worker"].add(DjangoStructLogInitStep)


@setup_logging.connect
def log_as_the_web_does(**kwargs: Any) -> None:
    """In place of Celery's own lines, which are no JSON and hide nothing."""
    logging.config.dictConfig(settings.LOGGING)


@task_success.connect
def write_down(sender: Any, **kwargs: Any) -> None:
    """When a task last ended well, whichever process ran it."""
    from config.periodic import remember  # It reads the models, which are not there yet when this module is loaded.

    remember(sender.name, timezone.now())
