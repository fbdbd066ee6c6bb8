"""Staff upload a file, see what it would change and confirm; what they take away can be brought back unchanged."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from catalog.importing.reading import read
from catalog.models import Gpu, GpuAlias, ImportDraft, Machine, PlaceAlias
from tests.factories import make_gpu, make_machine, make_provider, make_user

MACHINES = "/admin/catalog/machine/"
IMPORT = f"{MACHINES}import/"
FILE = (
    "provider,name,gpu,tier,country,memory,memory_unit,memory_source,lots,hourly_usd\n"
    "north,Alpha,rtx-4090,secure,DE,24,GB,datasheet,3,0.654762\n"
    "north,Beta,rtx-4090,secure,FR,24,GB,datasheet,1,0.5\n"
)


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    make_provider("north", name="North")
    make_gpu("rtx-4090", name="RTX 4090")
    client.force_login(make_user(is_staff=True, is_superuser=True))
    return client


def upload(client: Client, content: str | bytes, *, url: str = IMPORT, name: str = "m.csv", reason: str = "New") -> Any:
    data = content.encode() if isinstance(content, str) else content
    return client.post(url, {"file": SimpleUploadedFile(name, data), "reason": reason})


def test_a_reason_that_shows_nothing_is_none(staff: Client) -> None:
    assert "Write one line of plain text" in upload(staff, FILE, reason="\u3164").content.decode()


def key_in(response: Any) -> str:
    found = re.search(r'name="key" value="([^"]+)"', response.content.decode())
    assert found, "there is nothing to confirm"
    return found[1]


def import_file(client: Client, content: str, **fields: Any) -> Any:
    key = key_in(upload(client, content, **fields))
    return client.post(fields.get("url", IMPORT), {"key": key}, follow=True)


def test_a_file_is_looked_at_confirmed_and_changes_nothing_a_second_time(staff: Client) -> None:
    assert IMPORT in staff.get(MACHINES).content.decode()
    page = upload(staff, FILE).content.decode()
    for words in ("2 new", "0 changed", "Import 2 rows", "Alpha", "hourly_usd: 0.654762", "Nothing is changed yet"):
        assert words in page, words
    assert not Machine.objects.exists()
    page = import_file(staff, FILE).content.decode()
    assert "Imported m.csv: 2 new, 0 changed, 0 unchanged." in page
    machine = Machine.objects.get(name="Alpha")
    assert (machine.price_7_days_usd, machine.free_lots) == (Decimal("110.00"), 3)
    newest = machine.history.get()
    assert (newest.history_change_reason, newest.history_user.is_staff) == ("Import: New", True)
    assert "Imported: 2 new" in LogEntry.objects.get().change_message
    page = upload(staff, FILE).content.decode()
    assert "The file changes nothing: 2 rows are as the catalog has them" in page
    assert 'name="key"' not in page
    assert not ImportDraft.objects.exists()


def test_the_preview_shows_what_was_and_what_would_be(staff: Client) -> None:
    import_file(staff, FILE)
    page = upload(staff, FILE.replace("DE", "").replace("0.5\n", "0.6\n")).content.decode()
    assert "country: <del>DE</del> → <ins>empty</ins>" in page
    assert "hourly_usd: <del>0.500000</del> → <ins>0.6</ins>" in page
    assert "2 changed" in page


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (FILE.replace("secure", "gold", 1), "must be one of secure, community"),
        (FILE.replace(",", ";"), "separated by “;”"),
        (FILE.encode("utf-16"), "UTF-16"),
        (FILE.encode() + b"\x00", "NUL"),
        (FILE.replace("Beta", "Alpha"), "the same row as line 2"),
        (FILE.replace("Beta", "B" * 5000), "5,000 characters"),
        (FILE.replace("hourly_usd", "hourly_eur"), "Did you mean hourly_usd?"),
        (b"\xff\xd8\xff\xe0 not a table", "is not UTF-8"),
        ("<html>login</html>", "is not a column"),
        ("name\n", "is missing"),
        ("[1]", "must be an object"),
    ],
)
def test_a_file_that_is_wrong_changes_nothing_and_says_where(staff: Client, content: Any, words: str) -> None:
    make_machine()
    before = list(Machine.objects.values())
    response = upload(staff, content)
    page = response.content.decode()
    assert response.status_code == 200
    assert words in page
    assert "Nothing was changed" in page
    assert 'name="key"' not in page
    assert list(Machine.objects.values()) == before


def test_a_reason_and_a_file_are_needed(staff: Client) -> None:
    assert set(staff.post(IMPORT, {}).context["form"].errors) == {"file", "reason"}
    assert set(upload(staff, FILE, reason=" ").context["form"].errors) == {"reason"}
    assert set(upload(staff, b"").context["form"].errors) == {"file"}
    assert staff.post(IMPORT, {"file": "text", "reason": "x"}).status_code == 200


def test_text_of_a_file_is_shown_as_text(staff: Client) -> None:
    name = "<script>alert(1)</script>"
    page = upload(staff, FILE.replace("Alpha", name), name=f"{name}.csv").content.decode()
    assert name not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_only_who_uploaded_a_file_confirms_it_once_and_not_for_long(staff: Client) -> None:
    key = key_in(upload(staff, FILE))
    other = Client()
    other.force_login(make_user(is_staff=True, is_superuser=True))
    for client, given in ((other, key), (staff, "nonsense"), (staff, "../../etc/passwd"), (staff, "")):
        page = client.post(IMPORT, {"key": given}, follow=True).content.decode()
        assert "Upload it again" in page
    assert "Upload it again" in staff.post("/admin/catalog/gpu/import/", {"key": key}, follow=True).content.decode()
    assert not Machine.objects.exists()
    ImportDraft.objects.update(created_at=datetime.now(UTC) - timedelta(hours=2))
    assert "Upload it again" in staff.post(IMPORT, {"key": key}, follow=True).content.decode()
    key = key_in(upload(staff, FILE))
    assert ImportDraft.objects.count() == 1
    staff.post(IMPORT, {"key": key})
    assert "imported already" in staff.post(IMPORT, {"key": key}, follow=True).content.decode()
    assert Machine.objects.count() == 2


def test_what_changed_after_the_preview_is_shown_again_before_anything_is_done(staff: Client) -> None:
    import_file(staff, FILE)
    key = key_in(upload(staff, FILE.replace("DE", "IT")))
    Machine.objects.filter(name="Alpha").update(country="ES")
    response = staff.post(IMPORT, {"key": key})
    page = response.content.decode()
    assert "was changed meanwhile" in page
    assert "<del>ES</del> → <ins>IT</ins>" in page
    assert Machine.objects.get(name="Alpha").country == "ES"
    staff.post(IMPORT, {"key": key_in(response)})
    assert Machine.objects.get(name="Alpha").country == "IT"


def test_a_lot_that_was_sold_after_the_preview_stops_the_import(staff: Client) -> None:
    import_file(staff, FILE)
    key = key_in(upload(staff, FILE.replace("datasheet,3", "datasheet,2").replace("FR", "ES")))
    Machine.objects.filter(name="Alpha").update(free_lots=0)
    page = staff.post(IMPORT, {"key": key}).content.decode()
    assert "3 lots are under rent" in page
    assert Machine.objects.get(name="Beta").country == "FR"


def test_an_export_is_what_the_list_shows_and_comes_back_unchanged(staff: Client) -> None:
    import_file(staff, FILE)
    Machine.objects.filter(name="Beta").update(name='=1+1, "quoted"\nand \'more', country=None)
    make_machine(name="'=x", provider=make_provider("south"), gpu_memory_bytes=None, price_3_days_usd=Decimal("9.00"))
    for kind in ("csv", "json"):
        response = staff.get(f"{MACHINES}export.{kind}")
        content = b"".join(response.streaming_content).decode()
        assert f'.{kind}"' in response["Content-Disposition"]
        page = upload(staff, content, name=f"m.{kind}").content.decode()
        assert "The file changes nothing: 3 rows" in page, content
    assert not re.search(r'(?m)(^|,)"?[=+@]', b"".join(staff.get(f"{MACHINES}export.csv").streaming_content).decode())
    some = b"".join(staff.get(f"{MACHINES}export.json?q=alpha").streaming_content)
    assert [row["name"] for row in json.loads(some)] == ["Alpha"]
    assert json.loads(some)[0]["hourly_usd"] == "0.654762"
    assert json.loads(some)[0]["lots"] == 3
    none = b"".join(staff.get(f"{MACHINES}export.json?q=nothing").streaming_content)
    assert json.loads(none) == []
    assert staff.get(f"{MACHINES}export.csv?no_such=1").status_code == 302
    assert staff.get(f"{MACHINES}export.xlsx").status_code == 302


@pytest.mark.parametrize(
    ("table", "content"),
    [
        ("gpu", "slug,name,vendor\nh100,H100,NVIDIA\n"),
        ("gpualias", "gpu,name\nrtx-4090,GeForce 4090\n"),
        ("placealias", "name,country\nAtlantis,GR\n"),
    ],
)
def test_gpus_and_spellings_come_and_go_as_files_too(staff: Client, table: str, content: str) -> None:
    url = f"/admin/catalog/{table}/import/"
    assert staff.get(url).status_code == 200
    assert "Imported m.csv: 1 new" in import_file(staff, content, url=url).content.decode()
    exported = b"".join(staff.get(f"/admin/catalog/{table}/export.csv").streaming_content).decode()
    assert "The file changes nothing" in upload(staff, exported, url=url).content.decode()
    assert Gpu.objects.count() + GpuAlias.objects.count() + PlaceAlias.objects.count() == 2


def test_who_may_only_look_exports_and_does_not_import(client: Client, db: None) -> None:
    looker = make_user(is_staff=True)
    client.force_login(looker)
    make_machine(name="Alpha")
    for url in (IMPORT, f"{MACHINES}export.csv"):
        assert client.get(url).status_code == 403
    looker.user_permissions.add(Permission.objects.get(codename="view_machine"))
    client.force_login(looker)
    assert client.get(IMPORT).status_code == 403
    assert upload(client, FILE).status_code == 403
    assert client.post(IMPORT, {"key": "x"}).status_code == 403
    assert IMPORT not in client.get(MACHINES).content.decode()
    assert b"Alpha" in b"".join(client.get(f"{MACHINES}export.csv").streaming_content)
    assert Client().get(IMPORT).status_code == 302


def test_twice_the_rows_cost_as_many_questions_to_the_database_while_planning(staff: Client) -> None:
    header, row = FILE.splitlines()[:2]

    def questions(number: int) -> int:
        content = "\n".join([header, *(row.replace("Alpha", f"M{n}") for n in range(number))])
        with CaptureQueriesContext(connection) as caught:
            upload(staff, content)
        return len(caught)

    questions(1)
    assert questions(50) == questions(400)


def test_the_pages_have_no_script_and_no_style_of_their_own(staff: Client) -> None:
    import_file(staff, FILE)
    for response in (
        staff.get(IMPORT),
        upload(staff, FILE.replace("DE", "IT")),
        upload(staff, "x"),
        staff.get(MACHINES),
    ):
        page = response.content.decode()
        assert "style=" not in page.replace('class="base-svgs" style=', "")
        assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>|\son[a-z]+=", page)


def test_what_is_read_is_the_file_and_not_its_name(staff: Client) -> None:
    assert read(b'\xef\xbb\xbf [{"a": 1}]', known=("a",), required=("a",)).rows == [{"a": "1"}]
    assert (
        "1 new"
        in upload(staff, "slug,name,vendor\nx,X,Y\n", url="/admin/catalog/gpu/import/", name="x.json").content.decode()
    )
