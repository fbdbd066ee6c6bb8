"""Files become rows of the catalog all or not at all; what is wrong is named by line and column."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.importing import reading
from catalog.importing.machines import MachineTable
from catalog.importing.products import GpuAliasTable, GpuTable, PlaceAliasTable
from catalog.importing.reading import Unreadable, marked, read_csv, read_json
from catalog.importing.writing import Unapplicable
from catalog.models import Gpu, GpuAlias, Machine, PlaceAlias
from catalog.units import GB
from tests.factories import make_gpu, make_machine, make_provider, make_user

KNOWN, REQUIRED = ("name", "price", "note"), ("name",)


def faults(read: Callable[..., Any], content: bytes) -> list[tuple[int | None, str, str]]:
    with pytest.raises(Unreadable) as refused:
        read(content, known=KNOWN, required=REQUIRED)
    return [(fault.line, fault.column, fault.message) for fault in refused.value.faults]


def csv_rows(content: bytes) -> list[dict[str, str]]:
    return read_csv(content, known=KNOWN, required=REQUIRED).rows


def test_a_mark_of_utf_8_blanks_around_headers_and_their_case_do_not_matter() -> None:
    row = {"name": "Älpha", "price": "1"}
    for content in ("\ufeffName, Price \r\nÄlpha,1\r\n", "name,PRICE\nÄlpha,1", "\n\nname,price\n\nÄlpha,1\n\n"):
        assert csv_rows(content.encode()) == [row]


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    table = read_csv(b'name,note\na,"two\nlines"\n\nb,x\n', known=KNOWN, required=REQUIRED)
    assert table.lines == [2, 5]
    rows = read_json(b'[\n {"name": "a"},\n\n {"name":\n "b"}\n]', known=KNOWN, required=REQUIRED)
    assert rows.lines == [2, 4]


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"", None, "empty"),
        (b"\n \n", None, "empty"),
        (b"name,price\n", None, "no row"),
        (b"name;price\na;1\n", 1, "separated by “;”"),
        (b"name\tprice\na\t1\n", 1, "separated by tabs"),
        (b"name,price\na,1\nb\x00,2\n", 3, "NUL"),
        (b"name,price\na,1\n\xe9,2\n", 3, "is not UTF-8"),
        ("name,price\na,1\n".encode("utf-16"), None, "UTF-16"),
        (b"name,price\na,1,2\n", 2, "3 cells"),
        (b"name,price\na\n", 2, "1 cells"),
        (b'name,price\na,1\n"b,2\n', 3, "not CSV"),
        (b'name,price\n"a"b,2\n', 2, "not CSV"),
        (b"name,name\na,b\n", 1, "twice"),
        (b"price\n1\n", 1, "missing"),
        (b"name,prise\na,1\n", 1, "Did you mean price?"),
        (b"name,zzz\na,1\n", 1, "Known are name, price, note"),
        (b"name,note\na," + b"x" * 4001 + b"\n", 2, "4,001 characters"),
        (b"name,note\na," + b"x" * 200_000 + b"\n", 2, "more than 4,000 characters"),
        (b'{"name": 1}', 1, "not a column"),
        (b"PK\x03\x04\x00\x00", 1, "NUL"),
    ],
)
def test_a_file_that_is_no_such_csv_is_refused_where_it_is_wrong(content: bytes, line: int | None, words: str) -> None:
    found = faults(read_csv, content)
    assert found[0][0] == line
    assert words in found[0][2]


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"", None, "empty"),
        (b"[]", None, "no row"),
        (b'{"name": "a"}', 1, "no JSON list"),
        (b"name,price\na,1", 1, "no JSON list"),
        (b'[{"name": "a"},\n{"name": NaN}]', 2, "NaN"),
        (b'[{"name": "a", "price": Infinity}]', 1, "Infinity"),
        (b'[{"name": "a"},\n{"name": "b", "name": "c"}]', 2, "there twice"),
        (b'[{"name": "a"}\n{"name": "b"}]', 1, "a comma"),
        (b'[{"name": "a"},\n]', 2, "not JSON"),
        (b'[{"name": "a"}', 1, "a comma or the end"),
        (b'[{"name": "a"}] x', 1, "follows the end"),
        (b'[{"name": "a"},\n[1]]', 2, "must be an object"),
        (b'[{"name": {"a": 1}}]', 1, "must be a text"),
        (b'[{"name": "a", "prise": 1}]', 1, "Did you mean price?"),
        (b'[{"price": 1}]', 1, "is missing"),
        (b"[" * 100_000, 1, "has lists inside of lists"),
        (b'[{"name": ' + b"[" * 100_000, 1, "has lists inside of lists"),
        (b"[] x", 1, "Something follows the end of the list"),
        (b"[\n] [", 2, "Something follows the end of the list"),
        (b"[", 1, "a value is missing, at character 2 of the line"),
        (b'[{"name": "a" "b"}]', 1, "a comma is missing, at character 15 of the line"),
        (b"[{'name': 1}]", 1, "a name in double quotation marks is missing"),
        (b'[{"name": "a', 1, "the quotation mark that ends a text is missing"),
        (b'[{"name": "a\\u0000"}]', 1, "has a sign that no text can hold"),
        (b'[{"name": "a"},\n{"name": "\\ud800"}]', 2, "has a sign that no text can hold"),
        (b'[{"\\ud800": 1}]', 1, "has a sign that no text can hold"),
        (b'[{"name": "a\x00"}]', 1, "NUL"),
        (b'[{"name": "\xff"}]', 1, "is not UTF-8"),
    ],
)
def test_a_file_that_is_no_such_json_is_refused_where_it_is_wrong(content: bytes, line: int | None, words: str) -> None:
    found = faults(read_json, content)
    assert found[0][0] == line
    assert words in found[0][2]


def test_every_wrong_row_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [line for line, _, _ in faults(read_csv, b"name,price\na,1,1\nb,1\nc\n")] == [2, 4]
    monkeypatch.setattr(reading, "MAX_ROWS", 2)
    assert "more than 2 rows" in faults(read_csv, b"name\na\nb\nc\n")[0][2]
    assert "more than 2 rows" in faults(read_json, b'[{"name":"a"},{"name":"b"},{"name":"c"}]')[0][2]
    monkeypatch.setattr(reading, "MAX_BYTES", 2**20)
    assert "more than 1 MiB" in faults(read_csv, b"name\n" + b"a\n" * 2**20)[0][2]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-x", "@a", "\t=1", "  =1", "'=1", "'quoted", "-1.5", "-", "a=1", ""])
def test_what_is_marked_for_a_spreadsheet_is_read_back_as_it_was(text: str) -> None:
    written = marked(text)
    assert written == text or written == f"'{text}"
    assert not written.lstrip().startswith(("=", "+", "@"))
    quoted = written.replace('"', '""')
    assert csv_rows(f'name,note\na,"{quoted}"\n'.encode())[0]["note"] == text


# --- Machines -----------------------------------------------------------------------------------------------------

HEADER = "provider,name,gpu,tier,country,memory,memory_unit,memory_source,lots,hourly_usd"
SOUND = "north,Alpha,rtx-4090,secure,DE,24,GB,datasheet,3,0.654762"
NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture
def there(db: None) -> None:
    make_provider("north", name="North")
    make_gpu("rtx-4090", name="RTX 4090")


def planned(content: str, table: Any = MachineTable) -> Any:
    one = table()
    read = read_json if content.startswith("[") else read_csv
    one.plan_table(read(content.encode(), known=one.columns(), required=one.required))
    return one


def applied(content: str, table: Any = MachineTable) -> Any:
    one = planned(content, table)
    assert not one.plan.faults
    one.apply(user=make_user(), reason="Import: moved", now=NOW)
    return one


def counts(one: Any) -> tuple[int, int, int]:
    return one.plan.new, one.plan.changed, one.plan.unchanged


def test_a_plan_writes_nothing_and_applying_it_twice_changes_nothing_more(there: None) -> None:
    assert counts(planned(f"{HEADER}\n{SOUND}\n")) == (1, 0, 0)
    assert not Machine.objects.exists()
    applied(f"{HEADER}\n{SOUND}\n")
    machine = Machine.objects.get()
    assert (machine.gpu_memory_bytes, machine.lots, machine.free_lots, machine.country) == (24 * GB, 3, 3, "DE")
    assert (machine.price_7_days_usd, machine.price_30_days_usd) == (Decimal("110.00"), Decimal("471.43"))
    assert machine.history.get().history_change_reason == "Import: moved"
    again = planned(f"{HEADER}\n{SOUND}\n")
    assert counts(again) == (0, 0, 1)
    assert not again.plan.changes


def test_a_change_shows_each_value_before_and_after_and_leaves_the_rest(there: None) -> None:
    applied(f"{HEADER}\n{SOUND}\n")
    Machine.objects.update(price_7_days_usd=Decimal("99.00"), free_lots=1)
    one = applied("provider,name,country,lots,hourly_usd\nnorth,Alpha,fr,4,0.70\n")
    (change,) = one.plan.changes
    assert (change.line, change.is_new, change.label) == (2, False, "Alpha")
    assert change.values == [("country", "DE", "FR"), ("lots", "3", "4"), ("hourly_usd", "0.654762", "0.70")]
    machine = Machine.objects.get()
    assert (machine.country, machine.lots, machine.free_lots) == ("FR", 4, 2)
    assert (machine.price_7_days_usd, machine.hourly_usd) == (Decimal("99.00"), Decimal("0.70"))
    assert machine.history.count() == 2
    assert machine.history.first().prev_record.country == "DE"


def test_an_empty_cell_means_unknown_or_the_price_that_follows(there: None) -> None:
    applied(f"{HEADER}\n{SOUND}\n")
    Machine.objects.update(price_7_days_usd=Decimal("99.00"), price_3_days_usd=Decimal("50.00"))
    applied(
        "provider,name,country,memory,memory_source,price_3_days_usd,price_7_days_usd,price_30_days_usd\n"
        "north,Alpha,,,,,,\n"
    )
    machine = Machine.objects.get()
    assert (machine.country, machine.gpu_memory_bytes, machine.memory_source) == (None, None, "")
    assert (machine.price_3_days_usd, machine.price_7_days_usd) == (None, Decimal("110.00"))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("provider", "south", "must be the slug of one that is in the catalog; it is “south”"),
        ("provider", "", "must not be empty"),
        ("name", "", "must not be empty"),
        ("name", "x" * 161, "160"),
        ("gpu", "h100", "must be the slug of one that is in the catalog; it is “h100”"),
        ("tier", "gold", "must be one of secure, community"),
        ("tier", "community", "memory_source"),
        ("country", "EU", "country code"),
        ("country", "UK", "country code"),
        ("memory", "NaN", "must be a number"),
        ("memory", "24 GB", "must be a number"),
        ("memory", "0", "must be above 0 and at most 4,096 GiB, or empty when it is unknown. It is “0”."),
        ("memory", "1e9", "must be a number"),
        ("memory_unit", "G", "must be one of"),
        ("memory_source", "", "must say where"),
        ("lots", "0", "whole number from 1"),
        ("lots", "-1", "whole number from 1"),
        ("lots", "3.5", "without separators"),
        ("lots", '"3,000"', "without separators"),
        ("lots", "9" * 18, "whole number from 1"),
        ("lots", "", "whole number from 1"),
        ("hourly_usd", "", "is needed for a new row"),
        ("hourly_usd", "0", "above 0"),
        ("hourly_usd", "$1", "must be a number"),
        ("hourly_usd", '"0,65"', "must be a number"),
        ("hourly_usd", "99999", "at most 10,000"),
        ("hourly_usd", "Infinity", "must be a number"),
    ],
)
def test_a_wrong_cell_is_named_by_line_and_column_and_nothing_is_planned_for_it(
    there: None, column: str, value: str, words: str
) -> None:
    cells = dict(zip(HEADER.split(","), SOUND.split(","), strict=True)) | {column: value}
    one = planned(f"{HEADER}\n{SOUND.replace('Alpha', 'Other')}\n{','.join(cells.values())}\n")
    assert {fault.line for fault in one.plan.faults} == {3}
    assert any(words in fault.message or words == fault.column for fault in one.plan.faults), one.plan.faults
    assert not Machine.objects.exists()


def test_rows_seventeen_and_sixty_three_are_wrong_and_both_are_said(there: None) -> None:
    rows = [SOUND.replace("Alpha", f"M{number}") for number in range(100)]
    rows[15] = rows[15].replace("secure", "gold")
    rows[61] = rows[61].replace("0.654762", "free")
    one = planned("\n".join([HEADER, *rows]))
    assert [(fault.line, fault.column) for fault in one.plan.faults] == [(17, "tier"), (63, "hourly_usd")]


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        (
            "memory\nnorth,Alpha,abc",
            [("memory", "must be a number such as 110.00, with a point and without signs; it is “abc”.")],
        ),
        (
            "memory,memory_unit\nnorth,Alpha,24,",
            [("memory_unit", "must say what the memory is given in: GiB, GB, MiB, bytes. It is empty.")],
        ),
        ("memory,memory_unit,memory_source\nnorth,Alpha,,,", []),
        ("hourly_usd\nnorth,Alpha,0", [("hourly_usd", "must be above 0 and at most 10,000. It is “0”.")]),
        (
            "hourly_usd,price_7_days_usd\nnorth,Alpha,0,",
            [("hourly_usd", "must be above 0 and at most 10,000. It is “0”.")],
        ),
        ("price_7_days_usd\nnorth,Alpha,1.005", [("price_7_days_usd", "must be whole cents. It is “1.005”.")]),
        ("listed\nnorth,Alpha,", [("listed", "must be true or false; it is empty.")]),
        (
            "max_term_days\nnorth,Alpha,0",
            [("max_term_days", "must be a whole number from 1 to 365, or empty. It is “0”.")],
        ),
        (
            "tier,lots\nnorth,Alpha,community,1",
            [("memory_source", "must be provider_report for the tier community. The file has no such column: add it.")],
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_column_its_value_and_what_to_write(
    there: None, content: str, faults: list[tuple[str, str]]
) -> None:
    applied(f"{HEADER}\n{SOUND}\n")
    found = planned(f"provider,name,{content}\n").plan.faults
    assert [(fault.line, fault.column, fault.message) for fault in found] == [(2, *fault) for fault in faults]


def test_a_new_machine_without_a_price_is_told_of_that_price_alone(there: None) -> None:
    found = planned(f"{HEADER}\n{SOUND.replace('0.654762', '0')}\n").plan.faults
    assert [fault.column for fault in found] == ["hourly_usd"]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("devices_per_card", "", "must not be empty."),
        (
            "devices_per_card",
            "99999999999",
            "must be from 1 to 1,000, or empty when it is unknown. It is “99999999999”.",
        ),
        ("memory_gb_nominal", "99999999999", "must be from 1 to 1,000,000, or empty when it is unknown."),
        ("memory_bandwidth_gb_s", "123456789012", "must have at most 8 digits. It is “123456789012”."),
        ("architecture", "x" * 41, "must have at most 40 characters."),
    ],
)
def test_a_gpu_is_told_of_in_the_same_words(db: None, column: str, value: str, said: str) -> None:
    found = planned(f"slug,name,vendor,{column}\nx,X,NVIDIA,{value}\n", GpuTable).plan.faults
    assert {(fault.line, fault.column) for fault in found} == {(2, column)}
    assert said in found[0].message


def test_a_machine_that_is_named_twice_is_said_with_both_lines(there: None) -> None:
    one = planned(f"{HEADER}\n{SOUND}\n{SOUND.replace('DE', 'FR')}\n")
    assert [(fault.line, fault.message) for fault in one.plan.faults] == [(3, "names the same row as line 2.")]


def test_lots_under_rent_are_kept_also_when_they_were_sold_after_the_plan(there: None) -> None:
    applied(f"{HEADER}\n{SOUND}\n")
    less = "provider,name,lots,country\nnorth,Alpha,1,FR\n"
    Machine.objects.update(free_lots=1)
    assert [fault.column for fault in planned(less).plan.faults] == ["lots"]
    Machine.objects.update(free_lots=3)
    one = planned(less)
    Machine.objects.update(free_lots=1)
    with pytest.raises(Unapplicable) as refused:
        one.apply(user=make_user(), reason="x", now=NOW)
    assert refused.value.fault.line == 2
    machine = Machine.objects.get()
    assert (machine.lots, machine.free_lots, machine.country) == (3, 1, "DE")


def test_lots_that_were_sold_after_the_plan_stay_sold(there: None) -> None:
    applied(f"{HEADER}\n{SOUND}\n")
    one = planned("provider,name,lots,country\nnorth,Alpha,5,FR\n")
    Machine.objects.update(free_lots=1, listed=False)
    one.apply(user=make_user(), reason="x", now=NOW)
    machine = Machine.objects.get()
    assert (machine.lots, machine.free_lots, machine.country, machine.listed) == (5, 3, "FR", False)
    assert machine.history.first().listed is False


def test_a_machine_that_was_deleted_after_the_plan_stops_all_of_it(there: None) -> None:
    applied(f"{HEADER}\n{SOUND}\n{SOUND.replace('Alpha', 'Beta')}\n")
    one = planned("provider,name,country\nnorth,Alpha,FR\nnorth,Beta,FR\n")
    Machine.objects.get(name="Beta").delete()
    with pytest.raises(Unapplicable):
        one.apply(user=make_user(), reason="x", now=NOW)
    assert Machine.objects.get().country == "DE"


def test_a_value_that_somebody_changed_after_the_plan_stops_all_of_it(there: None) -> None:
    applied(f"{HEADER}\n{SOUND}\n{SOUND.replace('Alpha', 'Beta')}\n")
    for column, value, other in (
        ("country", "FR", {"country": None}),
        ("hourly_usd", "0.7", {"hourly_usd": Decimal("0.9")}),
        ("memory", "48", {"gpu_memory_bytes": 23 * GB}),
        ("gpu", "rtx-4091", {"gpu": make_gpu("rtx-4092")}),
    ):
        make_gpu(value) if column == "gpu" else None
        one = planned(f"provider,name,{column}\nnorth,Alpha,{value}\nnorth,Beta,{value}\n")
        assert not one.plan.faults
        before, versions = list(Machine.objects.values()), Machine.history.count()
        Machine.objects.filter(name="Beta").update(**other)
        with pytest.raises(Unapplicable) as refused:
            one.apply(user=make_user(), reason="x", now=NOW)
        assert (refused.value.fault.line, "changed by somebody else" in str(refused.value)) == (3, True)
        assert Machine.objects.values().get(name="Alpha") == next(row for row in before if row["name"] == "Alpha")
        assert Machine.history.count() == versions


def test_each_row_is_written_where_its_file_says_something_and_nowhere_else(there: None) -> None:
    applied(f"{HEADER}\n{SOUND}\n{SOUND.replace('Alpha', 'Beta')}\n")
    Machine.objects.filter(name="Beta").update(listed=False)
    rows = '[{"provider": "north", "name": "Alpha", "country": null}, {"provider": "north", "name": "Beta", "lots": 5}]'
    assert counts(applied(rows)) == (0, 2, 0)
    alpha, beta = Machine.objects.order_by("name")
    assert (alpha.country, alpha.lots, alpha.listed) == (None, 3, True)
    assert (beta.country, beta.lots, beta.free_lots, beta.listed) == ("DE", 5, 5, False)
    for machine in (alpha, beta):
        newest = machine.history.first()
        assert (newest.history_type, newest.history_change_reason, newest.history_date) == ("~", "Import: moved", NOW)
        assert (newest.country, newest.lots, newest.listed) == (machine.country, machine.lots, machine.listed)
        assert machine.updated_at == NOW


def test_rows_are_held_for_as_many_statements_however_many_they_are(there: None) -> None:
    def statements(number: int) -> int:
        names = [f"M{n}" for n in range(number)]
        applied("\n".join([HEADER, *(SOUND.replace("Alpha", name) for name in names)]))
        one = planned("\n".join(["provider,name,country,lots", *(f"north,{name},FR,4" for name in names)]))
        with CaptureQueriesContext(connection) as caught:
            one.apply(user=make_user(), reason="x", now=NOW)
        sent = [query["sql"] for query in caught]
        held = next(place for place, sql in enumerate(sent) if "import_beside) ORDER BY" in sql.replace('"', ""))
        Machine.objects.all().delete()
        return len(sent) - held

    assert statements(5) == statements(700) < 10


def test_a_name_that_was_taken_after_the_plan_stops_all_of_it(there: None) -> None:
    one = planned(f"{HEADER}\n{SOUND}\n{SOUND.replace('Alpha', 'Beta')}\n")
    applied(f"{HEADER}\n{SOUND}\n")
    with pytest.raises(Unapplicable):
        one.apply(user=make_user(), reason="x", now=NOW)
    assert Machine.objects.count() == 1


def test_what_a_feed_keeps_is_refused_and_what_staff_decide_is_not(there: None) -> None:
    fed = make_provider("fed", name="Fed", feed_url="https://feed.example/", feed_format="berth")
    machine = make_machine(name="Its", provider=fed, gpu=Gpu.objects.get(), country="DE")
    one = planned("provider,name,country,listed\nfed,Its,FR,true\nfed,New,FR,true\n")
    assert {(fault.line, fault.column) for fault in one.plan.faults} >= {(2, "country")}
    assert any("next refresh" in fault.message for fault in one.plan.faults)
    whole = f"{HEADER}\n{SOUND.replace('north', 'fed')}\n"
    assert [(fault.line, fault.column) for fault in planned(whole).plan.faults] == [(2, "provider")]
    applied("provider,name,country,listed\nfed,Its,DE,false\n")
    machine.refresh_from_db()
    assert (machine.listed, machine.country) == (False, "DE")


def test_a_list_of_objects_says_the_same_as_a_table(there: None) -> None:
    row = {"provider": "north", "name": "Alpha", "gpu": "rtx-4090", "tier": "secure", "hourly_usd": 0.654762,
           "lots": 3, "listed": False, "country": None, "memory": "24", "memory_unit": "GB",
           "memory_source": "datasheet"}  # fmt: skip
    applied(json.dumps([row]))
    machine = Machine.objects.get()
    assert (machine.lots, machine.listed, machine.country) == (3, False, None)
    assert counts(planned(json.dumps([row]))) == (0, 0, 1)
    assert counts(planned(json.dumps([{"provider": "north", "name": "Alpha"}, {**row, "name": "Beta"}]))) == (1, 0, 1)
    missing = planned(json.dumps([row, {"name": "Beta"}]))
    assert [(fault.line, fault.column) for fault in missing.plan.faults] == [(1, "provider")]


# --- GPUs and spellings -------------------------------------------------------------------------------------------


def test_gpus_come_from_a_file_and_their_mistakes_are_named(there: None) -> None:
    header = "slug,name,vendor,memory_gb_nominal,bf16,sources\n"
    applied(f'{header}h100,H100,NVIDIA,80,true,"https://a.example/\nhttps://b.example/"\n', GpuTable)
    gpu = Gpu.objects.get(slug="h100")
    assert (gpu.memory_gb_nominal, gpu.bf16, gpu.sources) == (80, True, ["https://a.example/", "https://b.example/"])
    assert gpu.history.get().history_user is not None
    for row, where in (
        ("H 100,H100 b,NVIDIA,80,,", "slug"),
        ("h200,H100,NVIDIA,80,,", "name"),
        ("h200,H200,,80,,", "vendor"),
        ("h200,H200,NVIDIA,0,,", "memory_gb_nominal"),
        ("h200,H200,NVIDIA,141,maybe,", "bf16"),
        ("h200,H200,NVIDIA,141,,javascript:x", "sources"),
    ):
        assert where in {fault.column for fault in planned(header + row + "\n", GpuTable).plan.faults}, row


def test_spellings_come_from_files(there: None) -> None:
    one = applied("gpu,name\nrtx-4090,GeForce 4090\nrtx-4090,4090\n", GpuAliasTable)
    assert counts(one) == (2, 0, 0)
    assert counts(planned("gpu,name\nrtx-4090,4090\n", GpuAliasTable)) == (0, 0, 1)
    assert GpuAlias.objects.count() == 2
    applied("name,country\nAtlantis,AT\nEarth,\n", PlaceAliasTable)
    assert dict(PlaceAlias.objects.values_list("name", "country")) == {"Atlantis": "AT", "Earth": None}
    assert counts(applied("name,country\natlantis,GR\n", PlaceAliasTable)) == (0, 1, 0)
    assert PlaceAlias.objects.get(name="Atlantis").country == "GR"
