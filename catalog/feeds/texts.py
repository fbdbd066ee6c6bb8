"""Texts of strangers: cleaned before they are kept, shortened before they are shown."""

import re
import unicodedata
from functools import lru_cache
from typing import Any

# Control characters, invisible formatting and everything that turns the direction of writing.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_IP_ADDRESS = re.compile(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])", re.IGNORECASE
)


def clean(text: str, most: int) -> str:
    """The text in one line and one form, without what cannot be seen, cut to `most` characters.

    Markup stays what it is, text: pages escape it.

    >>> clean(" RTX\\u202e 4090\\x00 \\n Ti ", 120)
    'RTX 4090 Ti'
    """
    # Cut first, so that what is remembered is short.
    return _clean(text[: most * 4], most)


@lru_cache(maxsize=4096)
def _clean(text: str, most: int) -> str:
    if not (text.isascii() and text.isprintable()):
        seen = "".join(" " if letter.isspace() else letter for letter in text if not _is_unseen(letter))
        text = unicodedata.normalize("NFC", seen)
    return " ".join(text.split())[:most].strip()


def _is_unseen(letter: str) -> bool:
    return not letter.isspace() and not letter.isprintable() and unicodedata.category(letter) in _UNSEEN


@lru_cache(maxsize=4096)
def without_addresses(text: str) -> str:
    """The text without IP addresses: they are nobody's place, and personal.

    >>> without_addresses("Berlin 203.0.113.9, DE")
    'Berlin , DE'
    """
    return _IP_ADDRESS.sub("", text).strip()


def shown(value: Any, most: int = 60) -> str:
    """A value of a feed as a sentence shows it.

    >>> shown("a" * 70, 10), shown(None), shown([1])
    ('“aaaaaaaaa…”', 'null', 'a list')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = clean(value if isinstance(value, str) else str(getattr(value, "text", value)), most * 2)
    text = text if len(text) <= most else text[: most - 1] + "…"
    return f"“{text}”" if isinstance(value, str) else text
