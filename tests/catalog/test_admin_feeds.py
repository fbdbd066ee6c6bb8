"""Staff set a provider's feed, see what its refreshes did, and say what nobody understood."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from catalog.models import FeedQuestion, FeedRejection, FeedRun, FeedState, GpuAlias, PlaceAlias, Provider
from tests.catalog.test_admin import form_of, send
from tests.factories import make_gpu, make_provider, make_user

NOW = datetime.now(UTC)
QUESTIONS = "/admin/catalog/feedquestion/"


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(make_user("staff@example.com", is_staff=True, is_superuser=True))
    return client


@pytest.fixture
def fed(db: None) -> Provider:
    return make_provider(
        "north", name="North", feed_url="https://feed.example/", feed_format="berth", feed_secret="hush-hush"
    )


def page_of(provider: Provider) -> str:
    return f"/admin/catalog/provider/{provider.pk}/change/"


def run(provider: Provider, outcome: str = "ok", **fields: Any) -> FeedRun:
    started_at = fields.pop("started_at", NOW)
    fields.setdefault("finished_at", None if outcome == "running" else started_at + timedelta(seconds=2))
    return FeedRun.objects.create(provider=provider, outcome=outcome, started_at=started_at, **fields)


def question(provider: Provider, kind: str = "gpu", raw: str = "GeForce 4090 X", **fields: Any) -> FeedQuestion:
    return FeedQuestion.objects.create(
        provider=provider, kind=kind, raw=raw, first_seen_at=NOW, last_seen_at=NOW, **{"count": 3, **fields}
    )


def looker(*codenames: str) -> Client:
    user = make_user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


# --- Settings -----------------------------------------------------------------------------------------------------


def test_a_secret_goes_in_and_never_comes_out(staff: Client, fed: Provider) -> None:
    url = page_of(fed)
    for address in (url, "/admin/catalog/provider/", f"/admin/catalog/provider/{fed.pk}/history/"):
        assert "hush-hush" not in staff.get(address).content.decode()
    assert send(staff, url, form_of(staff, url)) == {}
    fed.refresh_from_db()
    assert fed.feed_secret == "hush-hush"
    wrong = staff.post(url, {**form_of(staff, url), "new_secret": "another-secret", "name": ""})
    assert "another-secret" not in wrong.content.decode()
    assert send(staff, url, {**form_of(staff, url), "new_secret": "another-secret"}) == {}
    fed.refresh_from_db()
    assert fed.feed_secret == "another-secret"
    assert "another-secret" not in staff.get(f"/admin/catalog/provider/{fed.pk}/history/").content.decode()
    assert set(send(staff, url, {**form_of(staff, url), "new_secret": "x", "forget_secret": "on"})) == {"forget_secret"}
    assert send(staff, url, {**form_of(staff, url), "forget_secret": "on"}) == {}
    fed.refresh_from_db()
    assert fed.feed_secret == ""


def test_a_key_in_an_address_is_kept_and_not_shown(staff: Client, fed: Provider) -> None:
    url, history = page_of(fed), f"/admin/catalog/provider/{fed.pk}/history/"
    for key in ("first-key", "second-key"):
        whole = {**form_of(staff, url), "feed_url": f"https://feed.example/list?key={key}"}
        assert send(staff, url, whole) == {}
    versions = [f"{history}{entry.pk}/" for entry in fed.history.all()]
    views = [(looker("view_provider"), url), *((staff, page) for page in (url, history, *versions))]
    for somebody, page in views:
        shown = somebody.get(page).content.decode()
        assert "https://feed.example/list?…" in shown or page == versions[-1]
        assert "-key" not in shown
    assert send(staff, url, {**form_of(staff, url), "website": "https://north.example/"}) == {}
    fed.refresh_from_db()
    assert fed.feed_url == "https://feed.example/list?key=second-key"
    assert set(send(staff, url, {**form_of(staff, url), "feed_url": "https://feed.example/other?…"})) == {"feed_url"}
    assert send(staff, url, {**form_of(staff, url), "feed_url": "https://feed.example/other"}) == {}
    fed.refresh_from_db()
    assert fed.feed_url == "https://feed.example/other"


@pytest.mark.parametrize("address", ["https://other.example/", "http://feed.example/", "https://feed.example:8443/"])
def test_a_secret_does_not_follow_its_feed_to_another_server(staff: Client, fed: Provider, address: str) -> None:
    url = page_of(fed)
    assert set(send(staff, url, {**form_of(staff, url), "feed_url": address})) == {"new_secret"}
    fed.refresh_from_db()
    assert (fed.feed_url, fed.feed_secret) == ("https://feed.example/", "hush-hush")
    assert send(staff, url, {**form_of(staff, url), "feed_url": "https://feed.example/v2"}) == {}
    assert send(staff, url, {**form_of(staff, url), "feed_url": address, "new_secret": "of-the-other"}) == {}
    fed.refresh_from_db()
    assert (fed.feed_url, fed.feed_secret) == (address, "of-the-other")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"feed_url": "file:///etc/passwd"}, "feed_url"),
        ({"feed_url": "https://user:pass@feed.example/"}, "feed_url"),
        ({"feed_url": "https://"}, "feed_url"),
        ({"feed_url": ""}, "feed_url"),
        ({"feed_format": ""}, "feed_format"),
        ({"feed_format": "xml"}, "feed_format"),
        ({"feed_interval_seconds": "5"}, "feed_interval_seconds"),
        ({"feed_interval_seconds": "9999"}, "feed_interval_seconds"),
        ({"new_secret": "päss"}, "new_secret"),
        ({"new_secret": "x" * 501}, "new_secret"),
        ({"slug": "No Slug"}, "slug"),
    ],
)
def test_a_wrong_setting_is_an_error_at_its_field(
    staff: Client, fed: Provider, changes: dict[str, str], field: str
) -> None:
    url = page_of(fed)
    assert set(send(staff, url, {**form_of(staff, url), **changes})) == {field}


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"feed_url": "http://127.0.0.1:8000/list"}, "feed_url", "127.0.0.1 is not a public address. Give the public"),
        ({"feed_url": "https://10.0.0.8/list"}, "feed_url", "is not a public address"),
        ({"feed_url": "https://192.168.1.1/"}, "feed_url", "is not a public address"),
        ({"feed_url": "https://169.254.169.254/latest/"}, "feed_url", "is not a public address"),
        ({"feed_url": "https://[::1]/"}, "feed_url", "is not a public address"),
        ({"feed_url": "https://[::ffff:127.0.0.1]/"}, "feed_url", "is not a public address"),
        ({"feed_url": "https://2130706433/"}, "feed_url", "an unusual spelling of an address"),
        ({"feed_url": "http://localhost/list"}, "feed_url", "localhost is not a full name"),
        ({"feed_url": "https://feed.example:99999/"}, "feed_url", "The port of the address must be 1 to 65535"),
        ({"feed_url": "ftp://feed.example/list"}, "feed_url", "must begin with https:// or http://"),
        ({"feed_url": "file:///etc/passwd"}, "feed_url", "must begin with https:// or http://"),
        ({"feed_url": "feed.example/list"}, "feed_url", "must begin with https:// or http://"),
        ({"feed_url": "https:///list"}, "feed_url", "Write it whole"),
        ({"feed_url": "https://user:pass@feed.example/"}, "feed_url", "Give the password as the secret"),
        ({"feed_url": "demo:"}, "feed_url", "Those that ship are: demo:rowan, demo:willow."),
        ({"feed_url": "demo:nope", "invented": "on"}, "feed_url", "Those that ship are: demo:rowan, demo:willow."),
        ({"feed_url": "demo:rowan"}, "invented", "mark this provider as invented"),
        ({"feed_url": "demo:rowan", "invented": "on", "feed_format": "vast"}, "feed_format", "choose that"),
        ({"feed_url": ""}, "feed_url", "choose “No feed”"),
        ({"feed_format": ""}, "feed_format", "Choose the format"),
    ],
)
def test_a_feed_that_can_never_be_read_is_refused_with_what_to_do(
    staff: Client, fed: Provider, changes: dict[str, str], field: str, said: str
) -> None:
    url = page_of(fed)
    errors = send(staff, url, {**form_of(staff, url), **changes, "forget_secret": "on"})
    assert set(errors) == {field}
    assert said in " ".join(errors[field])


def test_hosts_of_development_and_demo_feeds_are_taken(staff: Client, fed: Provider, settings: Any) -> None:
    settings.OUTGOING_ALLOWED = ["127.0.0.1:8000", "feeds:80"]
    url = page_of(fed)
    for address in ("http://127.0.0.1:8000/list", "http://feeds/list", "https://a-name-nobody-asks.invalid/list"):
        sent = {**form_of(staff, url), "feed_url": f" {address} ", "forget_secret": "on"}
        assert send(staff, url, sent) == {}
        fed.refresh_from_db()
        assert fed.feed_url == address
    sent = {**form_of(staff, url), "feed_url": "demo:rowan", "invented": "on", "forget_secret": "on"}
    assert send(staff, url, sent) == {}


def test_saving_the_form_keeps_a_refresh_that_came_meanwhile_and_asks_again_when_the_feed_changed(
    staff: Client, fed: Provider
) -> None:
    url = page_of(fed)
    form = form_of(staff, url)
    Provider.objects.update(refreshed_at=NOW)
    assert send(staff, url, {**form, "name": "Norther"}) == {}
    fed.refresh_from_db()
    assert (fed.name, fed.refreshed_at) == ("Norther", NOW)
    assert not FeedState.objects.filter(due_at__isnull=False).exists()
    assert send(staff, url, {**form, "feed_url": "https://feed.example/2"}) == {}
    assert FeedState.objects.get().due_at is not None


# --- Runs ---------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_last_runs_and_the_rows_that_were_not_taken(staff: Client, fed: Provider) -> None:
    for number in range(12):
        run(fed, started_at=NOW - timedelta(minutes=number + 2), seen=number, detail=f"run {number} ")
    last = run(fed, "failed", seen=1000, rejected=1, detail="The server answered 500.")
    FeedRejection.objects.create(run=last, row=17, external_id="<b>x</b>", code="price", detail="The price is 0.")
    run(fed, "running", started_at=NOW + timedelta(seconds=10))
    page = staff.get(page_of(fed)).content.decode()
    for words in ("Not fetched: The server answered 500.", "1,000", "2.0 s", "Running", "not over", "run 7 "):
        assert words in page, words
    assert "run 8 " not in page
    for words in (">17<", "&lt;b&gt;x&lt;/b&gt;", "The price is 0."):
        assert words in page, words
    one = staff.get(f"/admin/catalog/feedrun/{last.pk}/change/").content.decode()
    assert "The price is 0." in one
    listed = staff.get("/admin/catalog/feedrun/", {"provider__id__exact": fed.pk})
    assert listed.context["cl"].result_count == 14
    assert staff.post(f"/admin/catalog/feedrun/{last.pk}/change/", {}).status_code == 403
    assert staff.get("/admin/catalog/feedrun/add/").status_code == 403


def test_as_many_queries_for_two_runs_as_for_thirty(staff: Client, fed: Provider) -> None:
    def queries(url: str) -> int:
        with CaptureQueriesContext(connection) as caught:
            assert staff.get(url).status_code == 200
        return len(caught)

    urls = [page_of(fed), "/admin/catalog/feedrun/", QUESTIONS]
    run(fed, rejected=1), run(fed, rejected=1), question(fed), question(fed, "place", "Atlantis")
    few = [queries(url) for url in urls]
    for number in range(30):
        last = run(fed, rejected=5, started_at=NOW + timedelta(seconds=number))
        FeedRejection.objects.bulk_create(FeedRejection(run=last, row=row, code="x", detail="y") for row in range(300))
        question(fed, raw=f"GPU {number}")
    assert [queries(url) for url in urls] == few


def test_refresh_now_makes_the_list_due(staff: Client, fed: Provider) -> None:
    FeedState.objects.create(provider=fed, due_at=NOW + timedelta(hours=1), failures=9)
    url = f"/admin/catalog/provider/{fed.pk}/refresh/"
    assert url in staff.get(page_of(fed)).content.decode()
    assert staff.get(url).status_code == 405
    assert "fetched at once" in staff.post(url, follow=True).content.decode()
    assert FeedState.objects.get().due_at <= datetime.now(UTC)
    own = make_provider()
    page = staff.post(f"/admin/catalog/provider/{own.pk}/refresh/", follow=True).content.decode()
    assert "has no feed" in page
    assert staff.post(f"/admin/catalog/provider/{2**70}/refresh/").status_code == 404


def test_a_held_list_is_accepted_with_a_reason_and_only_then(staff: Client, fed: Provider) -> None:
    url = f"/admin/catalog/provider/{fed.pk}/accept/"
    run(fed)
    assert url not in staff.get(page_of(fed)).content.decode()
    assert "nothing to accept" in staff.post(url, {"reason": "x"}, follow=True).content.decode()
    run(fed, "held", started_at=NOW + timedelta(seconds=9), detail="300 of 1,000 prices moved more than 10-fold.")
    page = staff.get(page_of(fed)).content.decode()
    assert url in page
    assert "300 of 1,000 prices moved" in page
    assert "Give a reason" in staff.post(url, {"reason": " "}, follow=True).content.decode()
    assert "Keep the reason to" in staff.post(url, {"reason": "x" * 200}, follow=True).content.decode()
    page = staff.post(url, {"reason": "They told us"}, follow=True).content.decode()
    assert "the next list is applied" in page
    assert url not in page
    newest = fed.history.first()
    assert newest.history_change_reason == "List accepted: They told us"
    assert newest.history_user.email == "staff@example.com"


def test_who_may_only_look_sees_the_feed_and_can_do_nothing_with_it(fed: Provider) -> None:
    run(fed, "held", detail="Prices moved.")
    client = looker("view_provider", "view_feedrun", "view_feedquestion")
    page = client.get(page_of(fed)).content.decode()
    assert "Prices moved." in page
    assert "hush-hush" not in page
    for verb in ("refresh", "accept"):
        assert f"/{verb}/" not in page
        assert client.post(f"/admin/catalog/provider/{fed.pk}/{verb}/", {"reason": "x"}).status_code == 403
    assert not FeedState.objects.exists()
    asked = question(fed)
    page = client.get(f"{QUESTIONS}{asked.pk}/change/").content.decode()
    assert "Keep this answer" not in page
    assert client.post(f"{QUESTIONS}{asked.pk}/change/", {"reason": "x"}).status_code == 403
    stranger = looker()
    for url in (page_of(fed), f"{QUESTIONS}{asked.pk}/change/", "/admin/catalog/feedrun/"):
        assert stranger.get(url).status_code == 403


# --- Questions ----------------------------------------------------------------------------------------------------


def test_a_gpu_name_is_answered_once_for_every_provider(staff: Client, fed: Provider) -> None:
    gpu = make_gpu("rtx-4090", name="RTX 4090")
    other = make_provider("south", name="South", feed_url="https://south.example/", feed_format="berth")
    asked, same = question(fed, example="offer 7"), question(other)
    for provider in (fed, other):
        FeedState.objects.create(provider=provider, due_at=NOW + timedelta(hours=1))
    assert "2 names of GPUs or places" in staff.get("/admin/catalog/machine/").content.decode()
    url = f"{QUESTIONS}{asked.pk}/change/"
    page = staff.get(url).content.decode()
    for words in ("GeForce 4090 X", "North", "South", "offer 7"):
        assert words in page, words
    assert set(staff.post(url, {"gpu": "", "reason": ""}).context["form"].errors) == {"gpu", "reason"}
    assert set(staff.post(url, {"gpu": "9" * 30, "reason": "x"}).context["form"].errors) == {"gpu"}
    assert staff.post(url, {"gpu": gpu.pk, "reason": "Its datasheet"}).status_code == 302
    assert GpuAlias.objects.get().gpu == gpu
    for one in (asked, same):
        one.refresh_from_db()
        assert (one.reason, one.resolved_by.email) == ("Its datasheet", "staff@example.com")
    assert FeedState.objects.filter(due_at__lte=datetime.now(UTC)).count() == 2
    assert not staff.get(QUESTIONS).context["cl"].result_list
    assert len(staff.get(QUESTIONS, {"state": "answered"}).context["cl"].result_list) == 2
    assert "Answered" in staff.get(url).content.decode()
    assert "is a name of RTX 4090 already" in staff.post(url, {"gpu": gpu.pk, "reason": "again"}).content.decode()


@pytest.mark.parametrize(("chosen", "country"), [("GR", "GR"), ("none", None)])
def test_a_place_is_in_a_country_or_names_none(staff: Client, fed: Provider, chosen: str, country: str | None) -> None:
    asked = question(fed, "place", "Atlantis, AT")
    url = f"{QUESTIONS}{asked.pk}/change/"
    for wrong in ("", "EU", "xx"):
        assert set(staff.post(url, {"country": wrong, "reason": "x"}).context["form"].errors) == {"country"}
    assert staff.post(url, {"country": chosen, "reason": "Their site says so"}).status_code == 302
    assert PlaceAlias.objects.get().country == country


def test_many_places_name_no_country_at_once_and_a_gpu_is_not_touched(staff: Client, fed: Provider) -> None:
    asked = [question(fed, "place", raw) for raw in ("Earth", "Moon")] + [question(fed)]
    ask = {"action": "name_no_country", "_selected_action": [one.pk for one in asked]}
    assert "Give a reason" in staff.post(QUESTIONS, ask, follow=True).content.decode()
    assert not PlaceAlias.objects.exists()
    staff.post(QUESTIONS, {**ask, "reason": "Jokes"})
    assert set(PlaceAlias.objects.values_list("name", "country")) == {("Earth", None), ("Moon", None)}
    assert FeedQuestion.objects.filter(resolved_at=None).count() == 1


@pytest.mark.parametrize("number", ["0", "999999", "9" * 40, "x", "²"])
def test_a_question_that_is_not_there_is_not_found(staff: Client, number: str) -> None:
    assert staff.get(f"{QUESTIONS}{number}/change/").status_code == 404
