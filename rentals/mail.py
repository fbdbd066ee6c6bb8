"""Mail that tells of an act: sent when the act is committed, and never a reason for it to fail."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string

logger = logging.getLogger(__name__)


def send_after_commit(*, to: str, subject: str, template: str, context: Mapping[str, Any]) -> None:
    """Send one mail of plain text once the transaction around is through; without one, at once."""
    text = render_to_string(template, dict(context))
    one_line = " ".join(f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}{subject}".split())
    transaction.on_commit(lambda: _send(to, one_line, text))


def _send(to: str, subject: str, text: str) -> None:
    try:
        send_mail(subject, text, settings.DEFAULT_FROM_EMAIL, [to])
    except Exception:
        # Whatever a mail server or its library says: the act is done, and its page says how to go on without the mail.
        logger.exception("A mail could not be sent.")
