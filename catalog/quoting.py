"""Words of somebody else's choosing in sentences of ours: repeated so that they can be shown, and what was meant."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_QUOTE = 40
# Comparing takes time with the square of the length; names of ours are shorter.
_LONGEST_COMPARED = 64


def shown(value: object) -> str:
    """What was given, fit to be repeated in a sentence: short, one line, only characters that can be sent.

    >>> shown("a\\x00b"), len(shown("a" * 50))
    ('a�b', 41)
    """
    text = str(value)[: LONGEST_QUOTE + 1].encode("utf-8", "replace").decode()
    text = "".join(letter if letter.isprintable() else "�" for letter in text)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known word that is most like one that is not; None where none is alike.

    >>> nearest("Contxt", ["context", "requests"]), nearest("colour", ["context", "requests"])
    ('context', None)
    """
    alike = get_close_matches(str(word)[:_LONGEST_COMPARED].lower(), list(known), n=1)
    return alike[0] if alike else None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A question that offers the nearest known word, to follow a sentence; empty where none is alike."""
    meant = nearest(word, known)
    return f" Did you mean {meant}?" if meant else ""
