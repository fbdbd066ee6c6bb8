"""Times that leave and times that come in: RFC 3339 with their offset, never naive."""

import re

import pytest
from django.db import connection

from rentals.row_security import tenant_models
from tests.factories import make_api_key, make_delivered, make_order
from tests.rentals.calls import assert_problem, get

LIKE_A_TIME = re.compile(r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
RFC_3339 = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$")


def texts(value):
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from texts(each)
        case list():
            for each in value:
                yield from texts(each)


def test_every_time_of_the_api_ends_with_z(acme):
    """B130."""
    key, order = make_api_key(acme), make_order(acme)
    make_delivered(order)
    times = []
    for path in ("orders", f"orders/{order.pk}", "key", "organization", "members", "audit", "machines", "options"):
        times += [text for text in texts(get(path, key).json()) if LIKE_A_TIME.match(text)]
    assert len(times) > 8
    assert [text for text in times if not RFC_3339.match(text)] == []


@pytest.mark.parametrize("text", ["2026-12-01T09:30:00", "2026-12-01", "2026-12-01 09:30", "1764581400", "yesterday"])
def test_a_time_without_its_offset_is_refused(acme, text):
    """B130."""
    problem = assert_problem(get(f"orders?created_from={text}", make_api_key(acme)), 400, "invalid")
    assert problem["errors"][0]["field"] == "created_from"


@pytest.mark.parametrize(
    "text", ["20261201T093000Z", "2026-W49-2T09:30:00Z", "２０２６-12-01T09:30:00Z", "2026-12-01T09:30:00%2B01:00:30"]
)
def test_a_time_that_other_readers_would_not_read_is_refused(acme, text):
    problem = assert_problem(get(f"orders?created_from={text}", make_api_key(acme)), 400, "invalid")
    assert problem["errors"][0]["field"] == "created_from"


@pytest.mark.parametrize("text", ["2026-12-01T09:30:00Z", "2026-12-01T10:30:00%2B01:00", "2026-12-01T09:30:00.123456Z"])
def test_a_time_with_its_offset_is_read(acme, text):
    assert get(f"orders?created_from={text}", make_api_key(acme)).status_code == 200


@pytest.mark.postgres
def test_every_moment_of_a_tenants_table_is_kept_with_its_zone(db):
    """B130."""
    tables = [model._meta.db_table for model in tenant_models()]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_name = ANY(%s) AND data_type = 'timestamp without time zone'",
            [tables],
        )
        assert cursor.fetchall() == []
