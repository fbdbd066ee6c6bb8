"""Lists and forms of the administration cost the same whatever the tables grow to, and find what staff look for."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from catalog.admin.bulk import CHUNK
from catalog.admin.problems import PROBLEMS, problems_of
from catalog.models import FeedAbsence, Gpu, GpuAlias, Machine, Provider
from catalog.units import GB
from tests.factories import make_gpu, make_machine, make_provider, make_user

MACHINES = "/admin/catalog/machine/"


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(make_user(is_staff=True, is_superuser=True))
    return client


def queries(ask: Callable[[], Any]) -> int:
    with CaptureQueriesContext(connection) as caught:
        assert ask().status_code == 200
    return len(caught)


def many(number: int, **fields: Any) -> None:
    """Machines like one another, at one of ten providers each."""
    first = make_machine(**fields)
    providers = [make_provider() for _ in range(9)]
    for place in range(1, number):
        copy = Machine.objects.get(pk=first.pk)
        copy.pk, copy.name = None, f"{first.name} no {place}"
        copy.provider = providers[place % 9]
        copy.save_without_historical_record()


@pytest.mark.parametrize(
    "path",
    [
        "machine/", "machine/?q=machine", "machine/?problems=any", "machine/?country=DE&tier=secure", "machine/?o=3.-4",
        "machine/?p=1", "machine/add/", "machine/{id}/change/", "machine/{id}/history/", "gpu/", "gpu/{gpu}/change/",
        "provider/", "provider/{provider}/change/", "provider/{provider}/delete/", "gpu/{gpu}/delete/",
    ],
)  # fmt: skip
def test_three_hundred_machines_cost_as_many_queries_as_sixty(staff: Client, path: str) -> None:
    many(60, country="DE", gpu=make_gpu("rtx-4090"))
    machine = Machine.objects.order_by("id")[0]
    url = "/admin/catalog/" + path.format(id=machine.pk, gpu=machine.gpu_id, provider=machine.provider_id)
    staff.get(url)
    sixty = queries(lambda: staff.get(url))
    providers = list(Provider.objects.all())
    for number in range(240):
        machine.pk, machine.name = None, f"another {number}"
        machine.provider = providers[number % 10]
        machine.save_without_historical_record()
    assert queries(lambda: staff.get(url)) == sixty
    assert sixty <= 20


def test_a_form_does_not_list_every_provider_and_gpu(staff: Client) -> None:
    many(12, gpu=make_gpu("rtx-4090", name="RTX 4090"))
    names = set(Provider.objects.values_list("name", flat=True))
    page = staff.get(f"{MACHINES}add/").content.decode()
    assert not any(f">{name}</option>" in page for name in names | {"RTX 4090"})
    asked = {"app_label": "catalog", "model_name": "machine", "field_name": "gpu", "term": "4090"}
    found = staff.get("/admin/autocomplete/", asked).json()["results"]
    assert [one["text"] for one in found] == ["RTX 4090"]


def test_machines_are_found_by_words_of_theirs_their_gpu_and_their_provider(staff: Client) -> None:
    gpu = make_gpu("rtx-4090", name="RTX 4090")
    GpuAlias.objects.create(gpu=gpu, name="GeForce 24G")
    north = make_provider("north", name="North Wind")
    wanted = make_machine(name="Alpha 100%", gpu=gpu, provider=north, country="FR", external_id="offer-7")
    make_machine(name="Beta", country="DE")
    for words in ("alpha", "100%", "4090", "geforce", "north 4090", '"North Wind"', "fr", "offer-7", "alpha NORTH fr"):
        found = staff.get(MACHINES, {"q": words}).context["cl"].result_list
        assert [machine.pk for machine in found] == [wanted.pk], words
    for words in ("alpha beta", "offer", "%%", "_", '"', "x" * 200):
        assert not staff.get(MACHINES, {"q": words}).context["cl"].result_list, words
    told = staff.get(MACHINES, {"q": "x" * 201}, follow=True)
    assert "Search for at most 20 words of 200 characters together." in told.content.decode()


@pytest.mark.parametrize("query", ["provider=abc", "provider=" + "9" * 40, "gpu=-1", "gpu=%C2%B2", "country=XX"])
def test_a_filter_that_names_nothing_finds_nothing(staff: Client, query: str) -> None:
    make_machine()
    assert staff.get(f"{MACHINES}?{query}", follow=True).status_code == 200


def test_filters_choose_by_country_provider_and_gpu(staff: Client) -> None:
    wanted = make_machine(country=None)
    make_machine(country="DE")
    for query in ({"country": "unknown"}, {"provider": wanted.provider_id}, {"gpu": wanted.gpu_id}):
        found = staff.get(MACHINES, query).context["cl"].result_list
        assert [machine.pk for machine in found] == [wanted.pk], query
    page = staff.get(MACHINES).content.decode()
    assert "Germany (DE)" in page
    assert "France (FR)" not in page


def test_every_problem_is_found_by_the_filter_and_told_in_its_column_alike(staff: Client) -> None:
    now = datetime.now(UTC)
    gpu = make_gpu(memory_gb_nominal=24)
    stale = make_provider(feed_url="https://feed.example/", feed_format="berth", refreshed_at=now - timedelta(hours=1))
    fresh = make_provider(feed_url="https://feed.example/", feed_format="berth", refreshed_at=now)
    made = {
        "memory": make_machine(gpu_memory_bytes=None),
        "country": make_machine(country=None, place_raw="Atlantis, AT"),
        "price": make_machine(price_7_days_usd=Decimal("11000.00")),
        "memory_unlike": make_machine(gpu=gpu, gpu_memory_bytes=48 * GB),
        "unconfirmed": make_machine(provider=stale),
        "withheld": make_machine(provider=fresh, lots=4, free_lots=3),
    }
    FeedAbsence.objects.create(machine=made["withheld"], lots=2, why=FeedAbsence.Why.FEWER, since=now)
    make_machine(gpu=gpu, gpu_memory_bytes=24 * GB, provider=fresh)
    make_machine(hourly_usd=Decimal("49"))
    make_machine(provider=stale, online=False)
    assert set(made) == {problem.code for problem in PROBLEMS}
    for code, machine in made.items():
        found = staff.get(MACHINES, {"problems": code}).context["cl"].result_list
        assert [row.pk for row in found] == [machine.pk], code
    assert staff.get(MACHINES, {"problems": "any"}).context["cl"].result_count == 6
    for machine in Machine.objects.with_facts():
        told = problems_of(machine, now)
        expected = [code for code, row in made.items() if row.pk == machine.pk]
        assert len(told) == len(expected), (machine.pk, told)
    page = staff.get(MACHINES).content.decode()
    for words in ("memory missing: excluded from sizing", "“Atlantis, AT”", "7 days are far from the hourly price"):
        assert words in page


@pytest.mark.parametrize(
    "prices",
    [
        {"hourly_usd": Decimal("0.000900")},
        {"hourly_usd": Decimal("50.1")},
        {"price_30_days_usd": Decimal("10")},
        {"price_7_days_usd": Decimal("27.49")},
    ],
)
def test_a_price_that_is_a_slip_is_a_problem(staff: Client, prices: dict[str, Any]) -> None:
    machine = make_machine(**prices)
    assert any(words.startswith("price implausible") for words in problems_of(machine, datetime.now(UTC)))
    assert staff.get(MACHINES, {"problems": "price"}).context["cl"].result_count == 1


def test_many_machines_are_changed_in_chunks_with_their_reason_and_only_where_they_differ(staff: Client) -> None:
    many(CHUNK + 10)
    Machine.objects.filter(pk=Machine.objects.order_by("-pk")[0].pk).update(listed=False)
    ask = {"action": "take_off_the_pages", "_selected_action": [1], "select_across": "1"}
    for nothing in ("", " ", "\u3164", "\u200b\u0301"):
        answer = staff.post(MACHINES, {**ask, "reason": nothing}, follow=True)
        assert "Write a reason" in answer.content.decode()
    with CaptureQueriesContext(connection) as caught:
        page = staff.post(MACHINES, {**ask, "reason": "Moving house"})
    assert page.status_code == 302
    assert len(caught) < 60
    page = staff.get(MACHINES).content.decode()
    assert f"Machines now unlisted: {CHUNK + 9}." in page
    assert "They were so before: 1." in page
    assert not Machine.objects.listed().exists()
    history = Machine.history.filter(history_change_reason="Moving house")
    assert history.count() == CHUNK + 9
    assert history.filter(listed=False, history_user__is_staff=True, history_type="~").count() == CHUNK + 9


def test_a_provider_of_many_machines_is_not_deleted_and_its_page_says_how_many(staff: Client) -> None:
    machine = make_machine()
    make_machine(provider=machine.provider, gpu=machine.gpu)
    for url in (f"provider/{machine.provider_id}", f"gpu/{machine.gpu_id}"):
        assert "2 machines" in staff.get(f"/admin/catalog/{url}/delete/").content.decode()
        assert staff.post(f"/admin/catalog/{url}/delete/", {"post": "yes"}).status_code in (200, 403)
    assert Gpu.objects.filter(pk=machine.gpu_id).exists()


def test_who_may_only_look_sees_machines_and_can_do_nothing(client: Client, db: None) -> None:
    looker = make_user(is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_machine"))
    client.force_login(looker)
    machine = make_machine()
    page = client.get(MACHINES).content.decode()
    assert machine.name in page
    for action in ("mark_off_line", "mark_on_line", "put_on_the_pages", "take_off_the_pages"):
        assert f'value="{action}"' not in page
        client.post(MACHINES, {"action": action, "_selected_action": [machine.pk], "reason": "x"})
    machine.refresh_from_db()
    assert (machine.online, machine.listed, machine.history.count()) == (True, True, 1)
