"""When a list looks like an accident: it is held, the last good rows stay, and staff may say that it is meant."""

from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from catalog.models import FeedRun, FeedState, Provider
from catalog.questions import checked_reason
from catalog.refresh.comparing import JUMP, Differences
from catalog.refresh.turns import make_due

Outcome = FeedRun.Outcome
LEAST_REMAINING = Fraction(1, 2)
MOST_JUMPS = Fraction(1, 5)
# Where fewer are on sale, all of them may well be others a minute later.
LEAST_ON_SALE = 20
MOST_RENEWED = Fraction(1, 2)
# Beside those of its list a provider has those that went; a list that always brings new ones would fill the database.
MOST_GONE = 100_000
# What was accepted is the list that was looked at, not whatever comes tomorrow.
ACCEPTED_FOR = timedelta(hours=1)


class NothingHeld(Exception):
    """The provider's last list was not held, so there is nothing to accept."""

    code = "nothing_held"

    def __init__(self, provider: Provider) -> None:
        super().__init__(f"The last list of {provider} is not held for review, so there is nothing to accept.")


class Verdict(NamedTuple):
    """Why a list is not applied: the outcome of its run, and a sentence."""

    outcome: FeedRun.Outcome
    code: str
    detail: str


def judge_length(offers: int, before: int) -> Verdict | None:
    """A list that lost more than half of the one before is not applied."""
    if offers >= before * LEAST_REMAINING:
        return None
    detail = (
        f"The list has {offers:,} offers that can be listed; the last good one had {before:,}. "
        "More than half is missing, so the last good rows stay. Accept it if the provider really has so few."
    )
    return Verdict(Outcome.SHRUNKEN, "shrunken", detail)


def judge_prices(found: Differences) -> Verdict | None:
    """A list in which more than a fifth of the known machines' prices moved more than tenfold is not applied."""
    if found.price_jumps <= found.prices * MOST_JUMPS:
        return None
    detail = (
        f"{found.price_jumps:,} of {found.prices:,} prices moved more than {JUMP}-fold, which looks like another unit. "
        "The last good rows stay. Accept it if the provider really charges this."
    )
    return Verdict(Outcome.HELD, "prices_jumped", detail)


def judge_ids(found: Differences, offers: int) -> Verdict | None:
    """A list in which most ids are new while most machines on sale are gone from it is not applied.

    Nor is one that would leave a provider with more machines than its list and so many gone ones explain.
    """
    new, gone = len(found.new), len(found.gone)
    if found.online >= LEAST_ON_SALE and new > offers * MOST_RENEWED and gone > found.online * MOST_RENEWED:
        detail = (
            f"{new:,} of {offers:,} ids are new, and {gone:,} of {found.online:,} machines on sale are not in the list "
            "any more, which looks like ids that do not last. The last good rows stay. An offer keeps its id from list "
            "to list; accept it if the provider really has other machines now, or has changed its ids once."
        )
        return Verdict(Outcome.HELD, "ids_changed", detail)
    if new and found.stored + new > 2 * offers + MOST_GONE:
        detail = (
            f"With its {new:,} new ids the provider would have {found.stored + new:,} machines for a list of "
            f"{offers:,} offers, so its ids do not last. The last good rows stay. Machines that went are forgotten "
            "after 30 days; accept the list if it is right all the same."
        )
        return Verdict(Outcome.HELD, "too_many_machines", detail)
    return None


def is_accepted(provider: Provider, now: datetime) -> bool:
    return FeedState.objects.filter(provider=provider, accepted_until__gt=now).exists()


def accept_held(provider: Provider, by: Any, reason: str, now: datetime) -> None:
    """Let the provider's next list be applied although it differs as much as the one that was held.

    It is fetched at once. The decision is in the provider's history, with who and why.

    Raises: NothingHeld; ValidationError for a reason that is missing or too long.
    """
    reason = checked_reason(reason)
    last = FeedRun.objects.filter(provider=provider).exclude(outcome=Outcome.RUNNING).first()
    if last is None or not last.is_held:
        raise NothingHeld(provider)
    make_due(provider, now)
    FeedState.objects.filter(provider=provider).update(accepted_until=now + ACCEPTED_FOR)
    Provider.history.bulk_history_create(
        [provider], update=True, default_user=by, default_change_reason=f"List accepted: {reason}", default_date=now
    )
