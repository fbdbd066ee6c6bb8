"""The bodies of quotes and orders: the kind of each value, every field by its dotted path, nothing guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from catalog.pricing import CENT
from rentals.baskets import Basket, ChosenOption
from rentals.errors import InvalidBasket
from rentals.fits import Workload, workload_of
from rentals.ordering import is_key
from sizing.api import read_question
from sizing.forms import InputError, InvalidInput, OwnModels
from sizing.json_input import (
    AMOUNT,
    TEXT,
    WHOLE,
    WORKLOAD_KINDS,
    Body,
    InvalidBody,
    body_problems,
    kind_of,
    kind_problems,
    part,
    told_by,
)
from sizing.permalinks import canonical_query

QUOTE_FIELDS = ("machine", "term_days", "lots", "options")
ORDER_FIELDS = (
    *QUOTE_FIELDS,
    "expected_total_usd",
    "environment",
    "community_acknowledged",
    "misfit_acknowledged",
    "workload",
)
SEARCH_FIELDS = ("name", "workload", "preferences")
_NUMBERS = {"machine": WHOLE, "term_days": WHOLE, "lots": WHOLE}
_AMOUNT = re.compile(r"[0-9]{1,10}(\.[0-9]{1,2})?")
# Where the API has another name for a field than the pages.
API_NAMES = {
    "option": "options",
    "environment": "environment.preset",
    "notes": "environment.notes",
    "idempotency_key": "Idempotency-Key",
}


@dataclass(frozen=True)
class WantedOrder:
    """What a request for an order asks, under its key."""

    idempotency_key: str
    basket: Basket
    expected_total_usd: Decimal
    workload: Workload | None


def read_quote(body: object) -> Basket:
    """Raises: InvalidBody."""
    reading = _Reading(body, QUOTE_FIELDS)
    basket = reading.basket()
    reading.raise_errors()
    assert basket is not None
    return basket


def read_order(body: object, idempotency_key: str | None, *, own_models: OwnModels | None = None) -> WantedOrder:
    """`own_models` are the organization's. Raises: InvalidBody, naming the header and every field at once."""
    errors = _key_errors(idempotency_key)
    reading = _Reading(body, ORDER_FIELDS, errors)
    total, workload = reading.total(), reading.workload(own_models)
    preset, notes = reading.environment()
    basket = reading.basket(
        environment=preset,
        environment_notes=notes,
        community_acknowledged=reading.acknowledged("community_acknowledged"),
        misfit_acknowledged=reading.acknowledged("misfit_acknowledged"),
        workload=workload.fields if workload else None,
    )
    reading.raise_errors()
    assert basket is not None
    assert idempotency_key is not None
    return WantedOrder(idempotency_key, basket, total, workload)


def read_search(body: object, *, own_models: OwnModels) -> tuple[str, str]:
    """The name of a search and its question, as the address of its result page has it. Raises: InvalidBody."""
    errors = body_problems(body, SEARCH_FIELDS)
    if not isinstance(body, Mapping):
        raise InvalidBody(errors)
    errors += kind_problems(body, {"name": TEXT})
    if body.get("name") is None:
        errors.append(InputError("name", "required", "Give “name”."))
    question, found = read_question(body, own_models=own_models)
    if errors or found or question is None:
        raise InvalidBody(errors + found)
    return body["name"], canonical_query(question)


def refuse_body(body: object) -> None:
    """For requests whose address says it all: an empty body or an empty object.

    Raises: InvalidBody.
    """
    if errors := body_problems(body, ()):
        raise InvalidBody(errors)


def read_fields(body: object, kinds: Mapping[str, str], *, required: tuple[str, ...] = ()) -> Body:
    """A flat body: its fields are those of `kinds` and no other, each of its kind; null is no value.

    Raises: InvalidBody.
    """
    errors = body_problems(body, kinds)
    if not isinstance(body, Mapping):
        raise InvalidBody(errors)
    errors += kind_problems(body, kinds)
    errors += [InputError(name, "required", f"Give “{name}”.") for name in required if body.get(name) is None]
    if errors:
        raise InvalidBody(errors)
    return body


def _key_errors(key: str | None) -> list[InputError]:
    if not key:
        detail = "Send the header Idempotency-Key with a value of your own for each order: repeating it is safe then."
        return [InputError("Idempotency-Key", "required", detail)]
    if not is_key(key):
        detail = "Idempotency-Key must be 1 to 255 printable ASCII characters."
        return [InputError("Idempotency-Key", "invalid", detail)]
    return []


class _Reading:
    """A body that is read field by field; errors are gathered and raised together."""

    def __init__(self, body: object, known: tuple[str, ...], errors: list[InputError] | None = None) -> None:
        self.errors = [*(errors or []), *body_problems(body, known)]
        if not isinstance(body, Mapping):
            self.raise_errors()
        self.body: Body = body  # type: ignore[assignment]

    def raise_errors(self) -> None:
        if self.errors:
            raise InvalidBody(self.errors)

    def refuse(self, field: str, detail: str, code: str = "invalid") -> None:
        self.errors.append(InputError(field, code, detail))

    def basket(self, **more: Any) -> Basket | None:
        """The basket, when nothing was wrong until now."""
        for name in ("machine", "term_days"):
            if self.body.get(name) is None:
                self.refuse(name, f"Give “{name}”.", "required")
        if "lots" in self.body and self.body["lots"] is None:
            self.refuse("lots", "Lots is empty: give a whole number, such as 1, or leave it out.", "required")
        self.errors += kind_problems(self.body, _NUMBERS)
        options = self.options()
        if self.errors:
            return None
        try:
            return Basket(
                self.body["machine"], self.body["term_days"], self.body.get("lots", 1), options=options, **more
            )
        except InvalidBasket as error:
            self.refuse(API_NAMES.get(error.field or "", error.field or "body"), error.message)
            return None

    def options(self) -> tuple[ChosenOption, ...]:
        given = self.body.get("options", [])
        if not isinstance(given, list):
            self.refuse("options", f"“options” must be a list, not {kind_of(given)}.")
            return ()
        chosen = [self._option(f"options[{index}]", item) for index, item in enumerate(given)]
        return tuple(option for option in chosen if option is not None)

    def _option(self, at: str, item: object) -> ChosenOption | None:
        if not isinstance(item, Mapping):
            self.refuse(at, f'An option must be an object such as {{"option": "storage-500"}}, not {kind_of(item)}.')
            return None
        wrong = body_problems(item, ("option", "quantity")) + kind_problems(item, {"option": TEXT, "quantity": WHOLE})
        if item.get("option") is None:
            wrong.append(InputError("option", "required", "Name the option by its slug."))
        if "quantity" in item and item["quantity"] is None:
            wrong.append(InputError("quantity", "required", "Give a whole number, such as 1, or leave it out."))
        if not wrong:
            try:
                return ChosenOption(item["option"], item.get("quantity", 1))
            except InvalidBasket as error:
                field = "quantity" if item.get("quantity", 1) < 1 else "option"
                wrong.append(InputError(field, "invalid", error.message))
        self.errors += [InputError(f"{at}.{error.field}", error.code, error.detail) for error in wrong]
        return None

    def total(self) -> Decimal:
        given = self.body.get("expected_total_usd")
        if given is None:
            self.refuse("expected_total_usd", "Give the total you expect, as the quote said it.", "required")
        elif not isinstance(given, str):
            self.refuse("expected_total_usd", f"expected_total_usd must be {AMOUNT}, not {kind_of(given)}.")
        elif not _AMOUNT.fullmatch(given):
            self.refuse("expected_total_usd", "expected_total_usd must be an amount in USD such as “241.00”.")
        else:
            return Decimal(given).quantize(CENT)
        return Decimal(0)

    def environment(self) -> tuple[str, str]:
        given, wrong = part(self.body, "environment", required=False)
        inside = body_problems(given, ("preset", "notes")) + kind_problems(given, {"preset": TEXT, "notes": TEXT})
        self.errors += wrong + [InputError(f"environment.{each.field}", each.code, each.detail) for each in inside]
        return given.get("preset") or "other", given.get("notes") or ""

    def acknowledged(self, name: str) -> bool:
        given = self.body.get(name, False)
        if not isinstance(given, bool):
            self.refuse(name, f"It must be true or false, not {kind_of(given)}.")
            return False
        return given

    def workload(self, own_models: OwnModels | None) -> Workload | None:
        given, wrong = part(self.body, "workload", required=False)
        if wrong or self.body.get("workload") is None:
            self.errors += wrong
            return None
        kinds = kind_problems(given, WORKLOAD_KINDS)
        found: list[InputError] = []
        workload = None
        try:
            workload = workload_of(given, own_models=own_models)
        except InvalidInput as error:
            # A value of the wrong kind has its own sentence; what the form makes of it would be a second one.
            named = told_by(kinds)
            found = [each for each in error.errors if each.field not in named]
        self.errors += [InputError(f"workload.{each.field}", each.code, each.detail) for each in kinds + found]
        return workload
