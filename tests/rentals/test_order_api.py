"""Ordering over the API: the table of idempotency row by row, and every refusal with what a program acts on."""

import html
import json
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import timezone

from catalog.models import Machine
from rentals.api_keys import revoke_api_key
from rentals.invariants import violations
from rentals.models import ApiKey, AuditEvent, IdempotencyRecord, Order
from rentals.tenants import tenant
from tests.factories import make_ai_model, make_api_key, make_machine, make_option, make_provider
from tests.rentals.calls import assert_problem, faults, get, order, order_body, post

WORKLOAD = {"task": "run", "model": "llama-3.1-8b", "precision_bits": 16, "context": 4096, "requests": 1}


@pytest.fixture(autouse=True)
def _nothing_is_inconsistent(db):
    yield
    assert not violations()


# --- One order ----------------------------------------------------------------------------------------------------


def test_an_order_has_the_agreed_shape(acme, shop, key):
    make_option("storage-500", price_per_lot_day_usd=Decimal("1.50"))
    make_ai_model()
    body = order_body(
        shop, "241.00", lots=2, options=[{"option": "storage-500", "quantity": 1}], workload=WORKLOAD,
        environment={"preset": "vllm", "notes": "0.8"},
    )  # fmt: skip
    response = order(key, body)
    assert response.status_code == 201, response.content
    assert response.headers["Content-Type"] == "application/json"
    assert "Idempotency-Replayed" not in response.headers
    made, row = response.json(), Order.objects.get()
    assert response.headers["Location"] == f"/api/v1/orders/{row.pk}"
    assert (made["id"], made["status"], made["lots"], made["cards"]) == (str(row.pk), "active", 2, 2)
    assert made["total_usd"] == "241.00"
    assert [line["amount_usd"] for line in made["lines"]] == ["220.00", "21.00"]
    assert made["environment"] == {"preset": "vllm", "notes": "0.8"}
    assert [lot["state"] for lot in made["allocations"]] == ["running", "running"]
    assert made["idempotency_key"] == "k"
    assert made["html_url"] == f"http://testserver/o/acme/orders/{row.pk}/"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", made["starts_at"])
    assert row.ends_at - row.starts_at == timedelta(days=7)
    assert made["sizing"]["memory"]["total_gib"] == "19.55"
    assert made["sizing"]["workload"] == WORKLOAD
    shown = {**made, "allocations": [{**lot, "connection": None} for lot in made["allocations"]]}
    assert get(f"orders/{row.pk}", key).json() == shown
    assert get("orders", key).json() == {"results": [made], "next": None}
    json.loads(response.content, parse_float=lambda text: pytest.fail(f"a float: {text}"))


def test_who_ordered_is_the_key_by_name_and_prefix(acme, shop, key):
    order(key, order_body(shop))
    row, event = Order.objects.get(), AuditEvent.objects.get(action="order.placed")
    assert (row.placed_via, row.placed_by, row.placed_by_name) == ("api", None, f"API key batch ({key.prefix})")
    assert (event.via, event.actor, event.actor_name) == ("api", None, row.placed_by_name)


def test_defaults_stand_for_what_is_not_given(shop, key):
    response = order(key, {"machine": shop.pk, "term_days": 7, "expected_total_usd": "110"})
    assert response.status_code == 201
    assert response.json()["environment"] == {"preset": "other", "notes": ""}
    assert response.json()["sizing"] is None


def test_a_quote_stores_nothing_and_says_the_lines(acme, shop, key):
    make_option("storage-500", price_per_lot_day_usd=Decimal("1.50"))
    body = {"machine": shop.pk, "term_days": 7, "lots": 2, "options": [{"option": "storage-500"}]}
    offer = post("quotes", key, body).json()
    assert {name: offer[name] for name in ("machine", "term_days", "lots", "cards", "total_usd")} == {
        "machine": shop.pk, "term_days": 7, "lots": 2, "cards": 2, "total_usd": "241.00",
    }  # fmt: skip
    assert [(line["code"], line["unit_usd"], line["amount_usd"]) for line in offer["lines"]] == [
        ("package", "110.00", "220.00"),
        ("option", "10.50", "21.00"),
    ]
    assert not Order.objects.exists()
    assert order(key, {**body, "expected_total_usd": offer["total_usd"]}).status_code == 201


# --- The table of idempotency -------------------------------------------------------------------------------------


def test_done_with_the_same_body_is_the_same_bytes_however_often(shop, key):
    first = order(key, order_body(shop))
    for _ in range(3):
        again = order(key, order_body(shop))
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers["Idempotency-Replayed"] == "true"
    # Another spelling of the same request.
    spelled = order(key, json.dumps(order_body(shop, "110.0", community_acknowledged=False, workload=None), indent=3))
    assert spelled.content == first.content
    assert Order.objects.count() == 1


def test_a_repeat_after_price_stock_and_state_changed_is_the_original_bytes(acme, shop, key):
    first = order(key, order_body(shop, "220.00", lots=2))
    Machine.objects.filter(pk=shop.pk).update(price_7_days_usd=Decimal("1.00"), name="Renamed", listed=False)
    order_id = first.json()["id"]
    assert post(f"orders/{order_id}/allocations/1/stop", key).status_code == 200
    again = order(key, order_body(shop, "220.00", lots=2))
    assert again.content == first.content
    assert get(f"orders/{order_id}", key).content != first.content


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"lots": 2, "expected_total_usd": "220.00"}, ["expected_total_usd", "lots"]),
        ({"term_days": 30}, ["term_days"]),
        ({"environment": {"preset": "vllm"}}, ["environment.preset"]),
        ({"options": [{"option": "nothing-like-it"}]}, ["options"]),
        ({"machine": 2**62}, ["machine"]),
    ],
)
def test_another_body_is_a_mismatch_naming_the_fields(shop, key, changes, fields):
    order(key, order_body(shop))
    body = assert_problem(order(key, order_body(shop) | changes), 422, "idempotency_mismatch")
    assert sorted(error["field"] for error in body["errors"]) == fields
    assert Order.objects.count() == 1


def test_a_refused_request_leaves_its_key_free(shop, key):
    """B141: validation error then correction, new price then confirmed, sold out then restocked; one key for all."""
    assert faults(order(key, order_body(shop, lots=0))) == [("lots", "invalid")]
    assert_problem(order(key, order_body(shop, "1.00")), 409, "price_changed")
    Machine.objects.filter(pk=shop.pk).update(free_lots=0)
    assert_problem(order(key, order_body(shop)), 409, "sold_out")
    assert not IdempotencyRecord.objects.exists()
    Machine.objects.filter(pk=shop.pk).update(free_lots=2)
    response = order(key, order_body(shop))
    assert (response.status_code, response.headers.get("Idempotency-Replayed")) == (201, None)


def test_a_fault_of_ours_leaves_the_key_free(shop, key, monkeypatch):
    def crash(*args, **kwargs):
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr("rentals.ordering._take_stock", crash)
        assert_problem(order(key, order_body(shop)), 500, "server_error")
    assert not IdempotencyRecord.objects.exists()
    assert order(key, order_body(shop)).status_code == 201


@pytest.mark.parametrize("value", ["x" * 256, "a\nb", "a\0b", "clé", "🔑", " a", "a ", "%00\x7f"])
def test_a_malformed_key_is_refused(shop, key, value):
    """B144."""
    response = order(key, order_body(shop), value)
    assert faults(response) == [("Idempotency-Key", "invalid")]
    assert not Order.objects.exists()


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_key_is_refused_and_the_body_is_judged_too(shop, key, value):
    assert faults(order(key, order_body(shop), value)) == [("Idempotency-Key", "required")]
    response = order(key, order_body(shop, lots=True), value)
    assert faults(response) == [("Idempotency-Key", "required"), ("lots", "invalid")]


@pytest.mark.parametrize("value", ["x", "x" * 255, "a b", "~!"])
def test_printable_keys_up_to_255_are_accepted(shop, key, value):
    response = order(key, order_body(shop), value)
    assert response.status_code == 201
    assert response.json()["idempotency_key"] == value


def test_keys_of_organizations_are_independent(globex, shop, key):
    """B143."""
    first = order(key, order_body(shop))
    second = order(make_api_key(globex), order_body(shop))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] != second.json()["id"]
    assert "Idempotency-Replayed" not in second.headers


def test_a_revoked_key_gets_401_and_never_the_stored_answer(acme, shop, key, now):
    first = order(key, order_body(shop))
    revoke_api_key(acme, key.pk, actor=acme.owner, via="page", now=now)
    response = order(key, order_body(shop))
    assert_problem(response, 401, "unauthenticated")
    assert first.json()["id"].encode() not in response.content
    # Another key of the organization may ask again.
    assert order(make_api_key(acme), order_body(shop)).content == first.content


def test_a_key_revoked_after_it_opened_the_request_changes_nothing(acme, shop, key, now, monkeypatch):
    """Between the header and the transaction: as the last statement before it, the key is revoked."""
    from rentals.api import orders as module

    def late(*args, **kwargs):
        with tenant(acme):
            ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
        return original(*args, **kwargs)

    original = module.read_order
    placed = order(key, order_body(shop), "before").json()["id"]
    monkeypatch.setattr(module, "read_order", late)
    for idempotency_key in ("new", "before"):
        ApiKey.objects.filter(pk=key.pk).update(revoked_at=None)
        response = order(key, order_body(shop), idempotency_key)
        assert_problem(response, 401, "unauthenticated")
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
        assert placed.encode() not in response.content
    assert Order.objects.count() == 1


def test_the_page_and_the_api_do_not_share_a_request(acme, shop, key):
    from tests.factories import make_basket, place

    place(acme, make_basket(shop), idempotency_key="k")
    body = assert_problem(order(key, order_body(shop)), 422, "idempotency_mismatch")
    assert "path" in [error["field"] for error in body["errors"]]


# --- Refusals -----------------------------------------------------------------------------------------------------


def test_sold_out_says_how_many_there_are(shop, key):
    body = assert_problem(order(key, order_body(shop, "330.00", lots=3)), 409, "sold_out")
    assert body["available_lots"] == 2
    assert body["detail"] == "3 lots asked, 2 free."
    body = assert_problem(post("quotes", key, {"machine": shop.pk, "term_days": 7, "lots": 3}), 409, "sold_out")
    assert body["available_lots"] == 2


def test_a_changed_price_has_both_totals(shop, key):
    body = assert_problem(order(key, order_body(shop, "1.5")), 409, "price_changed")
    assert (body["old_total_usd"], body["new_total_usd"]) == ("1.50", "110.00")
    assert body["errors"][0]["field"] == "expected_total_usd"


def test_a_term_that_is_not_offered_names_those_that_are(shop, key):
    body = assert_problem(order(key, order_body(shop, term_days=3)), 400, "term_not_offered")
    assert (body["offered_term_days"], body["errors"][0]["field"]) == ([7, 30], "term_days")


def test_community_needs_its_acknowledgement(key):
    home = make_machine(tier="community", price_7_days_usd=Decimal("50.00"))
    body = assert_problem(order(key, order_body(home, "50.00")), 400, "acknowledgement_required")
    assert body["errors"][0]["field"] == "community_acknowledged"
    response = order(key, order_body(home, "50.00", community_acknowledged=True))
    assert response.json()["community_acknowledged"] is True


def test_a_machine_off_line_unlisted_stale_or_unknown(key, now):
    stale = make_provider(feed_url="https://example.com/feed", feed_format="x", refreshed_at=now - timedelta(minutes=6))
    for fields in ({"online": False}, {"listed": False}, {"provider": stale}):
        machine = make_machine(price_7_days_usd=Decimal("110.00"), **fields)
        assert_problem(order(key, order_body(machine)), 409, "off_line")
        assert_problem(post("quotes", key, {"machine": machine.pk, "term_days": 7}), 409, "off_line")
    Machine.objects.all().delete()
    body = assert_problem(order(key, order_body(machine)), 404, "not_found")
    assert body["errors"][0]["field"] == "machine"


def test_a_database_that_gives_no_lock_is_unavailable_and_may_be_asked_again(shop, key, monkeypatch):
    from django.db import OperationalError

    def locked(*args, **kwargs):
        raise OperationalError("database is locked")

    monkeypatch.setattr("rentals.ordering._take_stock", locked)
    response = order(key, order_body(shop))
    assert_problem(response, 503, "unavailable")
    assert response.headers["Retry-After"] == "1"
    monkeypatch.setattr("rentals.ordering._claim_key", locked)
    assert_problem(order(key, order_body(shop)), 503, "unavailable")


def test_a_request_that_waits_too_long_for_its_first_is_in_progress(shop, key, monkeypatch):
    from rentals.errors import InProgress

    def waiting(*args, **kwargs):
        raise InProgress

    monkeypatch.setattr("rentals.ordering._claim_key", waiting)
    response = order(key, order_body(shop))
    assert_problem(response, 409, "in_progress")
    assert response.headers["Retry-After"] == "1"


BAD = [
    ({"machine": None}, [("machine", "required")]),
    ({"machine": "12"}, [("machine", "invalid")]),
    ({"machine": 1.0}, [("machine", "invalid")]),
    ({"machine": True}, [("machine", "invalid")]),
    ({"machine": 0}, [("machine", "invalid")]),
    ({"machine": 2**63}, [("machine", "invalid")]),
    ({"machine": 10**40}, [("machine", "invalid")]),
    ({"term_days": 14}, [("term_days", "invalid")]),
    ({"term_days": "7"}, [("term_days", "invalid")]),
    ({"lots": None}, [("lots", "required")]),
    ({"lots": 10_001}, [("lots", "invalid")]),
    ({"lots": -1}, [("lots", "invalid")]),
    ({"options": {}}, [("options", "invalid")]),
    ({"options": ["storage-500"]}, [("options[0]", "invalid")]),
    ({"options": [{}]}, [("options[0].option", "required")]),
    ({"options": [{"option": "s"}, {"option": "a\0b"}]}, [("options[1].option", "invalid")]),
    ({"options": [{"option": "s", "quantity": 0}]}, [("options[0].quantity", "invalid")]),
    ({"options": [{"option": "s", "quantity": "1"}]}, [("options[0].quantity", "invalid")]),
    ({"options": [{"optoin": "s"}]}, [("options[0].optoin", "unknown_field"), ("options[0].option", "required")]),
    ({"options": [{"option": "s"}, {"option": "s"}]}, [("options", "invalid")]),
    ({"options": [{"option": "nothing-like-it"}]}, [("options", "invalid")]),
    ({"expected_total_usd": None}, [("expected_total_usd", "required")]),
    ({"expected_total_usd": 110}, [("expected_total_usd", "invalid")]),
    ({"expected_total_usd": 110.0}, [("expected_total_usd", "invalid")]),
    ({"expected_total_usd": "110.001"}, [("expected_total_usd", "invalid")]),
    ({"expected_total_usd": "1e3"}, [("expected_total_usd", "invalid")]),
    ({"expected_total_usd": "NaN"}, [("expected_total_usd", "invalid")]),
    ({"expected_total_usd": "-1.00"}, [("expected_total_usd", "invalid")]),
    ({"expected_total_usd": "١١٠"}, [("expected_total_usd", "invalid")]),
    ({"expected_total_usd": "1" * 40}, [("expected_total_usd", "invalid")]),
    ({"environment": "vllm"}, [("environment", "invalid")]),
    ({"environment": {"preset": "windows"}}, [("environment.preset", "invalid")]),
    ({"environment": {"preset": "vllm", "notes": "a\0b"}}, [("environment.notes", "invalid")]),
    ({"environment": {"preset": "vllm", "notes": "\ud800"}}, [("environment.notes", "invalid")]),
    ({"environment": {"notes": "x" * 501}}, [("environment.notes", "invalid")]),
    ({"environment": {"preset": "vllm", "image": "x"}}, [("environment.image", "unknown_field")]),
    ({"community_acknowledged": "yes"}, [("community_acknowledged", "invalid")]),
    ({"community_acknowledged": None}, [("community_acknowledged", "invalid")]),
    ({"workload": "llama"}, [("workload", "invalid")]),
    ({"workload": {}}, [("workload.task", "required"), ("workload.model", "required")]),
    ({"workload": {**WORKLOAD, "context": 131_073}}, [("workload.context", "max_value")]),
    ({"workload": {**WORKLOAD, "context": "4096"}}, [("workload.context", "invalid")]),
    ({"lot": 1}, [("lot", "unknown_field")]),
    ({"\0": 1}, [("�", "unknown_field")]),
]


@pytest.mark.parametrize(("changes", "expected"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_bad_field_is_named_and_nothing_is_ordered(shop, key, changes, expected):
    make_ai_model()
    response = order(key, order_body(shop) | changes)
    assert sorted(faults(response)) == sorted(expected)
    assert all(error["detail"].endswith((".", "?")) for error in response.json()["errors"])
    assert not Order.objects.exists()
    assert not IdempotencyRecord.objects.exists()


def test_an_unknown_field_names_the_nearest(shop, key):
    response = order(key, order_body(shop) | {"expected_total": "110.00"})
    assert "Did you mean expected_total_usd?" in response.json()["errors"][0]["detail"]


@pytest.mark.parametrize("body", ["", "[]", "null", "5", "{", '{"lots": 1, "lots": 2}', '{"lots": NaN}', "[" * 9999])
def test_what_is_no_object_is_refused(key, body):
    response = order(key, body)
    assert (response.status_code, response.headers["Content-Type"]) == (400, "application/problem+json")


def test_every_field_is_judged_at_once(key):
    fields = [field for field, _ in faults(order(key, {"lots": "x", "colour": 1}, None))]
    assert fields == ["Idempotency-Key", "colour", "expected_total_usd", "machine", "term_days", "lots"]


def test_parameters_of_an_address_without_any_are_refused(shop, key):
    assert faults(post("quotes?dry_run=1", key, {})) == [("dry_run", "unknown_field")]
    assert faults(get("key?limit=5", key)) == [("limit", "unknown_field")]


# --- The same on the pages ----------------------------------------------------------------------------------------


def test_the_command_of_the_review_page_is_the_order_that_its_button_places(client, acme, shop, key):
    make_ai_model()
    client.force_login(acme.owner)
    query = {"machine": shop.pk, "term_days": 7, "lots": 2, "notes": "it's 0.8", **WORKLOAD}
    page = html.unescape(client.get(reverse("order-review", args=["acme"]), query).content.decode())
    command = re.search(r'id="curl">(.*?)</code>', page, re.DOTALL).group(1)
    assert "Idempotency-Key" in command
    assert command.splitlines()[0].startswith("# ")
    body = re.search(r"-d '([^']*)'", command).group(1)
    placed = order(key, body).json()
    assert (placed["total_usd"], placed["environment"]["notes"]) == ("220.00", "it's 0.8")
    assert placed["sizing"]["workload"] == WORKLOAD
    receipt = client.get(reverse("order", args=["acme", placed["id"]])).content.decode()
    assert f"/api/v1/orders/{placed['id']}/allocations/1/stop" in receipt
