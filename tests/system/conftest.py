"""One production shape for all tests of processes; each test starts the services it is about."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.system.clients import ApiClient, Browser
from tests.system.processes import Shape


@pytest.fixture(scope="session")
def built() -> Iterator[Shape]:
    # Named as the other servers of the suite: whoever starts them next removes what a killed run left.
    base = Path(tempfile.mkdtemp(prefix=f"{services.PREFIX}{os.getpid()}-", dir=services.FOLDER))
    base.chmod(0o755)
    shape = Shape(base)
    try:
        shape.build()
        yield shape
    finally:
        shape.close()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def shape(built: Shape) -> Iterator[Shape]:
    """The servers, nothing in Redis, no mail taken yet; what the test starts is stopped, the web service apart."""
    built.mails.empty()
    # Mails of earlier tests, which nobody had to send, would only stand in the queue.
    built.sql("UPDATE rentals_notice SET state = 'dropped' WHERE state = 'pending'")
    with built.redis_client() as client:
        client.flushall()
    yield built
    built.mails.release.set()
    built.stop(*(process for process in built.processes if process.service != "web"))


@pytest.fixture
def web(shape: Shape) -> Shape:
    """The web service is up, with its two workers."""
    if not shape.web_is_up():
        shape.start("web")
    return shape


@pytest.fixture
def buyers(shape: Shape) -> list[dict[str, Any]]:
    """Four new organizations, with two keys each."""
    return shape.make("organizations", number=4, keys=2)


@pytest.fixture
def clients(web: Shape, buyers: list[dict[str, Any]]) -> Iterator[list[ApiClient]]:
    """A program for each key: those of one organization stand beside each other."""
    made = [ApiClient(web.url, key) for each in buyers for key in each["keys"]]
    yield made
    for client in made:
        client.close()


@pytest.fixture
def browsers(web: Shape, buyers: list[dict[str, Any]]) -> Iterator[list[Browser]]:
    """The owner of each organization, signed in."""
    made = [Browser(web.url, each["owner"]) for each in buyers]
    yield made
    for browser in made:
        browser.close()


@pytest.fixture
def staff(web: Shape) -> Iterator[Browser]:
    browser = Browser(web.url, web.make("staff"))
    yield browser
    browser.close()
