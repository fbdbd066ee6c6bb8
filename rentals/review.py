"""What the review page shows: the choices, what they cost now, and what stands in the way of confirming them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any
from urllib.parse import urlencode

from django.utils.datastructures import MultiValueDict

from catalog import wording
from catalog.models import Machine, Option
from catalog.programs import Program
from rentals.api.examples import order_program
from rentals.baskets import Basket
from rentals.carried import WrongAnswer, missed_wishes, wishes_in, wrong_answers
from rentals.errors import InvalidBasket, MachineError, RentalError
from rentals.fits import Workload, sizing_document, workload_in
from rentals.models.orders import Environment
from rentals.quotes import Quote, listed_options, quote
from rentals.review_forms import ReviewForm, carried, review_query
from sizing.answers import Preferences
from sizing.explain import places
from sizing.forms import InvalidInput, OwnModels


def new_key() -> str:
    """A key for one confirmation; the page carries it, so sending the page twice is one order."""
    return str(uuid.uuid4())


@dataclass(frozen=True)
class OptionChoice:
    """An option as the form offers it: `choices` are (value, label, chosen), None first."""

    option: Option
    choices: list[tuple[str, str, bool]]

    @property
    def price_text(self) -> str:
        """At least two decimals, as the price is kept with six."""
        whole, _, fraction = f"{self.option.price_per_lot_day_usd:f}".partition(".")
        return f"${whole}.{fraction.rstrip('0').ljust(2, '0')}"


@dataclass
class Review:
    """A reading of the page's input. `offer` is None when the input names nothing that has a price."""

    data: MultiValueDict
    form: ReviewForm
    key: str
    now: datetime
    workload: Workload | None = None
    basket: Basket | None = None
    offer: Quote | None = None
    problem: RentalError | None = None
    wishes: Preferences | None = None
    wrong: list[WrongAnswer] = field(default_factory=list)

    @property
    def ends_at(self) -> datetime | None:
        return self.now + timedelta(days=self.offer.basket.term_days) if self.offer else None

    @property
    def form_is_wrong(self) -> bool:
        """Whether a field stands in the way of confirming; a missing tick does not, it is beside the button."""
        ticks = {"community_acknowledged", "misfit_acknowledged", "__all__"}
        return bool(set(self.form.errors) - ticks) or bool(self.wrong) or self.basket is None

    @cached_property
    def sizing(self) -> dict[str, Any] | None:
        return sizing_document(self.workload, self.offer.machine) if self.workload and self.offer else None

    @property
    def misfits(self) -> bool:
        """Whether a workload came along that does not fit the machine."""
        return self.sizing is not None and not self.sizing["fits"]

    @property
    def inside(self) -> tuple[str, ...]:
        """The countries that the question was asked for; none are all."""
        return self.wishes.countries if self.wishes else ()

    @property
    def inside_text(self) -> str:
        return places(self.inside)

    @property
    def misses(self) -> list[str]:
        return missed_wishes(self.wishes, self.offer) if self.wishes and self.offer else []

    @property
    def size(self) -> Callable[[Machine], dict[str, Any]] | None:
        return partial(sizing_document, self.workload) if self.workload else None

    @property
    def limits(self) -> list[wording.Limit]:
        return wording.limits(self.offer.machine) if self.offer else []

    @property
    def environment_label(self) -> str:
        return Environment(self.offer.basket.environment).label if self.offer else ""

    @cached_property
    def program(self) -> Program | None:
        """This very order as a request of the API; nothing while the choices are none."""
        return order_program(self.basket.canonical(self.offer.total_usd)) if self.basket and self.offer else None

    @property
    def answer_query(self) -> str:
        """The query of the answer the machine was chosen from; empty when it was not chosen from one."""
        if self.workload is None or self.basket is None:
            return ""
        names = (("term_days", str(self.basket.term_days)), ("lots", str(self.basket.lots)))
        return urlencode([*(pair for pair in self.carried if pair[1]), *names], errors="replace")

    @property
    def query(self) -> str:
        return review_query(self.data)

    @property
    def query_of_anywhere(self) -> str:
        """The page's address without the countries."""
        elsewhere = MultiValueDict({name: self.data.getlist(name) for name in self.data if name != "countries"})
        return review_query(elsewhere)

    @property
    def query_of_free_lots(self) -> str:
        return review_query(self.data, lots=self.offer.machine.lots_to_sell) if self.offer else ""

    @property
    def carried(self) -> list[tuple[str, str]]:
        return carried(self.data)

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """What the form carries unseen: all of the question but what has to be mended."""
        wrong = {each.name for each in self.wrong}
        return [pair for pair in self.carried if pair[0] not in wrong]

    @property
    def problems(self) -> list[tuple[str, str]]:
        """What is wrong with the question, for the summary: where, and a sentence."""
        return [(each.anchor, each.problem) for each in self.wrong]

    def add_error(self, error: RentalError) -> None:
        """Show a refusal at the field that can mend it."""
        name = error.field if error.field in self.form.fields else None
        self.form.add_error(name, error.message)

    def option_choices(self) -> list[OptionChoice]:
        chosen = {choice.slug: choice.quantity for choice in self.form.cleaned_data.get("option", ())}
        return [_choice(option, chosen.get(option.slug, 0)) for option in listed_options()]


def read_input(data: MultiValueDict, *, key: str, now: datetime, own_models: OwnModels | None = None) -> Review:
    """The choices alone, with no look at prices or stock: what a confirmation needs."""
    review = Review(data, ReviewForm(data), key, now)
    valid = review.form.is_valid()
    review.wishes, problems = wishes_in(data)
    try:
        review.workload = workload_in(data, own_models=own_models)
    except InvalidInput as error:
        problems = [*error.errors, *problems]
    review.wrong = wrong_answers(data, problems)
    if valid and not review.wrong:
        try:
            review.basket = review.form.basket(review.workload.fields if review.workload else None)
        except InvalidBasket as error:
            review.add_error(error)
    return review


def price(review: Review) -> Review:
    """Add what the choices cost now, and what stands in the way."""
    basket = review.basket or _fallback(review.form)
    if basket is None:
        return review
    try:
        review.offer = quote(basket, now=review.now)
        review.offer.check_current()
        review.offer.check_stock()
    except MachineError as error:
        review.problem = error
        if review.offer is None:
            review.add_error(error)
            review.offer = _in_an_offered_term(basket, error, review.now)
    except RentalError as error:
        review.add_error(error)
    return review


def _fallback(form: ReviewForm) -> Basket | None:
    """The machine with everything else at its default, so that a wrong field does not hide the rest of the page."""
    try:
        return Basket(
            form.cleaned_data["machine"],
            form.cleaned_data.get("term_days", 7),
            environment=form.cleaned_data.get("environment", form.defaults["environment"]),
        )
    except (KeyError, InvalidBasket):
        return None


def _in_an_offered_term(basket: Basket, error: MachineError, now: datetime) -> Quote | None:
    offered = getattr(error, "offered", ())
    return quote(Basket(basket.machine_id, offered[0]), now=now) if offered else None


def _choice(option: Option, quantity: int) -> OptionChoice:
    quantities = sorted({*range(1, min(option.max_quantity, 20) + 1), quantity} - {0})
    choices = [("", "Not added", quantity == 0)]
    choices += [(f"{option.slug}:{number}", str(number), number == quantity) for number in quantities]
    return OptionChoice(option, choices)
