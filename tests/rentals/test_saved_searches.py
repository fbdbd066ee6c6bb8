"""Saved searches: kept from a result page, asked again, and told of once when a machine appears."""

import json
from datetime import timedelta
from html import unescape

import pytest
from django.core import mail

from catalog.models import Machine
from catalog.units import GIB
from rentals import tasks
from rentals.errors import InvalidSearch, NotPermitted
from rentals.models import AuditEvent, Membership, OrganizationPolicy, OwnModel, SavedSearch, WebhookEvent
from rentals.saved_searches import CHECK_EVERY, GONE_FOR, MAX_SEARCHES, MOST_TOLD, check_saved_searches
from tests.factories import make_ai_model, make_endpoint, make_machine, make_member, make_own_model, make_search
from tests.tenancy import as_in_production

QUERY = "task=notebook&gpu_memory_gib=20&term_days=7&lots=1&tier=any"


def told():
    events = WebhookEvent.objects.filter(kind="machine.available").order_by("created_at")
    return [[one["machine"]["name"] for one in json.loads(event.body)["data"]["appeared"]] for event in events]


@pytest.fixture
def search(acme, now):
    make_endpoint(acme)
    make_machine(name="There already")
    return make_search(acme, now=now)


def test_a_machine_that_appears_is_told_of_once(acme, search, now, django_capture_on_commit_callbacks):
    moment = now + CHECK_EVERY
    assert check_saved_searches(moment) == 0
    new = make_machine(name="New", price_7_days_usd="99.00")
    make_machine(name="Too small", gpu_memory_bytes=12 * GIB)
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(4):
            moment += CHECK_EVERY
            check_saved_searches(moment)
    assert told() == [["New"]]
    (body,) = [json.loads(event.body) for event in WebhookEvent.objects.all()]
    assert body["type"] == "machine.available"
    assert body["html_url"] == f"http://testserver/o/acme/launch/result/?{QUERY}"
    assert body["data"]["search"] == {"id": search.pk, "name": "24 GiB", "query": QUERY}
    assert body["data"]["appeared_count"] == 1
    appeared = body["data"]["appeared"][0]
    assert (appeared["machine"]["id"], appeared["package_usd"]) == (new.pk, "99.00")
    assert [(message.to, message.subject) for message in mail.outbox] == [
        ([acme.owner.email], "[Berth] Available now: 24 GiB")
    ]
    for words in ("New, $99.00 for 7 days", body["html_url"], "http://testserver/o/acme/searches/"):
        assert words in mail.outbox[0].body
    search.refresh_from_db()
    assert (search.machines, search.found_at) == (2, now + 2 * CHECK_EVERY)


def test_it_is_asked_again_only_after_its_time(acme, search, now):
    make_machine(name="New")
    assert check_saved_searches(now + CHECK_EVERY - timedelta(microseconds=1)) == 0
    assert check_saved_searches(now + CHECK_EVERY) == 1


@pytest.mark.parametrize(
    ("away", "news"), [(GONE_FOR - CHECK_EVERY, False), (GONE_FOR, True), (GONE_FOR + CHECK_EVERY, True)]
)
def test_a_machine_that_was_away_for_a_moment_has_not_appeared_anew(acme, search, now, away, news):
    Machine.objects.update(free_lots=0)
    gone = now + CHECK_EVERY
    check_saved_searches(gone)
    Machine.objects.update(free_lots=1)
    assert check_saved_searches(gone + away) == news
    assert told() == ([["There already"]] if news else [])


def test_many_at_once_are_one_message_with_the_cheapest_in_full(acme, search, now, django_capture_on_commit_callbacks):
    for number in range(MOST_TOLD + 3):
        make_machine(name=f"N{number:02}", price_7_days_usd=f"{50 + number}.00")
    with django_capture_on_commit_callbacks(execute=True):
        assert check_saved_searches(now + CHECK_EVERY) == 1
    assert told() == [[f"N{number:02}" for number in range(MOST_TOLD)]]
    body = json.loads(WebhookEvent.objects.get().body)
    assert body["data"]["appeared_count"] == MOST_TOLD + 3
    assert "and 3 more" in mail.outbox[0].body


def test_the_policy_of_the_organization_counts(acme, search, now, client):
    client.force_login(acme.owner)
    OrganizationPolicy.objects.create(organization=acme, countries=["FR"], changed_at=now)
    make_machine(name="Elsewhere", country="DE")
    make_machine(name="Inside", country="FR")
    check_saved_searches(now + CHECK_EVERY)
    assert told() == [["Inside"]]


def test_who_left_gets_no_mail_and_the_webhooks_are_told(acme, now, django_capture_on_commit_callbacks):
    member = make_member(acme)
    make_endpoint(acme)
    make_search(acme, by=member, now=now)
    Membership.objects.filter(user=member).delete()
    make_machine(name="New")
    with django_capture_on_commit_callbacks(execute=True):
        check_saved_searches(now + CHECK_EVERY)
    assert told() == [["New"]]
    assert not mail.outbox


def test_who_may_order_by_the_policy_keeps_searches_and_is_told(acme, now, client, django_capture_on_commit_callbacks):
    """One rule for the order and for who hears of a machine to order; the programs are told anyway."""
    make_endpoint(acme)
    member = make_member(acme)
    search = make_search(acme, "kept before", by=member, now=now)
    OrganizationPolicy.objects.create(organization=acme, order_role="admin", changed_at=now)
    with pytest.raises(NotPermitted, match="who may order"):
        make_search(acme, by=member, now=now)
    client.force_login(member)
    assert "Tell me when" not in client.get(f"/o/acme/launch/result/?{QUERY}").content.decode()
    assert "Delete" not in client.get("/o/acme/searches/").content.decode()
    assert client.post(f"/o/acme/searches/{search.pk}/delete/").status_code == 403
    make_machine(name="New")
    with django_capture_on_commit_callbacks(execute=True):
        check_saved_searches(now + CHECK_EVERY)
    assert told() == [["New"]]
    assert not mail.outbox
    client.force_login(make_member(acme, "admin"))
    assert "Tell me when" in client.get(f"/o/acme/launch/result/?{QUERY}").content.decode()
    assert client.post(f"/o/acme/searches/{search.pk}/delete/").status_code == 302


def test_a_search_whose_model_is_gone_says_so_and_the_others_are_asked(acme, search, now, client):
    own = make_own_model(acme)
    make_search(acme, "mine", f"task=run&model=own:{own.slug}&precision_bits=16&context=4096&requests=1", now=now)
    OwnModel.objects.all().delete()
    make_machine(name="New")
    assert check_saved_searches(now + CHECK_EVERY) == 1
    broken = SavedSearch.objects.get(name="mine")
    assert broken.problem
    client.force_login(acme.owner)
    assert "Cannot be asked" in client.get("/o/acme/searches/").content.decode()


def test_one_odd_search_does_not_keep_the_others_from_being_asked(acme, search, now):
    odd = make_search(acme, "odd", now=now - timedelta(hours=1))
    SavedSearch.objects.filter(pk=odd.pk).update(known={"there": None})
    make_machine(name="New")
    assert check_saved_searches(now + CHECK_EVERY) == 1
    assert check_saved_searches(now + 2 * CHECK_EVERY) == 0


def test_searches_of_every_tenant_are_asked_without_being_one(acme, globex, now):
    for organization in (acme, globex):
        make_endpoint(organization)
        make_search(organization, now=now - CHECK_EVERY)
    make_machine(name="New")
    with as_in_production():
        assert tasks.check_saved_searches.run() == 2
        assert tasks.check_saved_searches.run() == 0
    assert told() == [["New"], ["New"]]


# --- Pages ------------------------------------------------------------------------------------------------------------


def test_the_result_page_keeps_its_question_under_a_name(client, acme):
    make_ai_model()
    client.force_login(acme.owner)
    query = "task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"
    shown = client.get(f"/o/acme/launch/result/?{query}").content.decode()
    assert "Tell me when one is available" in shown
    assert f'name="query" value="{query}"' in unescape(shown)
    response = client.post("/o/acme/searches/", {"name": " Llama  8B ", "query": query}, follow=True)
    assert "The search Llama 8B is saved" in response.content.decode()
    search = SavedSearch.objects.get()
    assert (search.name, search.query, search.created_by) == ("Llama 8B", query, acme.owner)
    assert client.post(f"/o/acme/searches/{search.pk}/delete/").status_code == 302
    assert not SavedSearch.objects.exists()
    actions = AuditEvent.objects.filter(action__startswith="saved_search").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == ["saved_search.added", "saved_search.deleted"]


def test_the_public_result_page_and_a_viewer_are_not_offered_it(client, acme):
    assert "Tell me when" not in client.get(f"/launch/result/?{QUERY}").content.decode()
    viewer = make_member(acme, "viewer")
    search = make_search(acme)
    client.force_login(viewer)
    assert "Tell me when" not in client.get(f"/o/acme/launch/result/?{QUERY}").content.decode()
    shown = client.get("/o/acme/searches/").content.decode()
    assert "24 GiB" in shown
    assert "Delete" not in shown
    assert client.post("/o/acme/searches/", {"name": "x", "query": QUERY}).status_code == 403
    assert client.post(f"/o/acme/searches/{search.pk}/delete/").status_code == 403
    assert SavedSearch.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("", QUERY),
        ("x" * 81, QUERY),
        ("a\x00b", QUERY),
        ("x", ""),
        ("x", "task=dance"),
        ("\u3164", QUERY),
        ("a\u202eb", QUERY),
        ("x", "task=notebook"),
        ("x", QUERY + "&colour=red"),
        ("x", "task=run&model=own:nobodys&precision_bits=16&context=1&requests=1"),
        ("x", "%00%ff"),
        ("x", "a" * 9000),
    ],
)
def test_what_cannot_be_kept_is_refused_with_words(client, acme, name, query):
    client.force_login(acme.owner)
    response = client.post("/o/acme/searches/", {"name": name, "query": query})
    assert response.status_code == 400
    assert "There is a problem" in response.content.decode()
    assert not SavedSearch.objects.exists()


def test_names_are_unlike_and_there_are_at_most_twenty(acme):
    for number in range(MAX_SEARCHES):
        make_search(acme, f"search {number}")
    with pytest.raises(InvalidSearch, match="of this name"):
        make_search(acme, "search 1")
    with pytest.raises(InvalidSearch, match="at most 20"):
        make_search(acme, "another")


def test_who_lost_the_role_meanwhile_keeps_nothing(acme):
    member = make_member(acme)
    Membership.objects.filter(user=member).update(role="viewer")
    with pytest.raises(NotPermitted):
        make_search(acme, by=member)
