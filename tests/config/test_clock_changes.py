"""The schedule is of intervals in UTC: one run per interval, whatever summer time does."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from celery import Celery
from celery.beat import ScheduleEntry
from django.conf import settings

from config.scheduler import Entry

# Clocks go back in Europe and in North America, and forward in Europe; and the day that only leap years have.
CHANGES = [
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC),
    datetime(2027, 3, 28, 1, tzinfo=UTC),
    datetime(2028, 2, 29, 0, tzinfo=UTC),
]
# Names of their own, so that nothing here is taken for Berth's own task.
SCHEDULE = [(name, spec | {"task": f"clock.{name}"}) for name, spec in sorted(settings.CELERY_BEAT_SCHEDULE.items())]


@pytest.fixture
def counting():
    """An application with the tasks of the schedule, that only count their runs."""
    app = Celery("clock", set_as_current=False)
    app.conf.update(timezone=settings.CELERY_TIMEZONE, task_always_eager=True)
    runs: dict[str, int] = {}
    for _, spec in SCHEDULE:

        def run(name=spec["task"], **_):
            runs[name] = runs.get(name, 0) + 1

        app.task(name=spec["task"], lazy=False, shared=False)(run)
    return app, runs


def test_every_line_is_an_interval_in_utc():
    assert settings.CELERY_TIMEZONE == settings.TIME_ZONE == "UTC"
    assert all(isinstance(spec["schedule"], timedelta) for _, spec in SCHEDULE)


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_scheduler_runs_each_task_once_an_interval(db, counting, change):
    """B166."""
    app, runs = counting
    for name, spec in SCHEDULE:
        with time_machine.travel(change - 3 * spec["schedule"], tick=False) as clock:
            entry = Entry(app, name, spec)
            for _ in range(6):
                clock.shift(spec["schedule"])
                entry.run_if_due(app)
                # Asked again at once, it is not due a second time.
                entry.run_if_due(app)
        assert runs.pop(spec["task"]) == 6, name


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_celery_beat_finds_each_task_due_once_an_interval(counting, change):
    """B166."""
    app, _ = counting
    for name, spec in SCHEDULE:
        with time_machine.travel(change - 3 * spec["schedule"], tick=False) as clock:
            entry = ScheduleEntry(name=name, task=spec["task"], schedule=spec["schedule"], app=app)
            due = 0
            for _ in range(12):
                clock.shift(spec["schedule"] / 2)
                if entry.is_due().is_due:
                    due, entry = due + 1, entry.next()
        assert due == 6, name
