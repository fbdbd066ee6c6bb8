"""Why something a tenant asked for was not done. A `code` for programs, typed attributes, a sentence; no HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from catalog.models import Machine
    from rentals.models import SavedSearch, SshKey


class RentalError(Exception):
    """`field` names the input that can mend it, where there is one."""

    code = "invalid"
    field: str | None = None

    @property
    def message(self) -> str:
        return str(self)


class InvalidBasket(RentalError):
    """A field of the basket is not of the right kind or range."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidKey(RentalError):
    field = "idempotency_key"

    def __init__(self) -> None:
        super().__init__("The idempotency key must be 1 to 255 printable ASCII characters.")


@dataclass(frozen=True)
class Difference:
    """A field whose value is not the one the key was first sent with."""

    field: str
    first: Any
    now: Any


class IdempotencyMismatch(RentalError):
    """The key was used for another request. `order_id` is the order that request placed."""

    code = "idempotency_mismatch"

    def __init__(self, differences: tuple[Difference, ...], order_id: UUID | None) -> None:
        super().__init__(
            "This key was already used for another request; these fields differ: "
            + ", ".join(difference.field for difference in differences)
            + "."
        )
        self.differences = differences
        self.order_id = order_id


class InProgress(RentalError):
    code = "in_progress"

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__("The same request is still being worked on. Send it again in a moment.")
        self.retry_after = retry_after


class Busy(RentalError):
    """The database did not give a lock in time; nothing was done."""

    code = "unavailable"

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__("Too much is going on at once. Nothing was ordered; try again in a moment.")
        self.retry_after = retry_after


class Unreachable(RentalError):
    """The database went away. Whether the act was done nobody can tell: a commit may have lost its answer."""

    code = "unavailable"

    def __init__(self, retry_after: int = 2) -> None:
        super().__init__(
            "The database does not answer at the moment. Try again in a moment: an order that is sent again with the"
            " same idempotency key is never placed twice."
        )
        self.retry_after = retry_after


class NotPermitted(RentalError):
    code = "forbidden"


class KeyNotAccepted(RentalError):
    """The text is no API key, or no longer one."""

    code = "unauthenticated"

    def __init__(self, message: str = "This is not a valid API key.") -> None:
        super().__init__(message)


class InvalidApiKey(RentalError):
    """A field of the API key that is to be made."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class UnknownMachine(RentalError):
    code = "not_found"
    field = "machine"

    def __init__(self, machine_id: int) -> None:
        super().__init__("There is no such machine. Choose one in the catalog.")
        self.machine_id = machine_id


class MachineError(RentalError):
    """Something about the machine itself; it is named."""

    def __init__(self, machine: Machine, message: str) -> None:
        super().__init__(message)
        self.machine = machine


class OffLine(MachineError):
    code = "off_line"
    field = "machine"

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, f"{machine.name} is not offered at the moment.")


class TermNotOffered(MachineError):
    code = "term_not_offered"
    field = "term_days"

    def __init__(self, machine: Machine, term_days: int, offered: tuple[int, ...]) -> None:
        terms = " or ".join(str(days) for days in offered)
        super().__init__(
            machine,
            f"{machine.name} is not sold for {term_days} days."
            + (f" Choose {terms} days." if offered else " It has no term on offer."),
        )
        self.term_days = term_days
        self.offered = offered


class SoldOut(MachineError):
    code = "sold_out"
    field = "lots"

    def __init__(self, machine: Machine, wanted: int, available: int) -> None:
        super().__init__(machine, f"{wanted} {'lot' if wanted == 1 else 'lots'} asked, {available} free.")
        self.wanted = wanted
        self.available = available


class AcknowledgementRequired(MachineError):
    code = "acknowledgement_required"
    field = "community_acknowledged"

    def __init__(self, machine: Machine) -> None:
        super().__init__(
            machine, f"Confirm that you understand: the provider of {machine.name} can read the session's memory."
        )


class MisfitNotAcknowledged(MachineError):
    """The workload that came with the order does not fit the machine, and nobody said that this is known."""

    code = "acknowledgement_required"
    field = "misfit_acknowledged"

    def __init__(self, machine: Machine) -> None:
        super().__init__(
            machine,
            f"The workload does not fit {machine.name}. Confirm that you order it although it does not, "
            "or choose another machine.",
        )


class OutsideCountries(RentalError):
    """The machine stands outside the countries the person chose; so it is not named."""

    code = "outside_countries"
    field = "countries"

    def __init__(self) -> None:
        super().__init__("This machine is not inside the countries you chose. Choose another, or other countries.")


class PolicyViolation(RentalError):
    """The organization's policy does not allow it. `rule` is the policy's own name for what was broken."""

    code = "policy"

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class PriceChanged(RentalError):
    code = "price_changed"
    field = "expected_total_usd"

    def __init__(self, old: Decimal, new: Decimal) -> None:
        super().__init__(f"The total is {new} USD now; you saw {old} USD.")
        self.old = old
        self.new = new


class OrderOver(RentalError):
    """The term has ended: its allocations can no longer be started or stopped."""

    code = "order_over"


class InvalidCancellation(RentalError):
    """The reason or the credit of a cancellation."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidConnection(RentalError):
    """A field of how a lot is reached."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidSshKey(RentalError):
    """The text is no SSH public key that can be kept. The text itself is never repeated: it may be a private key."""

    field = "key"


class SshKeyThere(InvalidSshKey):
    """`existing` is the organization's key that was sent again."""

    code = "already_exists"

    def __init__(self, existing: SshKey) -> None:
        super().__init__("This key is here already.")
        self.existing = existing


class TooManySshKeys(InvalidSshKey):
    code = "limit_reached"

    def __init__(self, most: int) -> None:
        super().__init__(f"At most {most} keys are kept. Remove one first.")


class InvalidWebhook(RentalError):
    """A field of a webhook endpoint, or, without one, the endpoint as a whole."""

    def __init__(self, field: str | None, message: str) -> None:
        super().__init__(message)
        self.field = field


class TooManyWebhooks(InvalidWebhook):
    code = "limit_reached"

    def __init__(self, most: int) -> None:
        super().__init__(None, f"An organization has at most {most} endpoints. Remove one first.")


class WebhookThere(InvalidWebhook):
    """There is an endpoint of this address; a second one would be told everything twice."""

    code = "already_exists"

    def __init__(self, existing_id: int) -> None:
        super().__init__("url", "There is an endpoint of this address already. Its secret was shown when it was made.")
        self.existing_id = existing_id


class SecretChanged(InvalidWebhook):
    code = "secret_changed"

    def __init__(self) -> None:
        super().__init__(None, "The secret was changed already; it was not changed again.")


class WebhookOff(InvalidWebhook):
    code = "turned_off"

    def __init__(self) -> None:
        super().__init__("enabled", "The endpoint is turned off. Turn it on first.")


class InvalidSearch(RentalError):
    """A field of a search that is to be saved, or, without one, the search as a whole."""

    def __init__(self, field: str | None, message: str) -> None:
        super().__init__(message)
        self.field = field


class SearchThere(InvalidSearch):
    """`existing` is the search of that name."""

    code = "already_exists"

    def __init__(self, existing: SavedSearch) -> None:
        super().__init__("name", "There is a search of this name already. Choose another.")
        self.existing, self.existing_id = existing, existing.pk


class TooManySearches(InvalidSearch):
    code = "limit_reached"

    def __init__(self, most: int) -> None:
        super().__init__(None, f"An organization keeps at most {most} searches. Delete one first.")


class LastOwner(RentalError):
    code = "last_owner"
    field = "role"

    def __init__(self) -> None:
        super().__init__("An organization keeps at least one owner. Make somebody else an owner first.")


class AlreadyMember(RentalError):
    code = "already_member"
    field = "email"

    def __init__(self) -> None:
        super().__init__("This person is already a member.")


class InvitationOver(RentalError):
    """The invitation was used, revoked, has expired, or never was one."""

    code = "invitation_over"


class InvitationNotForYou(RentalError):
    """The account that is signed in does not own the invited address."""

    code = "forbidden"

    def __init__(self, email: str) -> None:
        super().__init__(f"This invitation is for {email}. Sign in with the account of that address, verified.")
        self.email = email


class TooManyInvitations(RentalError):
    code = "too_many_invitations"
    field = "email"

    def __init__(self, most: int) -> None:
        super().__init__(f"At most {most} invitations can be open at once. Revoke some first.")
