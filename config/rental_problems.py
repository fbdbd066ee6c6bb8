"""Why a tenant's wish was refused, as a status of HTTP: the one place where the two meet."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import APIException

from rentals import errors
from rentals.api.bodies import API_NAMES
from sizing.forms import InputError

# What the request itself can mend is 400; what the state of the world is against is 409.
STATUSES = {
    "invalid": 400,
    "term_not_offered": 400,
    "acknowledgement_required": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "policy": 403,
    "not_found": 404,
    "sold_out": 409,
    "off_line": 409,
    "price_changed": 409,
    "in_progress": 409,
    "order_over": 409,
    "already_exists": 409,
    "limit_reached": 409,
    "secret_changed": 409,
    "turned_off": 409,
    "idempotency_mismatch": 422,
    "unavailable": 503,
}


class RefusedWish(APIException):
    """A rental error on its way out: status, code, fields and the facts a program acts on."""

    def __init__(self, error: errors.RentalError) -> None:
        self.status_code = STATUSES.get(error.code, 409)
        super().__init__(error.message, error.code)
        self.extra = facts(error)
        self.input_errors = field_errors(error)
        self.wait = getattr(error, "retry_after", None)
        self.auth_header = 'Bearer realm="Berth"' if self.status_code == 401 else None


def facts(error: errors.RentalError) -> dict[str, Any]:
    """What the error says beyond its sentence. Money as text."""
    if isinstance(error, errors.SoldOut):
        return {"available_lots": error.available}
    if isinstance(error, errors.PriceChanged):
        return {"old_total_usd": f"{error.old:.2f}", "new_total_usd": f"{error.new:.2f}"}
    if isinstance(error, errors.TermNotOffered):
        return {"offered_term_days": list(error.offered)}
    if isinstance(error, errors.PolicyViolation):
        return {"rule": error.rule}
    if isinstance(error, (errors.WebhookThere, errors.SearchThere)):
        return {"existing_id": error.existing_id}
    return {}


def field_errors(error: errors.RentalError) -> tuple[InputError, ...]:
    """The fields that can mend it; of a key used for another request, those that differ."""
    if isinstance(error, errors.IdempotencyMismatch):
        return tuple(
            InputError(difference.field, error.code, "It differs from the request this key was first used for.")
            for difference in error.differences
        )
    if error.field is None:
        return ()
    return (InputError(API_NAMES.get(error.field, error.field), error.code, error.message),)
