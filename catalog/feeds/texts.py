"""Texts of strangers: cleaned before they are kept, shortened before they are shown."""

import ipaddress
import re
import unicodedata
from functools import lru_cache
from typing import Any

from catalog.visible import BLANKS, has_something_to_see, is_unseen

_WORD = re.compile(r"[^\s,;|]+")
# A dot as people write it where it must not be a link: [.], (.), "dot", %2E, or another sign that looks like one.
_DOT = re.compile(
    r"\s*[\[({<]?\s*(?:[.\u00b7\u2022\u2027\u2219\u22c5\u30fb\u06d4]|dot|%2e)\s*[\])}>]?\s*", re.IGNORECASE
)
# Four or more numbers between dots, also octal and hexadecimal ones, and with blanks around the dots.
_DOTTED = re.compile(rf"(?:0x[0-9a-f]+|\d+)(?:{_DOT.pattern}(?:0x[0-9a-f]+|\d+)){{3,}}", re.IGNORECASE)
# Accents, rings and boxes on a figure.
_ON_FIGURES = re.compile(r"(?<=\d)[\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f]+")
# IPv6, and what network cards are called; a name that holds an address between hyphens; an address of the web, of mail.
_ADDRESS = re.compile(
    r"::|(?:[0-9a-f]{1,4}:){4}|\bip(?:-\d{1,3}){4}(?!\d)|\d{1,3}(?:-\d{1,3}){3}\S*\.[a-z]|://|\w@\w|\bxn--",
    re.IGNORECASE,
)
# Four numbers of a byte that are a word of their own.
_FOUR_BYTES = re.compile(r"\W*(\d{1,3})([-_:/])(\d{1,3})\2(\d{1,3})\2(\d{1,3})\W*")
# One number that resolvers read as four: 3405803785 is 203.0.113.9.
_NUMBER = re.compile(r"\W*(\d{8,10})(?::\d+)?\W*")
_HEXADECIMAL = re.compile(r"\W*0x0*[0-9a-f]{7,8}(?::\d+)?\W*", re.IGNORECASE)
# A list has a hundred thousand names, and few of them have what every address has.
_MAY_HOLD_ONE = re.compile(r"[^\x00-\x7f]|[.:@%]|dot|0x|ip-|-.*-.*-|xn--", re.IGNORECASE)
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
    plain = _plain(text)
    kept = _WORD.sub(
        lambda word: instead if _holds_address(word[0]) or _is_address_in_figures(word[0]) else word[0], plain
    )
    return (text if kept == plain else kept).strip()


def _plain(text: str) -> str:
    """The text with the figures and dots of other scripts as ours, and no blanks within an address."""
    plain = _ON_FIGURES.sub("", unicodedata.normalize("NFKC", text).replace("\u3002", "."))
    return _DOTTED.sub(lambda found: _DOT.sub(".", found[0]), plain)


def _holds_address(word: str) -> bool:
    return bool(_ADDRESS.search(word) or _DOTTED.search(word) or _HEXADECIMAL.fullmatch(word))


def _is_address_in_figures(word: str) -> bool:
    """Whether a word that would be a fine number or name of a thing is no place's name, and may be an address."""
    if four := _FOUR_BYTES.fullmatch(word):
        return all(int(part) < 256 for part in four.group(1, 3, 4, 5))
    number = _NUMBER.fullmatch(word)
    return number is not None and _FIRST_ADDRESS <= int(number[1]) <= _LAST_ADDRESS


def is_address(text: str) -> bool:
    """Whether what should be a name of its own is, or holds, an address; what is only figures may well be a name.

    >>> is_address("[2001:db8::9]:22"), is_address("node@example.com"), is_address("3405803785"), is_address("1-2-3-4")
    (True, True, False, False)
    """
    if not _MAY_HOLD_ONE.search(text):
        return False
    try:
        ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return any(_holds_address(word[0]) for word in _WORD.finditer(_plain(text)))
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
