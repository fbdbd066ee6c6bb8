"""What somebody wants to order: plain values, checked for kind and range, comparable with an earlier request."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from catalog.pricing import TERMS_DAYS
from catalog.storable import storable
from rentals.errors import InvalidBasket
from rentals.models.orders import Environment

MAX_LOTS = 10_000
MAX_NOTES = 500
_MAX_ID = 2**63 - 1


@dataclass(frozen=True)
class ChosenOption:
    slug: str
    quantity: int = 1

    def __post_init__(self) -> None:
        if type(self.quantity) is not int or self.quantity < 1:
            raise InvalidBasket("option", "The quantity of an option must be a whole number, 1 or more.")
        if not storable(self.slug) or len(self.slug) > 64:
            raise InvalidBasket("option", "There is no such option.")

    def __str__(self) -> str:
        return self.slug if self.quantity == 1 else f"{self.slug}:{self.quantity}"


@dataclass(frozen=True)
class Basket:
    """One machine, its term and lots, and what goes with them.

    Raises: InvalidBasket naming the field. Whether the machine is sold like that is `rentals.quotes`' to say.
    """

    machine_id: int
    term_days: int
    lots: int = 1
    options: tuple[ChosenOption, ...] = ()
    environment: str = Environment.OTHER.value
    environment_notes: str = ""
    community_acknowledged: bool = False
    workload: dict[str, Any] | None = field(default=None, hash=False)
    misfit_acknowledged: bool = False

    def __post_init__(self) -> None:
        # `type() is int`: True is an int to Python, and not a number of days to anybody.
        if type(self.machine_id) is not int or not 1 <= self.machine_id <= _MAX_ID:
            raise InvalidBasket("machine", "Choose a machine in the catalog.")
        if type(self.term_days) is not int or self.term_days not in TERMS_DAYS:
            raise InvalidBasket("term_days", f"Choose a term of {_either(TERMS_DAYS)} days.")
        if type(self.lots) is not int or not 1 <= self.lots <= MAX_LOTS:
            raise InvalidBasket("lots", f"Lots must be a whole number from 1 to {MAX_LOTS:,}.")
        if self.environment not in Environment.values:
            raise InvalidBasket("environment", f"Choose one of {', '.join(Environment.values)}.")
        if not storable(self.environment_notes) or len(self.environment_notes) > MAX_NOTES:
            raise InvalidBasket("notes", f"Write at most {MAX_NOTES} characters of plain text.")
        if len({chosen.slug for chosen in self.options}) < len(self.options):
            raise InvalidBasket("option", "Name each option once, with its quantity.")

    def canonical(self, expected_total_usd: Decimal) -> dict[str, Any]:
        """The request in one spelling: what a repeat of the same key is compared with."""
        document = {
            "machine": self.machine_id,
            "term_days": self.term_days,
            "lots": self.lots,
            "options": [
                {"option": chosen.slug, "quantity": chosen.quantity}
                for chosen in sorted(self.options, key=lambda chosen: chosen.slug)
            ],
            "environment": {"preset": self.environment, "notes": self.environment_notes},
            "community_acknowledged": self.community_acknowledged,
            "workload": self.workload,
            "expected_total_usd": str(expected_total_usd),
        }
        # Only where it was said: requests stored before it existed stay equal to their repeats.
        return document | ({"misfit_acknowledged": True} if self.misfit_acknowledged else {})


def _either(numbers: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} or {numbers[-1]}"
