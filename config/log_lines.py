"""What no line of the log may hold: links that are keys, keys themselves, passwords and queries in addresses."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

HIDDEN = "[hidden]"
_KEYS = (
    (re.compile(r"\bberth_([A-Za-z0-9]+)_[A-Za-z0-9]+"), rf"berth_\1_{HIDDEN}"),
    (re.compile(r"\bwhsec_[A-Za-z0-9+/=_-]+"), f"whsec_{HIDDEN}"),
)
_PATTERNS = (
    # Links that let in whoever has them.
    (re.compile(r"(/(?:invitations|accounts/password/reset/key|accounts/confirm-email)/)[^/\s\"'?]+"), rf"\1{HIDDEN}"),
    # What a query holds is the asker's own: what they look for, and keys where somebody put them there.
    (
        re.compile(r"((?:https?://|\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /)[^\s\"'?]*\?)[^\s\"']+"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://)[^/\s\"'@]*@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',]+"), rf"\1 {HIDDEN}"),
    *_KEYS,
)


def hide_keys(text: str) -> str:
    """The text without the secret part of API keys and without secrets of webhooks, wherever somebody put one."""
    for pattern, instead in _KEYS:
        text = pattern.sub(instead, text)
    return text


def hide(text: str) -> str:
    """The text without what lets somebody in; the part of an API key by which it is looked up stays."""
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def of_its_request(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Django's own lines about a request: with its id, though they may come after it, and for what a client did wrong
    without a trace, which would name lines of ours that are right."""
    record = event.get("_record")
    if found := getattr(getattr(record, "request", None), "request_id", ""):
        event.setdefault("request_id", found)
    if getattr(record, "status_code", 500) < 500:
        event.pop("exc_info", None)
    return event


def without_secrets(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Of structlog's processors the last before the line is written, so that traces pass it too."""
    for name, value in event.items():
        if isinstance(value, BaseException):
            value = repr(value)
        if isinstance(value, str):
            event[name] = hide(value)
    return event
