"""Periodic work takes rows one by one: the trouble of one is written to the log, and the others have their turn."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError

logger = logging.getLogger(__name__)


@contextmanager
def alone(trouble: str, *about: object) -> Iterator[None]:
    """What fails inside is logged in these words; that the database is away is every row's trouble, and passes."""
    try:
        yield
    except (InterfaceError, OperationalError):
        raise
    except Exception:
        logger.exception(trouble, *about)
