"""What the engine refuses, with typed attributes; the words for people are elsewhere."""


class SizingError(Exception):
    """A question that has no answer. `code` is stable; `field` names the input that must change."""

    code = "sizing_error"

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidWorkload(SizingError):
    """A figure of the workload is outside what can be asked."""

    code = "invalid"


class UnsizableModel(SizingError):
    """A figure of the model that the arithmetic needs is unknown; `field` is that figure's name."""

    code = "unsizable_model"
