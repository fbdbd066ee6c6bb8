"""Statements of a month, and exports that a spreadsheet opens without running anything."""

import csv
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from rentals.cancellations import cancel_order
from rentals.csv_export import cell, csv_text
from rentals.models import Order
from rentals.statements import Month, month_of, months, read_month, statement
from tests.factories import make_machine, make_order, make_user

FORMULA = '=HYPERLINK("http://x","y")'


def rows(response):
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert response.headers["Content-Disposition"].startswith("attachment;")
    return list(csv.DictReader(io.StringIO(response.content.decode(), newline="")))


def ordered(organization, moment, **fields):
    machine = make_machine(lots=9, price_7_days_usd=Decimal("110.00"), name=fields.pop("name", "North 1"))
    return make_order(organization, machine, placement={"now": moment}, **fields)


def cancel(order, moment, credit):
    staff = make_user(is_staff=True)
    return cancel_order(order.pk, reason="Withdrawn", credit_usd=Decimal(credit), actor=staff, now=moment)


@pytest.fixture
def april(acme, globex):
    """Two orders in April, one at the last microsecond of March, one at the first of May; one of a stranger."""
    start, end = datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
    moments = (start - timedelta(microseconds=1), start, end - timedelta(microseconds=1), end)
    orders = [ordered(acme, moment) for moment in moments]
    ordered(globex, start, name="globex-secret")
    return orders


def test_an_order_counts_in_its_month_of_utc(acme, april):
    found = statement(acme, Month(2026, 4), now=timezone.now())
    assert [entry.order for entry in found.entries] == april[1:3]
    assert (found.ordered_usd, found.credited_usd, found.total_usd) == (Decimal("220.00"), 0, Decimal("220.00"))
    assert found.complete


def test_a_credit_counts_in_the_month_it_was_given_so_a_month_that_is_over_never_changes(acme, april):
    now = timezone.now()
    before = statement(acme, Month(2026, 4), now=now).entries
    cancel(april[2], datetime(2026, 5, 2, tzinfo=UTC), "110.00")
    assert statement(acme, Month(2026, 4), now=now).entries == before
    may = statement(acme, Month(2026, 5), now=now)
    assert (may.ordered_usd, may.credited_usd, may.total_usd) == (Decimal("110.00"), Decimal("110.00"), Decimal("0.00"))
    assert [entry.what for entry in may.entries] == ["order", "credit"]


def test_every_month_since_the_first_order_is_listed(acme, april):
    now = datetime(2026, 7, 3, tzinfo=UTC)
    assert [(str(month), total) for month, total in months(acme, now=now)] == [
        ("2026-07", Decimal("0.00")),
        ("2026-06", Decimal("0.00")),
        ("2026-05", Decimal("110.00")),
        ("2026-04", Decimal("220.00")),
        ("2026-03", Decimal("110.00")),
    ]


def test_a_month_has_the_length_the_calendar_gives_it():
    assert Month(2028, 2).end - Month(2028, 2).start == timedelta(days=29)
    assert (Month(2026, 12).next, Month(2027, 1).previous) == (Month(2027, 1), Month(2026, 12))
    assert month_of(datetime.fromisoformat("2026-05-01T01:00:00+02:00")) == Month(2026, 4)


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-13", "2026-00", "26-01", "2026-1", "9999-12", "0001-01", "２０２６-01", "x"]
)
def test_what_is_no_month(text):
    assert read_month(text) is None


def test_the_pages_of_the_statements(client, acme, april):
    client.force_login(acme.owner)
    html = client.get("/o/acme/statements/").content.decode()
    assert 'href="/o/acme/statements/2026-04/"' in html
    page = client.get("/o/acme/statements/2026-04/").content.decode()
    assert "220.00" in page
    assert april[1].reference in page
    assert april[0].reference not in page
    assert "globex-secret" not in page
    empty = client.get("/o/acme/statements/2026-02/").content.decode()
    assert "Nothing was ordered or credited" in empty


@pytest.mark.parametrize("month", ["2026-13", "9000-01", "april", "9999-12"])
@pytest.mark.parametrize("ending", ["/", ".csv"])
def test_a_month_that_is_none_or_has_not_begun_has_no_statement(client, acme, month, ending):
    client.force_login(acme.owner)
    assert client.get(f"/o/acme/statements/{month}{ending}").status_code == 404


def test_the_statement_as_csv_adds_up_to_its_total(client, acme, april):
    cancel(april[1], datetime(2026, 4, 3, tzinfo=UTC), "110.00")
    client.force_login(acme.owner)
    found = rows(client.get("/o/acme/statements/2026-04.csv"))
    assert [(row["line"], row["amount_usd"]) for row in found] == [
        ("order", "110.00"),
        ("credit", "-110.00"),
        ("order", "110.00"),
    ]
    total = statement(acme, Month(2026, 4), now=timezone.now()).total_usd
    assert sum(Decimal(row["amount_usd"]) for row in found) == total
    assert found[0]["at"].endswith("Z")
    assert found[1]["note"] == "Withdrawn"


def test_text_that_would_be_a_formula_is_text(client, acme):
    """B158."""
    ordered(acme, timezone.now(), name=FORMULA, environment_notes="@SUM(1+1)\nsecond line")
    client.force_login(acme.owner)
    row = rows(client.get("/o/acme/orders.csv"))[0]
    assert row["machine"] == f"'{FORMULA}"
    assert row["environment_notes"] == "'@SUM(1+1)\nsecond line"
    assert row["total_usd"] == "110.00"
    month = f"{Order.objects.get().starts_at:%Y-%m}"
    assert rows(client.get(f"/o/acme/statements/{month}.csv"))[0]["machine"] == f"'{FORMULA}"


@pytest.mark.parametrize("text", ["=1", "+1+1", "-1+1", "@x", "\tx", "\rx", "\nx", " =1", "＝1", "＠x", "-", "+"])
def test_dangerous_beginnings_are_marked(text):
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Decimal("-5.00"), "-5.00"),
        (Decimal("1E+3"), "1000"),
        (-5, "-5"),
        ("-5", "-5"),
        ("-5.25", "-5.25"),
        ("a=b", "a=b"),
        ("", ""),
        (None, ""),
        ("North 1", "North 1"),
    ],
)
def test_numbers_stay_numbers_and_plain_text_plain(value, written):
    assert cell(value) == written


def test_commas_quotes_and_lines_survive():
    values = ["a,b", 'say "x"', "two\nlines", "Größe"]
    assert list(csv.reader(io.StringIO(csv_text(["1", "2", "3", "4"], [values]), newline=""))) == [
        ["1", "2", "3", "4"],
        values,
    ]


def test_orders_in_one_state_as_csv(client, acme, now):
    ended, active = ordered(acme, now - timedelta(days=8)), ordered(acme, now - timedelta(hours=1))
    client.force_login(acme.owner)
    assert [row["order"] for row in rows(client.get("/o/acme/orders.csv"))] == [str(active.pk), str(ended.pk)]
    assert [row["status"] for row in rows(client.get("/o/acme/orders.csv?state=ended"))] == ["ended"]
    assert client.get("/o/acme/orders.csv?state=odd").status_code == 404
