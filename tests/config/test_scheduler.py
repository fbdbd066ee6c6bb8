"""The periodic work of an installation without Redis, driven with a real schedule of fractions of a second."""

import logging
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from celery import Celery
from django.conf import settings

from config.celery import app as berth
from config.scheduler import Scheduler

DEADLINE_SECONDS = 20


@pytest.fixture
def app() -> Iterator[Celery]:
    app = Celery("scheduler-test", set_as_current=False)
    app.conf.update(broker_url="memory://", task_always_eager=True, timezone="UTC")
    yield app
    app.close()


class Counter:
    """Counts calls, and lets a test wait until there were enough of them."""

    def __init__(self, enough: int) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.reached = threading.Event()
        self._enough = enough

    def __call__(self, *args: object) -> None:
        self.calls.append(args)
        if len(self.calls) >= self._enough:
            self.reached.set()


@pytest.fixture
def running() -> Iterator[list[Scheduler]]:
    schedulers: list[Scheduler] = []
    yield schedulers
    for scheduler in schedulers:
        scheduler.stop()


def start(app: Celery, running: list[Scheduler], schedule: dict[str, dict[str, object]]) -> Scheduler:
    scheduler = Scheduler(app, schedule)
    running.append(scheduler)
    scheduler.start()
    return scheduler


def test_a_task_runs_again_and_again_with_its_arguments(app: Celery, running: list[Scheduler]) -> None:
    counter = Counter(enough=3)

    @app.task(name="tick", shared=False)
    def tick(word: str) -> None:
        counter(word)

    start(app, running, {"tick": {"task": "tick", "schedule": timedelta(seconds=0.1), "args": ("hello",)}})
    assert counter.reached.wait(DEADLINE_SECONDS)
    assert set(counter.calls) == {("hello",)}


def test_a_task_that_fails_is_logged_and_stops_nobody(
    app: Celery, running: list[Scheduler], caplog: pytest.LogCaptureFixture
) -> None:
    failures, successes = Counter(enough=2), Counter(enough=2)

    @app.task(name="fail", shared=False)
    def fail() -> None:
        failures()
        raise RuntimeError("the feed is away")

    @app.task(name="succeed", shared=False)
    def succeed() -> None:
        successes()

    soon = timedelta(seconds=0.1)
    with caplog.at_level(logging.ERROR, "config.scheduler"):
        start(
            app,
            running,
            {
                "a-failing": {"task": "fail", "schedule": soon},
                "b-unknown": {"task": "nobody.wrote.this", "schedule": soon},
                "c-working": {"task": "succeed", "schedule": soon},
            },
        )
        assert failures.reached.wait(DEADLINE_SECONDS)
        assert successes.reached.wait(DEADLINE_SECONDS)
    assert "a-failing" in caplog.text
    assert "b-unknown" in caplog.text
    assert "c-working" not in caplog.text


def test_stopping_ends_the_threads_and_starting_twice_makes_no_more_of_them(
    app: Celery, running: list[Scheduler]
) -> None:
    before = threading.active_count()
    never = {"task": "nobody.wrote.this", "schedule": timedelta(hours=1)}
    scheduler = start(app, running, {"one": never, "another": never})
    scheduler.start()
    assert threading.active_count() == before + 2
    scheduler.stop(timeout=DEADLINE_SECONDS)
    assert threading.active_count() == before


def test_a_task_that_waits_for_somebodys_server_holds_up_no_other(app: Celery, running: list[Scheduler]) -> None:
    counter, over = Counter(enough=3), threading.Event()

    @app.task(name="slow", shared=False)
    def slow() -> None:
        over.wait(DEADLINE_SECONDS)

    @app.task(name="quick", shared=False)
    def quick() -> None:
        counter()

    soon = timedelta(seconds=0.1)
    start(app, running, {"slow": {"task": "slow", "schedule": soon}, "quick": {"task": "quick", "schedule": soon}})
    reached = counter.reached.wait(DEADLINE_SECONDS / 2)
    over.set()
    assert reached


def test_every_entry_of_the_real_schedule_names_a_task_that_exists(settings) -> None:
    from config.celery import app as celery_app

    celery_app.autodiscover_tasks(force=True)
    named = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert named
    assert named <= set(celery_app.tasks)


def test_no_task_of_the_schedule_holds_a_worker_for_ever() -> None:
    # Redis hands a task out again when nobody has said within an hour that it is done.
    visibility_seconds = 3600
    berth.autodiscover_tasks(force=True)
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        limit = berth.tasks[entry["task"]].time_limit or berth.conf.task_time_limit
        assert 0 < limit < visibility_seconds, entry["task"]
