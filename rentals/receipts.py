"""A receipt: an order in words and steps, as it is true at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from catalog import countries
from catalog.programs import Program
from rentals.api.examples import receipt_program
from rentals.deliveries import connections_of
from rentals.models import Allocation, Connection, Order
from rentals.models.orders import Status
from sizing.explain.words import counted, usd


@dataclass(frozen=True)
class Step:
    """One step of an order's life. `state` is done, current, to come ("") or, where it broke off, "current bad"."""

    label: str
    state: str
    at: datetime | None = None
    note: str = ""


@dataclass(frozen=True)
class Line:
    description: str
    quantity: int | None
    unit_usd: Decimal
    lots: int
    amount_usd: Decimal


@dataclass(frozen=True)
class Lot:
    number: int
    state: Allocation.State
    label: str
    delivered_at: datetime | None
    connection: Connection | None = None


@dataclass(frozen=True)
class Receipt:
    order: Order
    status: Status
    steps: tuple[Step, ...]
    lines: tuple[Line, ...]
    lots: tuple[Lot, ...]
    machine: dict[str, Any]
    country: str
    again_query: str
    program: Program

    @property
    def running(self) -> bool:
        return self.status == Status.ACTIVE

    @property
    def connected(self) -> bool:
        return any(lot.connection for lot in self.lots)

    @property
    def handed_over(self) -> bool:
        return all(lot.delivered_at for lot in self.lots)


def receipt(order: Order, *, now: datetime, connections: bool = False) -> Receipt:
    """`connections`: whether to tell how the lots are reached, while the order runs; for who may order, nobody else."""
    allocations = list(order.allocations.all())
    told = connections_of(order, now=now) if connections else {}
    return Receipt(
        order=order,
        status=order.status_at(now),
        steps=tuple(_steps(order, allocations, now)),
        lines=tuple(_line(line) for line in order.lines),
        lots=tuple(
            Lot(
                allocation.number,
                allocation.state_at(order, now),
                allocation.label_at(order, now),
                allocation.delivered_at,
                told.get(allocation.pk),
            )
            for allocation in allocations
        ),
        machine=order.machine_facts,
        country=_country(order.machine_facts["country"]),
        again_query=_again(order),
        program=receipt_program(order),
    )


def _steps(order: Order, allocations: list[Allocation], now: datetime) -> list[Step]:
    """Placed, preparing, running, ended; "preparing" is over when every lot is delivered."""
    status = order.status_at(now)
    delivered = [allocation.delivered_at for allocation in allocations if allocation.delivered_at]
    ready = len(delivered) == len(allocations)
    over = status != Status.ACTIVE
    steps = [
        Step("Placed", "done", order.starts_at, "The paid period starts here."),
        Step(
            "Preparing",
            "done" if ready or over else "current",
            max(delivered) if ready and delivered else None,
            f"{len(delivered)} of {counted(len(allocations), 'lot')} handed over.",
        ),
        Step("Running", "done" if over else "current" if ready else "", None, "Until the end of the paid period."),
    ]
    if status == Status.CANCELLED:
        reason = order.cancel_reason if order.cancel_reason.endswith((".", "!", "?")) else f"{order.cancel_reason}."
        note = f"{reason} Credit: {usd(order.credit_usd or Decimal(0))}."
        return [*steps[:1], Step("Cancelled", "current bad", order.ended_at, note)]
    return [
        *steps,
        Step("Ended", "current" if over else "", order.ends_at, "Exactly, whether stopped in between or not."),
    ]


def _country(code: str | None) -> str:
    return countries.names().get(code, code) if code else "country unknown"


def _line(line: dict[str, Any]) -> Line:
    return Line(
        line["description"],
        line.get("quantity"),
        Decimal(line["unit_usd"]),
        line["lots"],
        Decimal(line["amount_usd"]),
    )


def _again(order: Order) -> str:
    """The review page's address with the same choices; it mints a new key."""
    pairs: list[tuple[str, object]] = [
        ("machine", order.machine_facts["id"]),
        ("term_days", order.term_days),
        ("lots", order.lots),
    ]
    pairs += [("option", f"{line['option']}:{line['quantity']}") for line in order.lines if line.get("option")]
    pairs += [("environment", order.environment)]
    if order.environment_notes:
        pairs.append(("notes", order.environment_notes))
    return urlencode(pairs + list((order.workload or {}).items()), doseq=True)
