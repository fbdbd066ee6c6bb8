"""Any bytes are a feed or refused: nothing else is raised, every row is somewhere, and memory stays bounded."""

import json
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from catalog.feeds import ADAPTERS, Feed, Places, Unreadable, berth_format, runpod, vast
from catalog.feeds.json_rows import PIECE_BYTES, Body, slowly
from tests.catalog.feeds import RUNPOD, VAST

NOW = datetime(2026, 11, 30, 4, tzinfo=UTC)
FIELDS = {
    slug: module.Row.__struct_fields__
    for slug, module in {"berth": berth_format, "vast": vast, "runpod": runpod}.items()
}

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["NaN", "0", "1e400", "-1", "secure", "community", "RTX 4090", "2026-12-31T00:00:00Z", 10**30])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def checked(slug: str, body: bytes) -> Feed | None:
    try:
        feed = ADAPTERS[slug].read(body, now=NOW)
    except Unreadable as error:
        refused = error
    else:
        return whole(slug, feed)
    assert refused.code
    assert refused.detail.isprintable()
    return None


def whole(slug: str, feed: Feed) -> Feed:
    rows = {one.row for one in [*feed.offers, *feed.rejections, *feed.merged]}
    assert rows == set(range(1, feed.seen + 1))
    if slug != "runpod":
        assert feed.seen == len(feed.offers) + len(feed.rejections) + len(feed.merged)
    for refusal in feed.rejections:
        assert refusal.detail.isprintable()
        assert len(refusal.detail) <= 500
        assert len(refusal.external_id or "") <= 64
    for offer in feed.offers:
        assert 0 < offer.hourly_usd < 10**6
        assert offer.hourly_usd.as_tuple().exponent == -6
        assert 1 <= offer.gpu_count <= 16
        assert offer.gpu_memory_bytes is None or offer.gpu_memory_bytes > 0
        assert len(offer.external_id) <= 120
        assert 0 < len(offer.name) <= 160
        assert all(text is None or text.isprintable() for text in (offer.name, offer.gpu_name, offer.place))
        Places({}).find(offer.place)
    return feed


@given(st.sampled_from(list(ADAPTERS)), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(slug: str, body: bytes) -> None:
    checked(slug, body)


@given(st.sampled_from(list(ADAPTERS)), values)
def test_any_json_is_read_or_refused(slug: str, value: Any) -> None:
    checked(slug, json.dumps(value).encode("utf-8", "surrogatepass"))
    checked(slug, json.dumps({"offers": value, "data": {"gpuTypes": value}}).encode())


@pytest.mark.parametrize("slug", ADAPTERS)
@given(st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_values_in_the_known_fields_are_an_offer_or_a_fault(slug: str, data: st.DataObject) -> None:
    names = FIELDS[slug]
    rows = data.draw(st.lists(st.dictionaries(st.sampled_from(names), values) | scalars, max_size=5))
    assert checked(slug, json.dumps({"offers": rows, "data": {"gpuTypes": rows}}).encode()) is not None


@given(st.sampled_from(["vast", "runpod"]), st.data())
def test_good_rows_with_one_value_changed_are_an_offer_or_a_fault(slug: str, data: st.DataObject) -> None:
    body = json.loads({"vast": VAST, "runpod": RUNPOD}[slug])
    rows = body["offers"] if slug == "vast" else body["data"]["gpuTypes"]
    data.draw(st.sampled_from(rows))[data.draw(st.sampled_from(FIELDS[slug]))] = data.draw(values)
    feed = checked(slug, json.dumps(body).encode())
    assert feed is not None
    assert feed.seen == len(rows)


@given(st.sampled_from([VAST, RUNPOD]), st.integers(0, 12_000), st.binary(max_size=3), st.integers(0, 3))
def test_a_body_with_a_few_bytes_changed_is_read_or_refused(body: bytes, at: int, new: bytes, cut: int) -> None:
    changed = body[:at] + new + body[at + cut :]
    for slug in ("vast", "runpod"):
        checked(slug, changed)


@pytest.mark.parametrize("cut", [1, 2, 10, 500])
def test_a_body_that_ends_too_early_is_never_read_in_part(cut: int) -> None:
    assert checked("vast", VAST.rstrip()[:-cut]) is None


@example([1.5, 1e30, 1.0e-30, "a", 12], 1, None)
@example([1.5, 1e30, 1.0e-30, "a", 12], 3, None)
@example([{"x": [{}, {}]}, {"y": "},{"}, {}], 9, None)
@given(st.lists(values, max_size=30), st.integers(1, 60), st.sampled_from([None, 1]))
def test_pieces_of_any_size_give_the_rows_of_the_list(rows: list[Any], piece: int, indent: int | None) -> None:
    body = json.dumps({"offers": rows}, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("catalog.feeds.json_rows.PIECE_BYTES", piece)
        patched.setattr("catalog.feeds.json_rows.WINDOWS_BYTES", (piece, 2**20))
        found = [bytes(row) for row in Body(body, "offers").rows()]
    assert [slowly(row) for row in found] == slowly(body)["offers"]


def bomb(row: bytes, size: int) -> bytes:
    return b'{"offers": [' + (row + b",") * (size // (len(row) + 1)) + row + b"]}"


@pytest.mark.parametrize(
    "row",
    [
        b"1",
        b"{}",
        b"[]",
        b'""',
        b"NaN",
        b'{"id":1}',
        b'{"x":[' + b"{}," * 20_000 + b"{}]}",
        b'{"x":' + b"[" * 50 + b"]" * 50 + b"}",
    ],
    ids=lambda row: row[:8].decode(),
)
def test_rows_of_nothing_take_little_memory(row: bytes) -> None:
    body = bomb(row, 3 * PIECE_BYTES)
    tracemalloc.start()
    try:
        for _ in zip(Body(body, "offers").rows(), range(40_000), strict=False):
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * 2**20
