"""What a person wants to do, as frozen values that are valid once they exist."""

from dataclasses import dataclass

from sizing.engine.errors import InvalidWorkload
from sizing.engine.shapes import LanguageModel

PRECISIONS_BITS = (16, 8, 4)
MAX_REQUESTS = 100_000


@dataclass(frozen=True)
class RunModel:
    """Language-model inference: `requests` at once, each of up to `context` tokens.

    Units: `precision_bits` is bits per weight (16, 8 or 4); the cache stays 16-bit. `reserve_bytes` is the person's own
    reserve per GPU, with its reason.
    Raises: InvalidWorkload naming the field.
    """

    model: LanguageModel
    precision_bits: int = 16
    context: int = 4096
    requests: int = 1
    reserve_bytes: int = 0
    reserve_reason: str = ""

    def __post_init__(self) -> None:
        if self.precision_bits not in PRECISIONS_BITS:
            raise InvalidWorkload("precision must be 16, 8 or 4 bits", field="precision_bits")
        _at_least_one("context", self.context)
        if self.context > self.model.max_context:
            raise InvalidWorkload(f"context is above the maximum of {self.model.max_context}", field="context")
        _at_least_one("requests", self.requests)
        if self.requests > MAX_REQUESTS:
            raise InvalidWorkload(f"requests is above {MAX_REQUESTS}", field="requests")
        if self.reserve_bytes < 0:
            raise InvalidWorkload("the reserve must be 0 or more", field="reserve_gib")
        if self.reserve_bytes and not self.reserve_reason.strip():
            raise InvalidWorkload("a reserve needs its reason", field="reserve_reason")


def _at_least_one(field: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidWorkload(f"{field} must be a whole number of 1 or more", field=field)
