"""One machine in several offers: every GPU is sold once, and the largest offer that can be rented stays."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from catalog.feeds import Feed, Offer
from catalog.feeds.overlaps import settle


def offer(external_id: str, count: int = 1, **changes: Any) -> Offer:
    facts: dict[str, Any] = {
        "row": int(external_id) if external_id.isdigit() else 1,
        "external_id": external_id,
        "name": f"machine {external_id}",
        "gpu_name": "RTX 4090",
        "gpu_count": count,
        "gpu_memory_bytes": None,
        "memory_unit": "MiB",
        "tier": "community",
        "place": None,
        "hourly_usd": Decimal("0.4") * count,
        "host": "h",
    }
    return Offer(**facts | changes)


def settled(*offers: Offer) -> Feed:
    return settle(len(offers), offers, [])


def kept(*offers: Offer) -> list[str]:
    return [one.external_id for one in settled(*offers).offers]


def ids(*gpus: int) -> frozenset[str]:
    return frozenset(map(str, gpus))


def test_the_whole_machine_stands_for_its_slices() -> None:
    feed = settled(offer("1", gpu_ids=ids(0)), offer("2", 2, gpu_ids=ids(0, 1)), offer("3", 4, gpu_ids=ids(0, 1, 2, 3)))
    assert [one.external_id for one in feed.offers] == ["3"]
    assert [(one.external_id, one.code, one.kept) for one in feed.merged] == [
        ("1", "overlap", "3"),
        ("2", "overlap", "3"),
    ]


def test_slices_stand_beside_each_other_when_no_gpu_is_in_both() -> None:
    slices = [offer("1", 2, gpu_ids=ids(0, 1)), offer("2", 2, gpu_ids=ids(2, 3)), offer("3", 2, gpu_ids=ids(1, 2))]
    assert kept(*slices) == ["1", "2"]


def test_what_can_be_rented_now_comes_before_what_is_larger() -> None:
    whole = offer("1", 4, gpu_ids=ids(0, 1, 2, 3), rentable=False)
    assert kept(whole, offer("2", 2, gpu_ids=ids(2, 3)), offer("3", gpu_ids=ids(3))) == ["2"]
    assert kept(whole, offer("2", 2, gpu_ids=ids(2, 3), rentable=False)) == ["1"]


def test_a_machine_listed_whole_twice_is_sold_once_for_the_lower_price() -> None:
    dear = offer("1", 2, gpu_ids=ids(0, 1), hourly_usd=Decimal(2))
    cheap = offer("2", 2, gpu_ids=ids(0, 1), hourly_usd=Decimal(1))
    bid = offer("3", 2, gpu_ids=ids(0, 1), hourly_usd=Decimal("0.5"), interruptible=True)
    assert kept(dear, cheap, bid) == ["2"]


def test_without_ids_the_machine_sells_no_more_gpus_than_it_has() -> None:
    assert kept(offer("1", 2, host_gpus=4), offer("2", 2, host_gpus=4), offer("3", 2, host_gpus=4)) == ["1", "2"]
    assert kept(offer("1", 4, host_gpus=4), offer("2", host_gpus=4)) == ["1"]
    assert kept(offer("1", 3, host_gpus=4, gpu_ids=ids(0, 1, 2)), offer("2", host_gpus=4)) == ["1", "2"]


def test_without_ids_and_without_the_number_of_gpus_one_offer_is_all_that_is_sure() -> None:
    assert kept(offer("1", 2), offer("2"), offer("3")) == ["1"]


def test_without_ids_offers_that_contradict_each_other_about_the_number_of_gpus_are_not_believed() -> None:
    assert kept(offer("1", 2, host_gpus=8), offer("2", 2, host_gpus=2), offer("3", 2)) == ["1"]
    assert kept(offer("1", 2, host_gpus=4), offer("2", 2, host_gpus=8), offer("3", 2)) == ["1", "2"]


def test_machines_of_different_hosts_and_unknown_hosts_never_overlap() -> None:
    same = ids(0)
    assert kept(offer("1", gpu_ids=same), offer("2", gpu_ids=same, host="other"), offer("3", host=None)) == [
        "1",
        "2",
        "3",
    ]


def test_an_id_with_different_facts_is_not_believed_in_any_row() -> None:
    feed = settle(2, [offer("7", row=1), offer("7", row=2, hourly_usd=Decimal(9))], [])
    assert feed.offers == []
    assert [(one.row, one.code) for one in feed.rejections] == [(1, "id_conflict"), (2, "id_conflict")]
    assert "rows 1, 2" in feed.rejections[0].detail


def test_names_that_repeat_carry_their_ids_in_whatever_order_they_come() -> None:
    one, other = offer("1", name="n" * 160, host="a"), offer("2", name="n" * 160, host="b")
    names = {found.external_id: found.name for found in settled(one, other).offers}
    assert names == {found.external_id: found.name for found in settled(other, one).offers}
    assert len(set(names.values())) == 2
    assert max(map(len, names.values())) <= 160


slices = st.lists(
    st.tuples(st.sampled_from("ab"), st.frozensets(st.integers(0, 7), min_size=1), st.booleans(), st.booleans()),
    max_size=12,
)


@given(slices)
def test_no_gpu_is_in_two_offers_and_every_row_is_somewhere(
    drawn: list[tuple[str, frozenset[int], bool, bool]],
) -> None:
    offers = [
        offer(
            str(at),
            len(gpus),
            host=host,
            gpu_ids=ids(*gpus) if told else None,
            host_gpus=8,
            rentable=rentable,
        )
        for at, (host, gpus, told, rentable) in enumerate(drawn, start=1)
    ]
    feed = settled(*offers)
    assert len(feed.offers) + len(feed.merged) == feed.seen
    for host in "ab":
        told = [gpu for one in feed.offers if one.host == host for gpu in one.gpu_ids or ()]
        assert len(told) == len(set(told))
        if any(one.host == host and one.gpu_ids is None for one in feed.offers):
            assert sum(one.gpu_count for one in feed.offers if one.host == host) <= 8
    # Whatever was left out is in the way of something that stayed, or too much for its machine.
    for left in feed.merged:
        assert left.kept in {one.external_id for one in feed.offers}
