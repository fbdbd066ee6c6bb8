"""What a key opens: scopes, limits, the lots of an order, lists, and how many statements they take."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from rentals.models import AuditEvent, Order, OrganizationPolicy
from tests.factories import make_ai_model, make_api_key, make_machine, make_option
from tests.rentals.calls import assert_problem, call, faults, get, order, order_body, post
from tests.tenancy import statements

# --- Scopes and keys ----------------------------------------------------------------------------------------------


def test_each_address_asks_for_its_scope_by_name(acme, shop, key):
    placed = order(key, order_body(shop)).json()["id"]
    reading, ordering = make_api_key(acme, "read"), make_api_key(acme, "order")
    for method, path in (
        ("GET", "orders"), ("GET", f"orders/{placed}"), ("GET", "organization"), ("GET", "members"), ("GET", "audit"),
    ):  # fmt: skip
        assert call(method, path, reading).status_code == 200
        assert "“read”" in assert_problem(call(method, path, ordering), 403, "forbidden")["detail"]
    for path in ("orders", f"orders/{placed}/allocations/1/stop", f"orders/{placed}/allocations/1/start"):
        assert "“order”" in assert_problem(post(path, reading, {}), 403, "forbidden")["detail"]
    for either in (reading, ordering):
        assert get("key", either).json()["scopes"] == either.scopes
        assert post("quotes", either, {"machine": shop.pk, "term_days": 7}).status_code == 200
    assert Order.objects.count() == 1


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer x", "Bearer " + "x" * 100_000, "Bearer berth_\u00ff_\u00ff", "Bearer \ud83d",
     "Bearer é", "Bearer a b c", "bearer berth_x", "Basic dXNlcjpwYXNz", "Token x", "", "\0", "Bearer \0"],
)  # fmt: skip
def test_a_header_that_is_no_key_is_401(shop, header):
    for path in ("orders", "key"):
        response = call("GET", path, Authorization=header.encode("utf-8", "replace").decode("latin-1"))
        assert_problem(response, 401, "unauthenticated")
        assert response.headers["WWW-Authenticate"] == 'Bearer realm="Berth"'


def test_a_wrong_key_is_refused_where_none_is_needed_and_a_right_one_is_welcome(shop, key):
    assert_problem(get("machines", "berth_wrong"), 401, "unauthenticated")
    assert get("machines", key).status_code == 200
    assert get("machines").status_code == 200


def test_an_expired_key_is_refused(acme, now):
    key = make_api_key(acme, now=now - timedelta(days=2), expires_at=now - timedelta(days=1))
    assert "expired" in assert_problem(get("key", key), 401, "unauthenticated")["detail"]


def test_a_key_reads_itself_its_organization_members_and_audit(acme, globex, key):
    make_api_key(globex, name="foreign")
    itself = get("key", key).json()
    assert (itself["prefix"], itself["organization"], itself["name"]) == (key.prefix, "acme", "batch")
    assert itself["last_used_at"].endswith("Z")
    assert not set(itself) & {"hash", "secret_hash", "secret"}
    assert get("organization", key).json()["slug"] == "acme"
    assert [member["email"] for member in get("members", key).json()["results"]] == ["owner@acme.example"]
    events = get("audit", key).json()["results"]
    assert [(event["action"], event["object_id"], event["actor"]) for event in events] == [
        ("api_key.created", key.prefix, None)
    ]


def test_one_key_is_throttled_and_the_other_is_not(acme, key, monkeypatch):
    from rentals.throttling import AddressThrottle, KeyThrottle

    monkeypatch.setattr(KeyThrottle, "rate", "3/min", raising=False)
    monkeypatch.setattr(AddressThrottle, "rate", "1/min", raising=False)
    answers = [get("key", key) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert_problem(answers[-1], 429, "throttled")
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
    assert get("key", make_api_key(acme)).status_code == 200
    assert [get("gpus").status_code for _ in range(2)] == [200, 429]
    # A key counts by itself, not by its address.
    assert get("gpus", make_api_key(acme)).status_code == 200


def test_refused_requests_do_not_put_off_the_next(key, monkeypatch):
    import time

    from rentals.throttling import KeyThrottle

    monkeypatch.setattr(KeyThrottle, "rate", "2/min", raising=False)
    start = time.time()
    monkeypatch.setattr("rentals.throttling.time.time", lambda: start)
    assert [get("key", key).status_code for _ in range(20)] == [200, 200] + [429] * 18
    wait = int(get("key", key).headers["Retry-After"])
    monkeypatch.setattr("rentals.throttling.time.time", lambda: start + wait + 1)
    assert get("key", key).status_code == 200


# --- Lots and lists -----------------------------------------------------------------------------------------------


def test_stopping_and_starting_are_natural_repeats(shop, key):
    placed = order(key, order_body(shop, "220.00", lots=2)).json()["id"]
    for verb, state in (("stop", "stopped"), ("stop", "stopped"), ("start", "running"), ("start", "running")):
        answer = post(f"orders/{placed}/allocations/2/{verb}", key).json()
        assert (answer["order"], answer["number"], answer["state"]) == (placed, 2, state)
    events = AuditEvent.objects.filter(action__startswith="allocation").values_list("actor_name", flat=True)
    assert list(events) == [f"API key batch ({key.prefix})"] * 2
    for number in (3, 0, 10**30):
        assert_problem(post(f"orders/{placed}/allocations/{number}/stop", key), 404, "not_found")
    assert faults(post(f"orders/{placed}/allocations/1/stop", key, {"force": True})) == [("force", "unknown_field")]
    for nothing in ("[]", "0", '""', "false", "null"):
        assert faults(post(f"orders/{placed}/allocations/1/stop", key, nothing)) == [("body", "invalid")], nothing


def test_lots_of_an_order_that_is_over_stand_still(shop, key):
    placed = order(key, order_body(shop)).json()["id"]
    start = timezone.now() - timedelta(days=8)
    Order.objects.update(starts_at=start, ends_at=start + timedelta(days=7))
    assert_problem(post(f"orders/{placed}/allocations/1/stop", key), 409, "order_over")
    assert get(f"orders/{placed}", key).json()["status"] == "ended"
    assert [one["id"] for one in get("orders?state=ended", key).json()["results"]] == [placed]
    assert get("orders?state=active", key).json()["results"] == []


def test_the_list_of_orders_is_walked_without_repeats_or_gaps(acme, key):
    """B175: all placed at the same moment."""
    machine = make_machine(price_7_days_usd=Decimal("1.00"), lots=25)
    for number in range(25):
        assert order(key, order_body(machine, "1.00"), f"k{number}").status_code == 201
    moment = timezone.now()
    Order.objects.update(starts_at=moment, ends_at=moment + timedelta(days=7))
    seen, path = [], "orders?limit=4"
    while path:
        page = get(path, key).json()
        seen += [one["id"] for one in page["results"]]
        path = page["next"] and page["next"].removeprefix("http://testserver")
        # Placed in the meantime: before the page, so it shifts nothing.
        if len(seen) == 8:
            later = Order.objects.get(pk=seen[0])
            Order.objects.filter(pk=later.pk).update(
                starts_at=moment + timedelta(seconds=1), ends_at=moment + timedelta(days=7, seconds=1)
            )
    assert len(seen) == len(set(seen)) == 25


def test_the_list_of_orders_is_filtered(acme, shop, key):
    other = make_machine(price_7_days_usd=Decimal("110.00"))
    first = order(key, order_body(shop), "a").json()
    second = order(key, order_body(other), "b").json()

    def ids(query):
        response = get(f"orders?{query}", key)
        assert response.status_code == 200, response.content
        return [one["id"] for one in response.json()["results"]]

    assert ids("") == [second["id"], first["id"]]
    assert ids(f"machine={shop.pk}") == [first["id"]]
    assert ids("state=cancelled") == []
    assert ids(f"created_from={second['starts_at']}") == [second["id"]]
    assert ids(f"created_before={second['starts_at']}") == [first["id"]]
    assert ids(f"created_from={first['starts_at'].replace('Z', '%2B00:00')}&state=active&limit=1") == [second["id"]]


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ("state=open", "state", "invalid_choice"),
        ("state=active&state=ended", "state", "repeated"),
        ("stat=active", "stat", "unknown_field"),
        ("machine=x", "machine", "invalid"),
        ("machine=9223372036854775808", "machine", "invalid"),
        ("machine=%00", "machine", "invalid"),
        ("created_from=2026-12-01", "created_from", "invalid"),
        ("created_from=2026-12-01T09:30:00", "created_from", "invalid"),
        ("created_from=0001-01-01T00:00:00%2B14:00", "created_from", "invalid"),
        ("created_before=2026-13-01T00:00:00Z", "created_before", "invalid"),
        ("created_before=%00", "created_before", "invalid"),
        ("limit=0", "limit", "invalid"),
        ("limit=101", "limit", "invalid"),
        ("limit=-1", "limit", "invalid"),
        ("limit=1.5", "limit", "invalid"),
        ("cursor=x", "cursor", "invalid"),
        ("cursor=%00%ff", "cursor", "invalid"),
        ("cursor=WyJhIl0:1xyz:abc", "cursor", "invalid"),
        ("%00=1", "�", "unknown_field"),
    ],
)
def test_a_bad_parameter_is_named(key, query, field, code):
    assert faults(get(f"orders?{query}", key)) == [(field, code)]


def test_the_cursor_of_one_list_is_none_of_another(acme, key):
    make_api_key(acme)
    following = get("audit?limit=1", key).json()["next"]
    cursor = following.split("cursor=")[1].split("&")[0]
    assert get(f"audit?limit=1&cursor={cursor}", key).status_code == 200
    assert faults(get(f"orders?cursor={cursor}", key)) == [("cursor", "invalid")]


# --- Statements ---------------------------------------------------------------------------------------------------


def test_an_order_takes_at_most_fifteen_statements_after_authentication(acme, key):
    make_option("storage-500")
    machine = make_machine(price_7_days_usd=Decimal("110.00"), lots=50)
    body = order_body(machine, "2410.00", lots=20, options=[{"option": "storage-500", "quantity": 1}])
    # One more is the key itself. The organization's own models are read only for a workload that names one.
    with CaptureQueriesContext(connection) as counted:
        assert order(key, body).status_code == 201
    assert len(statements(counted.captured_queries)) <= 1 + 15
    assert "rentals_ownmodel" not in str(counted.captured_queries)


def test_with_a_workload_and_every_rule_of_a_policy_it_is_fifteen_too(acme, key, now):
    make_option("storage-500")
    make_ai_model("llama-3.1-8b")
    machine = make_machine(price_7_days_usd=Decimal("110.00"), lots=50)
    OrganizationPolicy.objects.create(
        organization=acme, tiers=["secure"], countries=["DE"], max_order_usd=5000, max_month_usd=5000, changed_at=now
    )
    body = order_body(machine, "2410.00", lots=20, options=[{"option": "storage-500", "quantity": 1}])
    body["workload"] = {"task": "run", "model": "llama-3.1-8b", "precision_bits": 4, "context": 4096, "requests": 1}
    # That a key was used is noted once a minute, and belongs to who asks, not to the order.
    get("key", key)
    with CaptureQueriesContext(connection) as counted:
        assert order(key, body).status_code == 201
    # Two more are the key and then its organization: what finds a key before its tenant is known reads nothing else.
    assert len(statements(counted.captured_queries)) <= 2 + 15


def test_lists_take_as_many_statements_for_one_row_as_for_thirty(acme, key):
    machine = make_machine(price_7_days_usd=Decimal("1.00"), lots=30)
    order(key, order_body(machine, "1.00"), "first")
    for number in range(29):
        order(key, order_body(machine, "1.00"), f"k{number}")
    for path, most in (("orders", 2), ("members", 1), ("audit", 1), ("machines", 4), ("gpus", 1), ("options", 1)):
        for limit in (1, 30):
            with CaptureQueriesContext(connection) as counted:
                get(f"{path}?limit={limit}", key)
            assert len(statements(counted.captured_queries)) == most + 1
