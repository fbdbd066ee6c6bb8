"""Webhook endpoints over the API: the rules and words of the pages, secrets shown once, and repeats that are safe."""

import json
from datetime import timedelta
from typing import Any

import pytest

from rentals.models import ApiKey, AuditEvent, WebhookDelivery, WebhookEndpoint
from rentals.models.webhooks import EventKind
from rentals.webhooks_endpoints import MAX_ENDPOINTS
from rentals.webhooks_sending import send_webhooks
from tests.factories import make_api_key, make_endpoint, make_order
from tests.rentals.calls import assert_problem, call, faults, get, post

URL = "https://example.com/hook?token=quince"
WISH = {"url": URL, "events": ["order.ended", "order.placed", "order.placed"], "description": "billing"}


def test_an_endpoint_is_made_read_changed_and_removed(acme: Any, key: Any) -> None:
    answer = post("webhooks", key, WISH)
    assert answer.status_code == 201
    made = answer.json()
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert made["events"] == ["order.placed", "order.ended"]
    assert (made["url"], made["description"], made["enabled"]) == (URL, "billing", True)
    assert made["created_by"] == f"API key batch ({key.prefix})"
    assert made["html_url"] == f"http://testserver/o/acme/webhooks/{made['id']}/"
    assert answer.headers["Location"] == f"/api/v1/webhooks/{made['id']}"
    assert get(answer.headers["Location"], key).json() == made
    assert get("webhooks", key).json() == {"results": [made], "next": None}
    changed = call("PATCH", f"webhooks/{made['id']}", key, {"enabled": False, "description": None})
    assert changed.json() == {**made, "enabled": False}
    assert call("PATCH", f"webhooks/{made['id']}", key, {}).json() == {**made, "enabled": False}
    assert call("DELETE", f"webhooks/{made['id']}", key).status_code == 204
    assert_problem(call("DELETE", f"webhooks/{made['id']}", key), 404, "not_found")
    trail = AuditEvent.objects.filter(organization=acme, action__startswith="webhook.").order_by("id")
    assert [(event.action, event.via) for event in trail] == [
        ("webhook.created", "api"), ("webhook.changed", "api"), ("webhook.removed", "api"),
    ]  # fmt: skip
    assert "quince" not in json.dumps([event.data for event in trail])


def test_a_repeat_makes_no_second_endpoint_and_shows_no_secret(acme: Any, key: Any) -> None:
    made = post("webhooks", key, WISH).json()
    again = assert_problem(post("webhooks", key, {**WISH, "events": ["order.ended"]}), 409, "already_exists")
    assert again["existing_id"] == made["id"]
    assert [error["field"] for error in again["errors"]] == ["url"]
    assert made["secret"] not in json.dumps(again)
    assert WebhookEndpoint.objects.count() == 1


def test_a_secret_is_replaced_once_and_both_sign(acme: Any, key: Any, endpoint: Any, receiver: Any, recipe: Any,
                                                 now: Any) -> None:  # fmt: skip
    before = get(f"webhooks/{endpoint.pk}", key).json()
    body = {"secret_made_at": before["secret_made_at"]}
    replaced = post(f"webhooks/{endpoint.pk}/secret", key, body).json()
    assert replaced["previous_secret_until"] > replaced["secret_made_at"] > before["secret_made_at"]
    assert_problem(post(f"webhooks/{endpoint.pk}/secret", key, body), 409, "secret_changed")
    assert post(f"webhooks/{endpoint.pk}/test", key).status_code == 202
    assert send_webhooks(lambda: now + timedelta(seconds=5)) == 1
    (came,) = receiver.received
    for secret in (replaced["secret"], endpoint.text):
        recipe(secret, came.headers, came.body)


def test_what_was_delivered_is_read_and_sent_again(acme: Any, key: Any, endpoint: Any, receiver: Any, now: Any) -> None:
    order = make_order(acme, placement={"now": now})
    receiver.answer = lambda came: (500, {}, b"not now")
    send_webhooks(lambda: now)
    receiver.answer = lambda came: (200, {}, b"thanks")
    (listed,) = get(f"webhooks/{endpoint.pk}/deliveries", key).json()["results"]
    assert (listed["type"], listed["state"], listed["endpoint_id"]) == ("order.placed", "pending", endpoint.pk)
    assert [attempt["status"] for attempt in listed["attempts"]] == [500]
    one = get(f"webhooks/{endpoint.pk}/deliveries/{listed['event_id']}", key).json()
    assert one.pop("event")["data"]["order"]["id"] == str(order.pk)
    assert one == listed
    again = post(f"webhooks/{endpoint.pk}/deliveries/{listed['event_id']}/replay", key)
    assert (again.status_code, again.json()["event_id"]) == (202, listed["event_id"])
    assert send_webhooks(lambda: now + timedelta(seconds=5)) == 1
    assert get(f"webhooks/{endpoint.pk}/deliveries?state=pending", key).json()["results"] == []
    (done,) = get(f"webhooks/{endpoint.pk}/deliveries?state=delivered", key).json()["results"]
    assert (len(done["attempts"]), done["next_attempt_at"]) == (2, None)


def test_a_test_that_still_waits_is_not_doubled(acme: Any, key: Any, endpoint: Any) -> None:
    ids = {post(f"webhooks/{endpoint.pk}/test", key).json()["event_id"] for _ in range(3)}
    assert len(ids) == WebhookDelivery.objects.count() == 1


def test_what_is_turned_off_is_told_nothing(acme: Any, key: Any, endpoint: Any) -> None:
    sent = post(f"webhooks/{endpoint.pk}/test", key).json()["event_id"]
    call("PATCH", f"webhooks/{endpoint.pk}", key, {"enabled": False})
    assert_problem(post(f"webhooks/{endpoint.pk}/test", key), 409, "turned_off")
    assert_problem(post(f"webhooks/{endpoint.pk}/deliveries/{sent}/replay", key), 409, "turned_off")
    assert get(f"webhooks/{endpoint.pk}/deliveries/{sent}", key).json()["state"] == "dropped"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"url": None}, [("url", "required")]),
        ({"url": "http://example.com/"}, [("url", "invalid")]),
        ({"url": "https://10.0.0.5/"}, [("url", "invalid")]),
        ({"events": []}, [("events", "invalid")]),
        ({"events": ["order.lost"]}, [("events", "invalid")]),
        ({"events": ["\ud800"]}, [("events", "invalid")]),
        ({"events": [1]}, [("events[0]", "invalid")]),
        ({"events": "order.placed"}, [("events", "invalid")]),
        ({"description": "a\0b"}, [("description", "invalid")]),
        ({"description": "\u3164"}, [("description", "invalid")]),
        ({"descriptoin": "x"}, [("descriptoin", "unknown_field")]),
        ({"secret": "mine"}, [("secret", "unknown_field")]),
    ],
)
def test_a_wrong_wish_is_refused_at_its_field(key: Any, change: Any, expected: list[tuple[str, str]]) -> None:
    assert faults(post("webhooks", key, {**WISH, **change})) == expected
    assert not WebhookEndpoint.objects.exists()


def test_a_wrong_event_is_repeated_in_short_with_the_one_that_was_meant(key: Any) -> None:
    told = assert_problem(post("webhooks", key, {**WISH, "events": ["order.plced"]}), 400, "invalid")["detail"]
    assert told == "There is no event “order.plced”. Did you mean order.placed?"
    told = assert_problem(post("webhooks", key, {**WISH, "events": ["x" * 100_000]}), 400, "invalid")["detail"]
    assert len(told) < 100


def test_a_wrong_change_changes_nothing(acme: Any, key: Any) -> None:
    endpoint = make_endpoint(acme)
    here = f"webhooks/{endpoint.pk}"
    before = get(here, key).json()
    assert faults(call("PATCH", here, key, {"enabled": 1})) == [("enabled", "invalid")]
    assert faults(call("PATCH", here, key, {"enabled": False, "url": "https://localhost/"})) == [("url", "invalid")]
    assert faults(post(f"{here}/secret", key, {})) == [("secret_made_at", "required")]
    assert get(here, key).json() == before


def test_there_are_only_so_many(acme: Any, key: Any) -> None:
    for number in range(MAX_ENDPOINTS):
        make_endpoint(acme, f"https://example.com/{number}")
    assert "at most 10" in assert_problem(post("webhooks", key, WISH), 409, "limit_reached")["detail"]


def test_a_key_that_reads_sees_no_password_in_an_address_and_changes_nothing(acme: Any, key: Any) -> None:
    made = post("webhooks", key, WISH).json()
    here = f"webhooks/{made['id']}"
    sent = post(f"{here}/test", key).json()["event_id"]
    reading, ordering = make_api_key(acme, "read"), make_api_key(acme, "order")
    for path in ("webhooks", here, f"{here}/deliveries", f"{here}/deliveries/{sent}"):
        assert get(path, reading).status_code == 200
        assert "quince" not in get(path, reading).content.decode()
        assert made["secret"] not in get(path, key).content.decode()
        assert_problem(get(path, ordering), 403, "forbidden")
    assert get(here, reading).json()["url"] == "https://example.com/hook?…"
    for method, path, body in (
        ("POST", "webhooks", WISH), ("PATCH", here, {}), ("DELETE", here, None), ("POST", f"{here}/test", None),
        ("POST", f"{here}/secret", {"secret_made_at": made["secret_made_at"]}),
        ("POST", f"{here}/deliveries/{sent}/replay", None),
    ):  # fmt: skip
        assert_problem(call(method, path, reading, body), 403, "forbidden")


def test_another_organization_s_endpoints_do_not_exist(acme: Any, globex: Any, key: Any) -> None:
    theirs, mine = make_endpoint(globex, URL), make_endpoint(acme, "https://example.com/ours")
    stranger = make_api_key(globex)
    sent = post(f"webhooks/{theirs.pk}/test", stranger).json()["event_id"]
    for base in (f"webhooks/{theirs.pk}", f"webhooks/{mine.pk}"):
        paths = [("GET", ""), ("PATCH", ""), ("GET", "/deliveries"), ("POST", "/test"), ("POST", "/secret")]
        paths = [] if base.endswith(f"/{mine.pk}") else [*paths, ("DELETE", "")]
        deliveries = [("GET", f"/deliveries/{sent}"), ("POST", f"/deliveries/{sent}/replay")]
        for method, rest in [*paths, *deliveries]:
            assert_problem(call(method, f"{base}{rest}", key), 404, "not_found")
    assert [row["id"] for row in get("webhooks", key).json()["results"]] == [mine.pk]
    # Which addresses another organization tells is nothing to go by.
    assert post("webhooks", key, WISH).status_code == 201


def test_a_revoked_key_makes_nothing(key: Any, now: Any) -> None:
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=now - timedelta(seconds=1))
    assert_problem(post("webhooks", key, WISH), 401, "unauthenticated")


def test_every_event_that_the_page_offers_is_in_the_document(db: None) -> None:
    kinds = get("schema").json()["components"]["schemas"]["EventKind"]["enum"]
    assert kinds == EventKind.values
