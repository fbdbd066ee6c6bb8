"""Offers that say the same twice: ids that repeat, and slices of one machine that sell the same GPUs."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec

from catalog.feeds.offers import Feed, Merged, Offer, Rejection, name_with_id
from catalog.feeds.texts import shown


def settle(seen: int, offers: Iterable[Offer], rejections: list[Rejection], *, truncated: bool = False) -> Feed:
    """The feed of these rows with every id once, every GPU once and every name once.

    Of a machine's offers the largest that can be rented now stays, then whatever does not overlap with it.
    """
    merged: list[Merged] = []
    once = _each_id_once(offers, merged, rejections)
    kept = sorted(_each_gpu_once(once, merged), key=lambda offer: offer.row)
    return Feed(
        seen=seen,
        offers=_each_name_once(kept),
        rejections=sorted(rejections, key=lambda rejection: rejection.row),
        merged=sorted(merged, key=lambda one: one.row),
        truncated=truncated,
    )


def _each_id_once(offers: Iterable[Offer], merged: list[Merged], rejections: list[Rejection]) -> list[Offer]:
    """The same id with the same facts is one offer; with others nobody knows which holds, and none is taken."""
    by_id: dict[str, Offer] = {}
    more: defaultdict[str, list[Offer]] = defaultdict(list)
    for offer in offers:
        if by_id.setdefault(offer.external_id, offer) is not offer:
            more[offer.external_id].append(offer)
    for external_id, others in more.items():
        first = by_id[external_id]
        if all(_facts(other) == _facts(first) for other in others):
            merged += [
                Merged(row=other.row, external_id=external_id, code="duplicate", kept=external_id) for other in others
            ]
            continue
        del by_id[external_id]
        rows = ", ".join(str(offer.row) for offer in [first, *others][:5])
        rejections += [
            Rejection(
                row=offer.row,
                external_id=external_id,
                code="id_conflict",
                detail=f"The id {shown(external_id)} is in rows {rows} with different facts: give it once.",
            )
            for offer in [first, *others]
        ]
    return list(by_id.values())


def _facts(offer: Offer) -> tuple[object, ...]:
    return tuple(getattr(offer, name) for name in Offer.__struct_fields__ if name != "row")


def _each_gpu_once(offers: list[Offer], merged: list[Merged]) -> list[Offer]:
    kept: list[Offer] = []
    hosts: defaultdict[str, list[Offer]] = defaultdict(list)
    for offer in offers:
        if offer.host is None:
            kept.append(offer)
        else:
            hosts[offer.host].append(offer)
    for slices in hosts.values():
        kept += slices if len(slices) == 1 else _of_one_host(slices, merged)
    return kept


def _of_one_host(slices: list[Offer], merged: list[Merged]) -> list[Offer]:
    # Where offers contradict each other, the machine has no more than the least of them says.
    gpus = min((offer.host_gpus for offer in slices if offer.host_gpus), default=0)
    taken: list[Offer] = []
    for offer in sorted(slices, key=_first):
        rival = next((other for other in taken if _overlap(offer, other)), None)
        if rival is None and any(other.gpu_ids is None for other in [*taken, offer]):
            # Which GPUs are meant is unknown: together they must not be more than the machine has.
            too_many = sum(other.gpu_count for other in taken) + offer.gpu_count > gpus
            rival = taken[0] if taken and too_many else None
        if rival is None:
            taken.append(offer)
        else:
            merged.append(Merged(row=offer.row, external_id=offer.external_id, code="overlap", kept=rival.external_id))
    return taken


def _first(offer: Offer) -> tuple[object, ...]:
    """Rentable before rented, large before small, the whole term before one that can be cut short, then cheap."""
    return (not offer.rentable, -offer.gpu_count, offer.interruptible, offer.hourly_usd, offer.external_id)


def _overlap(one: Offer, other: Offer) -> bool:
    return one.gpu_ids is not None and other.gpu_ids is not None and not one.gpu_ids.isdisjoint(other.gpu_ids)


def _each_name_once(offers: list[Offer]) -> list[Offer]:
    """Names are unique within a provider: those that are not carry the offer's id."""
    counts = Counter(offer.name for offer in offers)
    if len(counts) == len(offers):
        return offers
    return [
        offer
        if counts[offer.name] == 1
        else msgspec.structs.replace(offer, name=name_with_id(offer.name, offer.external_id))
        for offer in offers
    ]
