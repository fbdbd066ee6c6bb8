"""What of a text can be seen: the one rule by which feeds clean texts, and forms refuse names that show nothing."""

import unicodedata

from django.core.exceptions import ValidationError

# Letters and signs to Unicode, nothing to the eye: fillers of Hangul and Egyptian, the empty cell of Braille, a note
# without a head.
BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0\U00013441\U00013442\U0001d159")
# Marks that only choose a form of the letter before them, or join and part letters.
_SELECTORS = ((0x034F, 0x034F), (0x17B4, 0x17B5), (0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
# Controls, formatting (what turns the direction of writing, too), halves of pairs, private and unknown letters.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def has_something_to_see(text: str) -> bool:
    """Whether there is a letter, a figure or a sign; marks that stand on nothing are none.

    >>> has_something_to_see("RTX"), has_something_to_see("\\u3164\\u200b \\u0301")
    (True, False)
    """
    return any(unicodedata.category(letter)[0] in "LNPS" and letter not in BLANKS for letter in text)


def is_unseen(letter: str) -> bool:
    """Whether a letter that is no blank shows nothing."""
    if letter.isprintable():
        return any(first <= ord(letter) <= last for first, last in _SELECTORS)
    return not letter.isspace() and unicodedata.category(letter) in _UNSEEN


def is_plain_line(text: str) -> bool:
    """Whether the text is one line that can be seen and hides nothing.

    >>> is_plain_line("RTX 4090"), is_plain_line("RTX\\u202e4090"), is_plain_line(" ")
    (True, False, False)
    """
    return text.isprintable() and BLANKS.isdisjoint(text) and has_something_to_see(text)


def name_to_see(text: str) -> None:
    """Raises: ValidationError."""
    if not is_plain_line(text):
        raise ValidationError("Write one line of plain text that can be seen.", "nothing_to_see")
