"""The part that every format shares: rows in, each an offer or a rejection, and all of them settled."""

from collections.abc import Callable, Iterable
from datetime import datetime

from catalog.feeds import fields
from catalog.feeds.fields import Row
from catalog.feeds.json_rows import Body
from catalog.feeds.offers import LONGEST_EXTERNAL_ID, Feed, Offer, Rejection
from catalog.feeds.overlaps import settle
from catalog.feeds.texts import shown


def read_rows(
    body: bytes,
    *where: str,
    row: type[Row],
    offers_of: Callable[[Row, int, datetime], Iterable[Offer | fields.Fault]],
    now: datetime,
    most_asked: int | None = None,
) -> Feed:
    """The feed of a body whose rows are the list at `where`. A row gives offers, or faults, or both.

    Raises: Unreadable.
    """
    reader = fields.RowReader(row)
    found: list[Offer] = []
    rejections: list[Rejection] = []
    seen = 0
    for seen, raw in enumerate(Body(body, *where).rows(), start=1):
        read = None
        try:
            read = reader(raw)
            for one in offers_of(read, seen, now):
                if isinstance(one, Offer) and len(one.external_id) <= LONGEST_EXTERNAL_ID:
                    found.append(one)
                else:
                    rejections.append(_rejection(seen, read, _too_long(one) if isinstance(one, Offer) else one))
        except fields.Fault as fault:
            rejections.append(_rejection(seen, read, fault))
    return settle(seen, found, rejections, truncated=seen == most_asked)


def _too_long(offer: Offer) -> fields.Fault:
    """An adapter may make an id of several values, each of which is fine alone."""
    length = len(offer.external_id)
    return fields.Fault(
        "id_invalid",
        f"What tells the offer from others, {shown(offer.external_id)}, has {length} characters; Berth keeps "
        f"{LONGEST_EXTERNAL_ID} at most.",
    )


def _rejection(number: int, read: object, fault: fields.Fault) -> Rejection:
    return Rejection(row=number, external_id=_id_of(read), code=fault.code, detail=fault.detail[:500])


def _id_of(read: object) -> str | None:
    """What the row calls itself, when it can be told."""
    try:
        return fields.identifier(getattr(read, "id", None), "id", "id")
    except fields.Fault:
        return None
