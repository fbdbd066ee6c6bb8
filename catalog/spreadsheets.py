"""What a spreadsheet would run instead of showing it."""

import re

# What spreadsheets take for a formula, the full-width forms included; white space before it does not help.
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def is_formula(text: str) -> bool:
    """Whether a cell with the text must be marked as text. Numbers stay numbers, negative ones too.

    >>> is_formula("=1+1"), is_formula("-5.5"), is_formula("Alpha")
    (True, False, False)
    """
    return bool(_FORMULA.match(text)) and not _NUMBER.fullmatch(text)
