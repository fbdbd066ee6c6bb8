"""Saved searches over the API: questions of the recommendations under a name, and repeats that are safe."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from rentals.models import AuditEvent, OrganizationPolicy, SavedSearch
from rentals.saved_searches import MAX_SEARCHES, check_saved_searches
from tests.factories import make_ai_model, make_api_key, make_machine, make_own_model, make_search
from tests.rentals.calls import assert_problem, call, faults, get, post

NOTEBOOK = {"task": "notebook", "gpu_memory_gib": "20"}
BODY: dict[str, Any] = {"name": "24 GiB", "workload": NOTEBOOK, "preferences": {"tier": "secure", "lots": 1}}


def test_a_search_is_saved_read_found_again_and_deleted(acme: Any, key: Any, now: Any) -> None:
    answer = post("saved-searches", key, BODY)
    assert answer.status_code == 201
    saved = answer.json()
    assert saved["workload"] == NOTEBOOK
    assert saved["preferences"] == {"tier": "secure", "lots": 1, "term_days": 7}
    assert (saved["machine_count"], saved["found_at"], saved["problem"]) == (0, None, None)
    assert answer.headers["Location"] == f"/api/v1/saved-searches/{saved['id']}"
    assert get(answer.headers["Location"], key).json() == saved
    assert get("saved-searches", key).json() == {"results": [saved], "next": None}
    make_machine()
    check_saved_searches(now + timedelta(minutes=10))
    found = get(f"saved-searches/{saved['id']}", key).json()
    assert found["machine_count"] == 1
    assert found["found_at"] == found["checked_at"] > saved["checked_at"]
    client = Client()
    client.force_login(acme.owner)
    for address in (saved["result_url"], saved["html_url"]):
        assert client.get(address.removeprefix("http://testserver")).status_code == 200
    assert call("DELETE", f"saved-searches/{saved['id']}", key).status_code == 204
    assert_problem(get(f"saved-searches/{saved['id']}", key), 404, "not_found")
    trail = AuditEvent.objects.filter(organization=acme, action__startswith="saved_search.").order_by("id")
    assert [(event.action, event.via, event.actor_name) for event in trail] == [
        ("saved_search.added", "api", f"API key batch ({key.prefix})"),
        ("saved_search.deleted", "api", f"API key batch ({key.prefix})"),
    ]


def test_its_question_is_one_that_the_recommendations_take(acme: Any, key: Any) -> None:
    make_ai_model()
    own = make_own_model(acme)
    for number, workload in enumerate(
        (
            {"task": "run", "model": "llama-3.1-8b", "context": 8192},
            {"task": "fine_tune", "model": f"own:{own.slug}", "target_modules": ["q", "v"]},
            {"task": "run", "model": "llama-3.1-8b", "reserve_gib": "1.5", "reserve_reason": "a second process & more"},
        )
    ):
        wished = {"countries": ["EU", "US"], "max_hourly_usd": "0.7", "budget_usd": "300"}
        answer = post("saved-searches", key, {"name": f"s{number}", "workload": workload, "preferences": wished})
        saved = answer.json()
        assert answer.status_code == 201, saved
        assert saved["preferences"]["countries"] == ["EU", "US"]
        question = {"workload": saved["workload"], "preferences": saved["preferences"]}
        answer = post("recommendations", key, question)
        assert answer.status_code == 200
        assert answer.json()["html_url"] == saved["result_url"]


def test_a_repeat_finds_it_and_another_question_of_its_name_is_refused(acme: Any, key: Any) -> None:
    kept = make_search(acme, "24 GiB")
    same = post("saved-searches", key, {"name": " 24  GiB ", "workload": {**NOTEBOOK, "gpu_memory_gib": "20.00"}})
    assert (same.status_code, same.json()["id"]) == (200, kept.pk)
    other = post("saved-searches", key, {**BODY, "workload": {**NOTEBOOK, "gpu_memory_gib": "40"}})
    refused = assert_problem(other, 409, "already_exists")
    assert refused["existing_id"] == kept.pk
    assert refused["errors"][0]["field"] == "name"
    assert SavedSearch.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": None}, [("name", "required")]),
        ({"name": 1}, [("name", "invalid")]),
        ({"name": "a\0b"}, [("name", "invalid")]),
        ({"name": "x" * 81}, [("name", "invalid")]),
        ({"workload": None}, [("workload", "required")]),
        ({"workload": {"task": "notebook"}}, [("workload.gpu_memory_gib", "required")]),
        ({"workload": {**NOTEBOOK, "model": "x"}}, [("workload.model", "other_task")]),
        ({"preferences": {"lots": "1"}}, [("preferences.lots", "invalid")]),
        ({"query": "task=notebook"}, [("query", "unknown_field")]),
    ],
)
def test_what_is_no_search_is_refused_at_its_field(key: Any, change: Any, expected: list[tuple[str, str]]) -> None:
    assert faults(post("saved-searches", key, {**BODY, **change})) == expected
    assert not SavedSearch.objects.exists()


def test_there_are_only_so_many(acme: Any, key: Any) -> None:
    for number in range(MAX_SEARCHES):
        make_search(acme, f"search {number}")
    assert_problem(post("saved-searches", key, BODY), 409, "limit_reached")


def test_where_owners_alone_order_a_key_keeps_none(acme: Any, key: Any, now: Any) -> None:
    mine = make_search(acme)
    OrganizationPolicy.objects.create(organization=acme, order_role="owner", changed_at=now)
    for answer in (post("saved-searches", key, BODY), call("DELETE", f"saved-searches/{mine.pk}", key)):
        assert assert_problem(answer, 403, "policy")["rule"] == "order_role"
    assert SavedSearch.objects.get() == mine


def test_scopes_and_organizations_are_kept_apart(acme: Any, globex: Any, key: Any) -> None:
    mine, theirs = make_search(acme), make_search(globex)
    reading, ordering = make_api_key(acme, "read"), make_api_key(acme, "order")
    assert [row["id"] for row in get("saved-searches", reading).json()["results"]] == [mine.pk]
    assert get(f"saved-searches/{mine.pk}", reading).status_code == 200
    assert_problem(get("saved-searches", ordering), 403, "forbidden")
    assert_problem(post("saved-searches", reading, BODY), 403, "forbidden")
    assert_problem(call("DELETE", f"saved-searches/{mine.pk}", reading), 403, "forbidden")
    for method in ("GET", "DELETE"):
        assert_problem(call(method, f"saved-searches/{theirs.pk}", key), 404, "not_found")
    foreign = make_own_model(globex)
    asked = {"task": "run", "model": f"own:{foreign.slug}"}
    refused = faults(post("saved-searches", key, {"name": "x", "workload": asked}))
    assert refused == [("workload.model", "unknown_model")]
