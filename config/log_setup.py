"""How the log is written: structured lines with the id of their request, and without secrets."""

from __future__ import annotations

from typing import Any

import structlog

from config.log_lines import of_its_request, without_secrets


def log_setup(level: str, *, demo: bool, for_people: bool) -> dict[str, Any]:
    """Django's LOGGING, with structlog set up to write into it; JSON, unless people read along.

    A demo prints its address and logins; a line for each request and task would carry them off the screen.
    """
    context: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *context,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    renderers: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        without_secrets,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
        if for_people
        else structlog.processors.JSONRenderer(),
    ]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [*context, of_its_request],
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
            }
        },
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            "django_structlog": {"level": "WARNING" if demo else level},
            "celery.app.trace": {"level": "WARNING" if demo else level},
            # They log whole addresses and headers of outgoing requests, where secrets are.
            "httpx2": {"level": "WARNING"},
            "httpcore2": {"level": "WARNING"},
        },
    }
