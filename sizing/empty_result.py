"""What a page says when nothing is recommended: which of the empty answers it is, and what is behind it."""

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from sizing.explain.words import gib, usd

if TYPE_CHECKING:
    from sizing.result import Result


@dataclass(frozen=True)
class Empty:
    """Why nothing is recommended: a heading and what is behind it."""

    heading: str
    text: str


def why_empty(result: "Result") -> Empty | None:
    """None when something is recommended."""
    return Empty(*_EMPTY[result.answer.empty](result)) if result.answer.empty else None


def _holds_nothing(result: "Result") -> tuple[str, str]:
    need = f"{result.total} on one GPU, or {result.each}" if result.each else result.total
    nearest = result.answer.nearest_miss
    largest = f" The largest GPU available has {gib(nearest.largest_memory_bytes)}." if nearest else ""
    return f"No machine available now holds {need}.", f"Every machine that could be tried is too small.{largest}"


def _below_one_term(result: "Result") -> tuple[str, str]:
    budget = usd(result.preferences.budget_usd or Decimal(0))
    return (
        "Machines fit, but one term costs more than your budget.",
        f"The budget of {budget} does not cover {result.term} of any of them.",
    )


def _too_narrow(result: "Result") -> tuple[str, str]:
    return (
        "No machine meets all your conditions at once.",
        f"{result.total} is not the problem: what you asked for beside it leaves no machine.",
    )


def _stale_lists(result: "Result") -> tuple[str, str]:
    return "The lists of machines are too old to be used.", f"{result.stale} They are not shown as available."


def _none_in_stock(result: "Result") -> tuple[str, str]:
    return "Every machine that could be tried is rented out now.", "Lots come back when the terms of others end."


def _none_on_line(result: "Result") -> tuple[str, str]:
    return "No machine is on-line now.", "Providers report none of their machines as rentable at this moment."


_EMPTY = {
    "nothing_holds_it": _holds_nothing,
    "budget_below_one_term": _below_one_term,
    "filters_too_narrow": _too_narrow,
    "stale_lists": _stale_lists,
    "none_in_stock": _none_in_stock,
    "none_on_line": _none_on_line,
}
