"""The one refusal of this package, and how words of an unknown file are quoted in it."""

LONGEST_QUOTE = 60


class UnreadableModel(Exception):
    """A file that was not understood. `field` is the field, key or file at fault; `fix` says what to do."""

    code = "unreadable_model"

    def __init__(self, field: str, reason: str, fix: str) -> None:
        self.field = shown(field, longest=200)
        self.reason = reason
        self.fix = fix
        super().__init__(f"{self.field}: {reason}. {fix}")


def shown(text: object, *, longest: int = LONGEST_QUOTE) -> str:
    """A value of an unknown file as it can be shown and stored anywhere: short, printable, whole characters.

    >>> shown("a\\x00b")
    'a\\\\x00b'
    """
    words = text if isinstance(text, str) else repr(text)
    clipped = words[: longest + 1]
    printable = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in clipped
    )
    return printable if len(printable) <= longest else printable[: longest - 1] + "…"
