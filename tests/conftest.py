"""Fixtures for the whole suite. `acme` and `globex` are organizations with an `.owner`: the second is the stranger."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connections

from tests import factories, tenancy
from tests.run import chromium

DATABASE_FIXTURES = frozenset({"db", "transactional_db", "live_server"})


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Before the test database is made: its tables belong to the role that owns tables."""
    if "owner" in settings.DATABASES:
        tenancy.become("owner")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        if "owner" in settings.DATABASES:
            tenancy.become("application")
        tenancy.watch()
    yield
    with django_db_blocker.unblock():
        if "owner" in settings.DATABASES:
            connections["owner"].close()
            tenancy.become("owner")


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    yield
    cache.clear()


@pytest.fixture
def acme(db: None) -> Any:
    return factories.make_organization("acme")


@pytest.fixture
def globex(db: None) -> Any:
    return factories.make_organization("globex")


@pytest.fixture
def gpu(db: None) -> Any:
    return factories.make_gpu("rtx-4090", name="RTX 4090", memory_gb_nominal=24)


@pytest.fixture
def machine(gpu: Any) -> Any:
    return factories.make_machine(gpu=gpu)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The system's Chromium: none is downloaded."""
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
    if os.geteuid() == 0:
        quiet.append("--no-sandbox")
    return {**browser_type_launch_args, "executable_path": chromium(), "args": quiet}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the database, before `-m` chooses, and leave out real transactions on SQLite."""
    from django.db import connection

    for item in items:
        if uses_database(item):
            item.add_marker(pytest.mark.database)
        if item.get_closest_marker("postgres") and connection.vendor != "postgresql":
            item.add_marker(pytest.mark.skip(reason="needs PostgreSQL: python tests/services.py pytest"))


def uses_database(item: pytest.Item) -> bool:
    """Whether a mark or a fixture gives the test a database: without one, pytest-django refuses every query."""
    marks = (item.get_closest_marker(name) for name in ("django_db", "postgres"))
    return any(marks) or not DATABASE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
