"""Texts that both databases keep."""


def storable(text: object) -> bool:
    """Whether every database keeps this text: no NUL, no half of a surrogate pair."""
    if not isinstance(text, str) or "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
