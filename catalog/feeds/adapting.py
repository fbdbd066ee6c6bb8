"""The part that every format shares: rows in, each an offer or a rejection, and all of them settled."""

from collections.abc import Callable
from datetime import datetime

from catalog.feeds import fields
from catalog.feeds.fields import Row
from catalog.feeds.json_rows import Body
from catalog.feeds.offers import Feed, Offer, Rejection
from catalog.feeds.overlaps import settle


def read_rows(
    body: bytes,
    *where: str,
    row: type[Row],
    offer: Callable[[Row, int, datetime], Offer],
    now: datetime,
    most_asked: int | None = None,
) -> Feed:
    """The feed of a body with one offer per row, its list at `where`.

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
            found.append(offer(read, seen, now))
        except fields.Fault as fault:
            rejections.append(Rejection(row=seen, external_id=_id_of(read), code=fault.code, detail=fault.detail[:500]))
    return settle(seen, found, rejections, truncated=most_asked is not None and seen >= most_asked)


def _id_of(read: object) -> str | None:
    """What the row calls itself, when it can be told."""
    try:
        return fields.identifier(getattr(read, "id", None), "id", "id")
    except fields.Fault:
        return None
