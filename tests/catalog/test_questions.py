"""What nobody understood is asked once, and closed by whatever gives it a meaning."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from catalog import seeding
from catalog.feeds import Place, Places
from catalog.importing.products import GpuAliasTable, GpuTable, PlaceAliasTable
from catalog.importing.reading import Table
from catalog.models import FeedQuestion, FeedState, Gpu, GpuAlias, PlaceAlias, Provider
from catalog.questions import close_understood, resolve_questions
from tests.catalog.feeding import START, Clock, fed_provider, feed, machine_of, row
from tests.catalog.test_admin import form_of, send
from tests.catalog.test_importing import applied
from tests.factories import make_gpu, make_user

LATER = START + timedelta(hours=1)
SOON = START + timedelta(seconds=10)
ALIASES, PLACES, GPUS = "/admin/catalog/gpualias/", "/admin/catalog/placealias/", "/admin/catalog/gpu/"


@pytest.fixture
def gpu(db: None) -> Gpu:
    return make_gpu("rtx-4090", name="RTX 4090")


@pytest.fixture
def aspen(gpu: Gpu) -> Provider:
    return fed_provider("aspen")


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(make_user("staff@example.com", is_staff=True, is_superuser=True))
    return client


def ask(provider: Provider, raw: str, kind: str = "gpu", **fields: Any) -> FeedQuestion:
    FeedState.objects.update_or_create(provider=provider, defaults={"due_at": LATER})
    fields = {"count": 1, "first_seen_at": START, "last_seen_at": START, **fields}
    return FeedQuestion.objects.create(provider=provider, kind=kind, raw=raw, **fields)


def is_open(question: FeedQuestion) -> bool:
    question.refresh_from_db()
    return question.resolved_at is None


def is_due(provider: Provider, now: datetime) -> bool:
    return FeedState.objects.filter(provider=provider, due_at__lte=now).exists()


# --- Answered otherwise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "answered", "others"),
    [
        ("gpu", "Frobnicator 9000", ["NVIDIA frobnicator-9000", "FROBNICATOR_9000"]),
        ("place", "Mittelerde", ["MITTELERDE", "mittelerde."]),
        ("place", "Österland", ["ÖSTERLAND", "österland", "Osterland"]),
        ("place", "Земля", ["ЗЕМЛЯ"]),
    ],
)
def test_an_answer_closes_every_way_of_writing_it_and_fetches_their_lists(
    aspen: Provider, gpu: Gpu, kind: str, answered: str, others: list[str]
) -> None:
    asked = ask(aspen, answered, kind)
    same = [ask(fed_provider(f"other-{number}"), raw, kind) for number, raw in enumerate(others)]
    apart = ask(fed_provider("apart"), "Something else", kind)
    staff = make_user()
    resolve_questions(
        [asked], by=staff, reason="It says so.", now=SOON, **({"gpu": gpu} if kind == "gpu" else {"country": "NZ"})
    )
    for question in (asked, *same):
        assert not is_open(question)
        assert (question.resolved_by, question.reason) == (staff, "It says so.")
        assert is_due(question.provider, SOON)
    assert is_open(apart)
    assert not is_due(apart.provider, SOON)


def test_an_alias_made_by_hand_closes_what_it_answers_with_no_name_of_anybody(
    staff: Client, aspen: Provider, gpu: Gpu
) -> None:
    asked, apart = ask(aspen, "frobnicator-9000"), ask(aspen, "Frobnicator 9001")
    url = f"{ALIASES}add/"
    for nothing in ("", "\u3164"):
        asked_of = {"gpu": gpu.pk, "name": "Frobnicator 9000", "change_reason": nothing}
        assert set(send(staff, url, asked_of)) == {"change_reason"}
    assert send(staff, url, {"gpu": gpu.pk, "name": "Frobnicator 9000", "change_reason": "Datasheet"}) == {}
    assert not is_open(asked)
    assert asked.resolved_by is None
    assert asked.reason.startswith("Understood since 20")
    assert asked.reason.endswith("UTC: a name of RTX 4090.")
    assert is_due(aspen, datetime.now(UTC))
    assert is_open(apart)
    page = staff.get(f"/admin/catalog/feedquestion/{asked.pk}/change/").content.decode()
    assert "a name of RTX 4090" in page
    assert "somebody" not in page
    assert "1 name of GPUs or places" in staff.get("/admin/catalog/machine/").content.decode()


def test_a_place_made_by_hand_closes_what_it_answers(staff: Client, aspen: Provider) -> None:
    asked, none = ask(aspen, "MIDDLE EARTH", "place"), ask(aspen, "earth", "place")
    for name, country in (("Middle Earth", "NZ"), ("Earth", "")):
        assert send(staff, f"{PLACES}add/", {"name": name, "country": country, "change_reason": "Known"}) == {}
    assert not is_open(asked)
    assert asked.reason.endswith(": it means NZ.")
    assert not is_open(none)
    assert none.reason.endswith(": it means no country.")


@pytest.mark.parametrize("name", [",,", "、", "203.0.113.9", "Berlin 203.0.113.9", "https://atlantis.example"])
def test_a_place_that_no_list_is_read_as_is_no_alias(staff: Client, name: str) -> None:
    assert set(send(staff, f"{PLACES}add/", {"name": name, "country": "DE", "change_reason": "Known"})) == {"name"}
    plan = PlaceAliasTable().plan_table(Table(["name", "country"], [{"name": name, "country": "DE"}], [2]))
    assert [(fault.line, fault.column) for fault in plan.faults] == [(2, "name")]


def test_a_gpu_that_is_added_or_gets_a_spelling_closes_what_it_answers(staff: Client, aspen: Provider) -> None:
    by_name, by_spelling, by_edit = ask(aspen, "RTX 9090"), ask(aspen, "9090-GB"), ask(aspen, "ninety ninety")
    new = {
        **form_of(staff, f"{GPUS}add/"),
        "slug": "rtx-9090",
        "name": "NVIDIA RTX 9090",
        "vendor": "NVIDIA",
        "aliases-TOTAL_FORMS": "1",
        "aliases-0-name": "9090 GB",
        "aliases-0-change_reason": "Its maker says so",
    }
    assert set(send(staff, f"{GPUS}add/", {**new, "aliases-0-change_reason": ""})) == {"change_reason"}
    assert send(staff, f"{GPUS}add/", new) == {}
    assert (is_open(by_name), is_open(by_spelling), is_open(by_edit)) == (False, False, True)
    url = f"{GPUS}{Gpu.objects.get(slug='rtx-9090').pk}/change/"
    more = {**form_of(staff, url), "aliases-TOTAL_FORMS": "2", "aliases-1-name": "NinetyNinety"}
    assert send(staff, url, {**more, "aliases-1-change_reason": "Seen"}) == {}
    assert not is_open(by_edit)
    # A spelling that stays as it is needs no new reason.
    assert send(staff, url, form_of(staff, url)) == {}
    assert GpuAlias.history.count() == 2


@pytest.mark.parametrize(
    ("table", "content", "kind", "raw"),
    [
        (GpuAliasTable, "gpu,name\nrtx-4090,Frobnicator 9000\n", "gpu", "FROBNICATOR-9000"),
        (GpuTable, "slug,name,vendor\nfrob,Frobnicator 9000,Frob\n", "gpu", "FROBNICATOR-9000"),
        (PlaceAliasTable, "name,country\nMiddle Earth,NZ\n", "place", "middle-earth"),
    ],
)
def test_a_file_closes_what_it_answers(aspen: Provider, table: Any, content: str, kind: str, raw: str) -> None:
    asked = ask(aspen, raw, kind)
    applied(content, table)
    assert not is_open(asked)
    assert asked.reason.startswith("Understood since")
    assert is_due(aspen, LATER - timedelta(seconds=1))


def test_each_refresh_closes_what_is_understood_by_now_for_every_provider(aspen: Provider, gpu: Gpu) -> None:
    birch = fed_provider("birch")
    feed(birch, [row(1), row(2, gpu="frobnicator-9000")])
    asked = FeedQuestion.objects.get()
    # Behind every form.
    GpuAlias.objects.create(gpu=gpu, name="Frobnicator 9000")
    later = Clock(START + timedelta(minutes=5))
    feed(aspen, [row(1)], later)
    assert not is_open(asked)
    assert is_due(birch, later.now)
    feed(birch, [row(1), row(2, gpu="frobnicator-9000")], later)
    assert machine_of(2, birch).gpu == gpu


def test_a_question_comes_back_when_what_answered_it_is_gone(aspen: Provider, gpu: Gpu) -> None:
    rows = [row(1), row(2, gpu="Frobnicator 9000", place="Middle Earth")]
    feed(aspen, rows)
    alias = GpuAlias.objects.create(gpu=gpu, name="Frobnicator 9000")
    assert close_understood(SOON) == 1
    alias.delete()
    feed(aspen, rows, Clock(START + timedelta(minutes=1)))
    question = FeedQuestion.objects.get(kind="gpu")
    assert (question.resolved_at, question.reason, question.resolved_by) == (None, "", None)


def test_a_server_that_asked_for_rest_is_left_alone_when_an_answer_comes(aspen: Provider, gpu: Gpu) -> None:
    asked = ask(aspen, "Frobnicator 9000")
    FeedState.objects.filter(provider=aspen).update(failures=2)
    resolve_questions([asked], by=None, reason="x", now=SOON, gpu=gpu)
    assert not is_open(asked)
    assert not is_due(aspen, SOON)


def test_a_name_of_several_gpus_is_understood_though_an_offer_may_not_be(aspen: Provider) -> None:
    asked = ask(aspen, "A100")
    for size in (40, 80):
        make_gpu(f"a100-{size}", name=f"A100 {size} GB", memory_gb_nominal=size).aliases.create(name="A100")
    assert close_understood(SOON) == 1
    assert not is_open(asked)
    assert asked.reason.endswith("a name of A100 40 GB and A100 80 GB.")


def test_several_questions_are_answered_all_or_not_at_all(aspen: Provider) -> None:
    good, bad = ask(aspen, "Earth", "place"), ask(aspen, "x" * 200, "place")
    FeedQuestion.objects.filter(pk=bad.pk).update(raw="")
    bad.refresh_from_db()
    with pytest.raises(ValidationError):
        resolve_questions([good, bad], by=None, reason="x", now=SOON)
    assert is_open(good)
    assert not PlaceAlias.objects.exists()


def test_one_sweep_asks_the_database_a_few_times_however_many_wait(
    aspen: Provider, gpu: Gpu, django_assert_max_num_queries: Any
) -> None:
    for number in range(60):
        ask(aspen, f"Frobnicator {number}")
        GpuAlias.objects.create(gpu=gpu, name=f"frobnicator-{number}")
        ask(aspen, f"Unknown {number}", "place")
    with django_assert_max_num_queries(8):
        assert close_understood(SOON) == 60


# --- Aliases have a history -----------------------------------------------------------------------------------------


def history_of(row: Any) -> list[tuple[str, str | None, str | None]]:
    kept = type(row).history.filter(id=row.pk).order_by("history_id")
    return [
        (entry.history_type, entry.history_user and entry.history_user.email, entry.history_change_reason)
        for entry in kept
    ]


def test_an_answer_is_in_the_history_of_its_alias_with_who_and_why(aspen: Provider, gpu: Gpu) -> None:
    staff = make_user("who@example.com")
    resolve_questions([ask(aspen, "Frobnicator")], by=staff, reason="Its maker", now=SOON, gpu=gpu)
    place = ask(aspen, "Atlantis", "place")
    resolve_questions([place], by=staff, reason="First", now=SOON, country="GR")
    resolve_questions([place], by=staff, reason="It sank", now=SOON)
    assert history_of(GpuAlias.objects.get()) == [("+", "who@example.com", "Its maker")]
    alias = PlaceAlias.objects.get()
    assert history_of(alias) == [("+", "who@example.com", "First"), ("~", "who@example.com", "It sank")]
    assert list(alias.history.values_list("country", flat=True)) == [None, "GR"]


def test_an_import_is_in_the_history_of_each_alias(gpu: Gpu) -> None:
    applied("gpu,name\nrtx-4090,Fourty Ninety\n", GpuAliasTable)
    applied("name,country\nAtlantis,GR\n", PlaceAliasTable)
    applied("name,country\nATLANTIS,AT\n", PlaceAliasTable)
    for alias, kinds in ((GpuAlias.objects.get(), "+"), (PlaceAlias.objects.get(), "+~")):
        entries = history_of(alias)
        assert "".join(kind for kind, *_ in entries) == kinds
        assert all(who and why and why.startswith("Import: ") for _, who, why in entries)


def test_an_edit_and_a_deletion_by_hand_are_in_the_history(staff: Client) -> None:
    send(staff, f"{PLACES}add/", {"name": "Atlantis", "country": "GR", "change_reason": "Plato"})
    alias = PlaceAlias.objects.get()
    url = f"{PLACES}{alias.pk}/change/"
    send(staff, url, {**form_of(staff, url), "country": "AT", "change_reason": "Their own manual"})
    assert history_of(alias) == [("+", "staff@example.com", "Plato"), ("~", "staff@example.com", "Their own manual")]
    page = staff.get(f"{PLACES}{alias.pk}/history/").content.decode()
    assert "Their own manual" in page
    assert "staff@example.com" in page
    staff.post(f"{PLACES}{alias.pk}/delete/", {"post": "yes"})
    assert history_of(alias)[-1][:2] == ("-", "staff@example.com")


def test_many_places_that_name_no_country_are_in_the_history_each(staff: Client, aspen: Provider) -> None:
    asked = [ask(aspen, raw, "place") for raw in ("Earth", "EARTH!", "Moon")]
    ask_for = {"action": "name_no_country", "_selected_action": [one.pk for one in asked], "reason": "Jokes"}
    staff.post("/admin/catalog/feedquestion/", ask_for)
    assert not any(is_open(one) for one in asked)
    assert PlaceAlias.objects.count() == 2
    for alias in PlaceAlias.objects.all():
        assert history_of(alias) == [("+", "staff@example.com", "Jokes")]


def test_a_spelling_that_ships_has_a_history_too(db: None) -> None:
    seeding.load()
    assert GpuAlias.history.count() == GpuAlias.objects.count()
    assert set(GpuAlias.history.values_list("history_change_reason", flat=True)) == {"Loaded with the catalog"}


# --- One meaning for each way of writing --------------------------------------------------------------------------


def test_two_aliases_that_a_list_reads_alike_are_refused(staff: Client) -> None:
    PlaceAlias.objects.create(name="São Tomé", country="ST")
    again = {"name": "sao-tome", "country": "BR", "change_reason": "x"}
    assert set(send(staff, f"{PLACES}add/", again)) == {"name"}
    applied("name,country\nSAO TOME,BR\n", PlaceAliasTable)
    assert list(PlaceAlias.objects.values_list("name", "country")) == [("São Tomé", "BR")]


def test_a_way_of_writing_with_two_meanings_has_none() -> None:
    places = Places({"São Tomé": "ST", "Sao Tome": "BR", "Earth": None, "EARTH": None})
    assert places.find("SÃO TOMÉ") == Place(None, False)
    assert places.find("earth") == Place(None, True)


def test_signs_alone_are_not_one_place() -> None:
    places = Places({"—": None})
    assert places.find("—").understood
    assert not places.find("???").understood
