"""How gunicorn serves Berth: `gunicorn -c python:config.gunicorn config.wsgi:application`.

Without Redis the cache and the periodic work live in the process, so there must be one: WEB_CONCURRENCY raises the
number of processes for installations that have Redis.
"""

import os
from typing import Any

bind = os.environ.get("BIND", "127.0.0.1:8000")
workers = int(os.environ.get("WEB_CONCURRENCY", "1"))
worker_class = "gthread"
threads = 8
timeout = 60
graceful_timeout = 10
# The address is the state of every public page; the calculator's with twenty entries and their reasons is a long one.
limit_request_line = 8190
# Each request is logged once, by the application, with its request id.
accesslog = None
loglevel = "warning"
control_socket_disable = True

_scheduler: Any = None


def post_worker_init(worker: Any) -> None:
    """Start the periodic work where no Celery beat does it."""
    global _scheduler
    from django.conf import settings

    if settings.IN_PROCESS_SCHEDULER:
        from config.celery import app
        from config.scheduler import Scheduler

        app.autodiscover_tasks(force=True)
        _scheduler = Scheduler(app, settings.CELERY_BEAT_SCHEDULE)
        _scheduler.start()


def worker_exit(server: Any, worker: Any) -> None:
    if _scheduler is not None:
        _scheduler.stop()
