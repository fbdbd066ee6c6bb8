"""Texts of strangers: cleaned before they are kept, shortened before they are shown."""

import ipaddress
import re
import unicodedata
from functools import lru_cache
from typing import Any

from catalog.visible import BLANKS, has_something_to_see, is_unseen

_WORD = re.compile(r"[^\s,;|]+")
# Four or more numbers between dots, also octal and hexadecimal ones, and with blanks around the dots.
_DOTTED = re.compile(r"(?:0x[0-9a-f]+|\d+)(?:\s*\.\s*(?:0x[0-9a-f]+|\d+)){3,}", re.IGNORECASE)
# IPv6, and what network cards are called; a name that holds an address between hyphens; an address of the web, of mail.
_ADDRESS = re.compile(r"::|(?:[0-9a-f]{1,4}:){4}|\d{1,3}(?:-\d{1,3}){3}\S*\.[a-z]|://|\w@\w|\bxn--", re.IGNORECASE)
# One number that resolvers read as four: 3405803785 is 203.0.113.9.
_NUMBER = re.compile(r"\W*(?:0x0*([0-9a-f]{7,8})|(\d{8,10}))(?::\d+)?\W*", re.IGNORECASE)
_FIRST_ADDRESS, _LAST_ADDRESS = 2**24, 2**32 - 1


def clean(text: str, most: int) -> str:
    """The text in one line and one form, without what cannot be seen, cut to `most` characters.

    Nothing is left of a text that shows nothing. Markup stays what it is, text: pages escape it.

    >>> clean(" RTX\\u202e 4090\\x00 \\n Ti ", 120)
    'RTX 4090 Ti'
    """
    # Cut first, so that what is remembered is short.
    return _clean(text[: most * 4], most)


@lru_cache(maxsize=4096)
def _clean(text: str, most: int) -> str:
    if not (text.isascii() and text.isprintable()):
        seen = "".join(
            " " if letter.isspace() or letter in BLANKS else letter for letter in text if not is_unseen(letter)
        )
        text = unicodedata.normalize("NFC", seen)
        if not has_something_to_see(text):
            return ""
    return " ".join(text.split())[:most].strip()


@lru_cache(maxsize=4096)
def without_addresses(text: str, instead: str = "") -> str:
    """The text without words that are or hold an address of a computer or a person: nobody's place, and personal.

    >>> without_addresses("Berlin [203.0.113.9]:22, DE"), without_addresses("fe80::1%eth0 Oslo")
    ('Berlin , DE', 'Oslo')
    """
    # Figures and dots of other scripts are read as well, and blanks around dots are none.
    plain = unicodedata.normalize("NFKC", text).replace("\u3002", ".")
    plain = _DOTTED.sub(lambda found: "".join(found[0].split()), plain)
    kept = _WORD.sub(lambda word: instead if _holds_address(word[0]) else word[0], plain)
    return (text if kept == plain else kept).strip()


def _holds_address(word: str) -> bool:
    if _ADDRESS.search(word) or _DOTTED.search(word):
        return True
    number = _NUMBER.fullmatch(word)
    if number is None:
        return False
    hexadecimal, decimal = number.groups()
    return _FIRST_ADDRESS <= (int(hexadecimal, 16) if hexadecimal else int(decimal)) <= _LAST_ADDRESS


def is_address(text: str) -> bool:
    """Whether what should be a name of its own is, or holds, an IP address."""
    try:
        ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return _DOTTED.search(text) is not None
    return True


def shown(value: Any, most: int = 60) -> str:
    """A value of a feed as a sentence shows it, without addresses.

    >>> shown("a" * 70, 10), shown(" "), shown(None), shown([1])
    ('“aaaaaaaaa…”', 'blank', 'null', 'a list')
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
    if isinstance(value, str):
        if not text:
            return "blank"
        text = without_addresses(text, "(address)")
    text = text if len(text) <= most else text[: most - 1] + "…"
    return f"“{text}”" if isinstance(value, str) else text
