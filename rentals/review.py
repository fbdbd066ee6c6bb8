"""What the review page shows: the choices, what they cost now, and what stands in the way of confirming them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any
from urllib.parse import urlencode

from django.utils.datastructures import MultiValueDict

from catalog import wording
from catalog.models import Machine, Option
from rentals.api.examples import order_command
from rentals.baskets import Basket
from rentals.errors import InvalidBasket, MachineError, RentalError
from rentals.fits import Workload, sizing_document, workload_in
from rentals.models.orders import Environment
from rentals.quotes import Quote, quote
from rentals.review_forms import ReviewForm, carried, review_query
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

    @property
    def ends_at(self) -> datetime | None:
        return self.now + timedelta(days=self.offer.basket.term_days) if self.offer else None

    @property
    def form_is_wrong(self) -> bool:
        """Whether a field stands in the way of confirming; a missing tick does not, it is beside the button."""
        return bool(set(self.form.errors) - {"community_acknowledged", "__all__"}) or self.basket is None

    @cached_property
    def sizing(self) -> dict[str, Any] | None:
        return sizing_document(self.workload, self.offer.machine) if self.workload and self.offer else None

    @property
    def size(self) -> Callable[[Machine], dict[str, Any]] | None:
        return partial(sizing_document, self.workload) if self.workload else None

    @property
    def limits(self) -> list[wording.Limit]:
        return wording.limits(self.offer.machine) if self.offer else []

    @property
    def environment_label(self) -> str:
        return Environment(self.offer.basket.environment).label if self.offer else ""

    @property
    def command(self) -> str:
        """This very order as a request of the API; empty while the choices are none."""
        return order_command(self.basket.canonical(self.offer.total_usd)) if self.basket and self.offer else ""

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
    def query_of_free_lots(self) -> str:
        return review_query(self.data, lots=self.offer.machine.free_lots) if self.offer else ""

    @property
    def carried(self) -> list[tuple[str, str]]:
        return carried(self.data)

    def add_error(self, error: RentalError) -> None:
        """Show a refusal at the field that can mend it."""
        name = error.field if error.field in self.form.fields else None
        self.form.add_error(name, error.message)

    def option_choices(self) -> list[OptionChoice]:
        chosen = {choice.slug: choice.quantity for choice in self.form.cleaned_data.get("option", ())}
        return [_choice(option, chosen.get(option.slug, 0)) for option in Option.objects.filter(listed=True)]


def read_input(data: MultiValueDict, *, key: str, now: datetime, own_models: OwnModels | None = None) -> Review:
    """The choices alone, with no look at prices or stock: what a confirmation needs."""
    review = Review(data, ReviewForm(data), key, now)
    valid = review.form.is_valid()
    try:
        review.workload = workload_in(data, own_models=own_models)
    except InvalidInput as error:
        valid = False
        for each in error.errors:
            review.form.add_error(None, f"Workload, {each.field}: {each.detail}")
    if valid:
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
    choices = [("", "None", quantity == 0)]
    choices += [(f"{option.slug}:{number}", str(number), number == quantity) for number in quantities]
    return OptionChoice(option, choices)
