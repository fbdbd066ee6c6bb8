"""How gunicorn serves Berth: `gunicorn -c python:config.gunicorn config.wsgi:application`.

Without Redis the cache and the periodic work live in the process, so there must be one: WEB_CONCURRENCY raises the
number of processes for installations that have Redis.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

bind = os.environ.get("BIND", "127.0.0.1:8000")
workers = int(os.environ.get("WEB_CONCURRENCY", "1"))
worker_class = "gthread"
threads = 8
timeout = 60
graceful_timeout = 10
# Longer than clients and proxies keep an idle connection (mostly 5 to 60 s): whoever closes first must not be the one
# that is being asked, or the question is lost in a reset.
keepalive = 75
# The address is the state of every public page; the calculator's with twenty entries and their reasons is a long one.
limit_request_line = 8190
# Each request is logged once, by the application, with its request id.
accesslog = None
loglevel = "warning"
control_socket_disable = True

# Counters of several processes add up in files. Set before the application is loaded: the metrics' library looks once.
if workers > 1 and not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="berth-metrics-")

_scheduler: Any = None


def on_starting(server: Any) -> None:
    """What processes of an earlier start counted is over."""
    for path in _counter_files():
        path.unlink(missing_ok=True)


def on_exit(server: Any) -> None:
    for path in _counter_files():
        path.unlink(missing_ok=True)


def _counter_files() -> list[Path]:
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    return list(Path(folder).glob("*.db")) if folder else []


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
