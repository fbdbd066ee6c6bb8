"""The Celery application and its one schedule.

One schedule drives production (Celery beat) and the embedded default (config/scheduler.py): there is no second list.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("berth")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
