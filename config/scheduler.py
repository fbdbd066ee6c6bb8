"""Periodic work without Redis: threads of the serving process do what Celery beat and a worker do in production.

They read the same CELERY_BEAT_SCHEDULE and run the same tasks, each line of it in a thread of its own: while a task
waits for somebody's server, terms end and mails go out. config/gunicorn.py starts them, so that management commands and
tests never have any unasked.
"""

import logging
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from celery import Celery
from celery.schedules import BaseSchedule, maybe_schedule
from django.db import close_old_connections
from structlog.contextvars import bound_contextvars

logger = logging.getLogger(__name__)

# A schedule that is wrong about its next time must neither spin nor sleep for ever.
SHORTEST_WAIT_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 60.0


class Entry:
    """One line of the schedule and when it last ran. As with beat, the first run comes one interval after the start."""

    def __init__(self, app: Celery, name: str, spec: Mapping[str, Any]) -> None:
        self.name = name
        self.task = spec["task"]
        self.args = spec.get("args", ())
        self.kwargs = spec.get("kwargs", {})
        self.schedule: BaseSchedule = maybe_schedule(spec["schedule"], app=app)
        self.last_run: datetime = self.schedule.now()

    def run_if_due(self, app: Celery) -> float:
        """Run the task when its time has come, and return the seconds until it wants to be asked again."""
        due, seconds = self.schedule.is_due(self.last_run)
        if due:
            self.last_run = self.schedule.now()
            self._run(app)
        return float(seconds)

    def _run(self, app: Celery) -> None:
        try:
            # As a worker does it: the lines of one run have an id in common.
            with bound_contextvars(task_id=str(uuid4())):
                app.tasks[self.task].apply(args=self.args, kwargs=self.kwargs, throw=True)
        except Exception:
            logger.exception("The periodic task %s (%s) failed; it runs again at its next time.", self.name, self.task)
        finally:
            close_old_connections()


class Scheduler:
    """Drives a schedule in threads of its own from `start` until `stop`; both may be called twice."""

    def __init__(self, app: Celery, schedule: Mapping[str, Mapping[str, Any]]) -> None:
        self._app = app
        self._schedule = schedule
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        if self._threads:
            return
        for name, spec in self._schedule.items():
            # Daemon: a task that hangs must not keep the process from ending.
            thread = threading.Thread(target=self._drive, args=(name, spec), name=f"scheduler: {name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self, timeout: float = 5) -> None:
        """Ask the threads to end and give the tasks in hand `timeout` seconds together."""
        self._stopping.set()
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))

    def _drive(self, name: str, spec: Mapping[str, Any]) -> None:
        entry = Entry(self._app, name, spec)
        while True:
            wait = self._ask(entry)
            if self._stopping.wait(min(max(wait, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)):
                return

    def _ask(self, entry: Entry) -> float:
        try:
            return entry.run_if_due(self._app)
        except Exception:
            logger.exception("The schedule of %s cannot be read; it is asked again later.", entry.name)
            return LONGEST_WAIT_SECONDS
