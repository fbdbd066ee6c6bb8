"""The whole document against the whole API: generated requests, valid and broken, alone and in chains of links."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import werkzeug.test
from django.db import connections
from schemathesis.engine import from_schema

from catalog.models import Machine
from config.wsgi import application
from tests import api_scene
from tests.factories import make_api_key, make_endpoint, make_order, make_own_model, make_search, make_ssh_key
from tests.rentals.calls import assert_problem, call

pytestmark = [pytest.mark.system, pytest.mark.postgres, pytest.mark.timeout(600)]

SEED = 20261201
EXAMPLES = 5
OF_A_NETWORK = ("max_redirects", "verify", "cert", "proxies", "timeout", "allow_redirects")
# What no schema can say: whether a slug names a model, what a model's maximum is, which fields go together.
MEANING = {
    "unknown_model", "not_sizable", "wrong_kind", "other_task", "illegal_split", "as_stored", "unreadable_model",
    "required", "repeated", "min_value", "max_value", "unknown_has_figure", "term_not_offered",
    "acknowledgement_required",
}  # fmt: skip
# Texts and cursors may hold anything in the schema; the rules for them are sentences.
TEXTS = (
    "name",
    "reason",
    "reserve_reason",
    "notes",
    "cursor",
    "option",
    "options",
    "gpu",
    "countries",
    "config",
    "safetensors_index",
    "key",
    "url",
    "description",
    "until",
)
PUBLIC = {*api_scene.READS} - {*api_scene.WITH_KEY}
READS = PUBLIC | {
    *api_scene.WITH_KEY, *api_scene.OF_THE_TENANT, "get_order", "list_ssh_keys", "get_ssh_key", "list_webhooks",
    "get_webhook", "list_webhook_deliveries", "get_webhook_delivery", "list_saved_searches", "get_saved_search",
    "list_own_models", "get_own_model",
}  # fmt: skip
ACTS = {
    "place_order", "stop_allocation", "start_allocation", "add_ssh_key", "remove_ssh_key", "make_webhook",
    "change_webhook", "remove_webhook", "replace_webhook_secret", "test_webhook", "replay_webhook_delivery",
    "save_search", "delete_saved_search", "keep_own_model", "delete_own_model",
}  # fmt: skip
MAY = {"anonymous": PUBLIC, "read": READS, "order": READS | ACTS}


@schemathesis.check
def refused_for_what_it_means(ctx: Any, response: Any, case: Any) -> None:
    """A request that keeps to the schema is refused with 400 only for what the schema cannot say."""
    if response.status_code != 400 or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    for error in response.json()["errors"] or [{"code": response.json()["code"], "field": "body"}]:
        last = error["field"].rpartition(".")[2].partition("[")[0]
        if "with a point or an exponent" in error["detail"]:
            # 10.0 is an integer to JSON Schema; here a float is a fault that no reading hides.
            continue
        if error["code"] not in MEANING and last not in TEXTS and ".config" not in error["field"]:
            raise AssertionError(f"refused although the schema allows it: {error}")


def configuration(key: Any, examples: int) -> Any:
    headers = {} if key is None else {"Authorization": f"Bearer {key.text}"}
    return schemathesis.Config.from_dict(
        {
            "seed": SEED,
            "headers": headers,
            "generation": {"max-examples": examples, "deterministic": True, "database": "none"},
            "checks": {
                "positive_data_acceptance": {
                    "expected-statuses": ["2xx", "3xx", "400", "401", "403", "404", "409", "422"]
                },
            },
            "phases": {"stateful": {"max-steps": 6}},
        }
    )


def run(key: Any, examples: int) -> tuple[dict[str, Counter[int]], list[str]]:
    """Statuses by operation, and everything that was found wrong."""
    schema = schemathesis.openapi.from_wsgi("/api/v1/schema", application, config=configuration(key, examples))
    names = {f"{op.method.upper()} {op.path}": op.definition.raw["operationId"] for op in _operations(schema)}
    statuses: dict[str, Counter[int]] = {name: Counter() for name in names.values()}
    problems: list[str] = []
    for event in from_schema(schema).execute():
        recorder = getattr(event, "recorder", None)
        if recorder is not None:
            for case_id, interaction in recorder.interactions.items():
                if interaction.response is not None:
                    case = recorder.cases[case_id].value
                    statuses[names[case.operation.label]][interaction.response.status_code] += 1
            for case_id, checks in recorder.checks.items():
                for check in checks:
                    if check.failure_info is not None:
                        problems.append(
                            f"{recorder.cases[case_id].value.operation.label}: {check.name}: "
                            f"{check.failure_info.failure!r} {check.failure_info.code_sample}"
                        )
        if type(event).__name__ in ("NonFatalError", "FatalError"):
            problems.append(f"{event.label}: {event.info.format()}")
    return statuses, problems


def _operations(schema: Any) -> Iterator[Any]:
    for found in schema.get_all_operations():
        yield found.ok()


@pytest.mark.parametrize("role", ["anonymous", "read", "order"])
def test_nothing_generated_from_the_document_surprises(
    transactional_db: None, acme: Any, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One check hands the options of a network's client to the client of an application.
    sent = werkzeug.test.Client.open
    monkeypatch.setattr(
        werkzeug.test.Client,
        "open",
        lambda client, *a, **options: sent(client, *a, **{k: v for k, v in options.items() if k not in OF_A_NETWORK}),
    )
    everything = api_scene.build(acme)
    make_ssh_key(acme)
    make_endpoint(acme)
    make_search(acme)
    make_own_model(acme)
    make_order(acme, Machine.objects.get(pk=12))
    key = {"anonymous": None, "read": make_api_key(acme, "read"), "order": everything}[role]
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(run(key, EXAMPLES))
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    statuses, problems = found[0]
    print(role, {name: dict(count) for name, count in statuses.items()})
    assert not problems, "\n".join(problems)
    assert not [name for name, count in statuses.items() if any(status >= 500 for status in count)]
    allowed = MAY[role]
    reached = {name for name in allowed if any(200 <= status < 300 for status in statuses[name])}
    assert len(reached) >= 0.95 * len(allowed), sorted(allowed - reached)


DEEP = "[" * 10_000 + "]" * 10_000
ODD = ["\0", "a\0b", "\ud800", 2**63, -(2**63) - 1, 10**40, float("nan"), float("inf"), {}, [], [[]], True, "", " " * 3]
RAW = [
    "1e400",
    "-1e400",
    "0.1",
    "1" + "0" * 5000,
    "NaN",
    DEEP,
    '{"a":1,"a":2}',
    '"\\ud800"',
    '"\\u0000"',
    "9" * 40 + ".5",
]


@pytest.mark.parametrize(
    "operation",
    ["size", "recommend", "read_model", "calculate", "calculate_stages", "quote", "plan", "order", *api_scene.MADE],
)
def test_odd_values_anywhere_in_a_body_are_refused_or_answered(db: None, acme: Any, operation: str) -> None:
    """NUL, half characters, numbers beyond every column, floats, and JSON that is nested or repeated."""
    key = api_scene.build(acme)
    known = {"order": ("orders", api_scene.ORDER), **api_scene.MADE}
    path, body = known.get(operation) or api_scene.READS[operation][1:]
    places = list(_places(body))
    assert len(places) >= 2
    for place in places:
        for odd in ODD:
            _check(call("POST", path, key, json.dumps(_put(body, place, odd)), **{"Idempotency-Key": "odd"}))
        for raw in RAW:
            text = json.dumps(_put(body, place, "@here@")).replace('"@here@"', raw)
            _check(call("POST", path, key, text, **{"Idempotency-Key": "odd"}))


def test_odd_values_in_addresses_and_headers_are_refused_or_answered(db: None, acme: Any) -> None:
    key = api_scene.build(acme)
    lists = ["gpus", "machines", "options", "models", "orders", "members", "audit", "ssh-keys", "webhooks",
             "saved-searches", "own-models", f"webhooks/{make_endpoint(acme).pk}/deliveries"]  # fmt: skip
    names = {"machines": ("gpu", "gpu_count", "max_usd", "min_memory_gib", "term_days", "countries", "tier", "sort"),
             "orders": ("state", "machine", "created_from", "created_before"), "models": ("kind",)}  # fmt: skip
    odd = ["%00", "a%00b", "%ED%A0%80", str(2**63), "1" * 40, "1e400", "NaN", "-1", "%FF", "٣", "x" * 5000, ""]
    for path in lists:
        for name in (*names.get(path, ()), "cursor", "limit", "%00"):
            for value in odd:
                _check(call("GET", f"{path}?{name}={value}", key))
    for value in odd:
        for path in (f"machines/{value}", f"gpus/{value}", f"models/{value}", f"options/{value}", f"orders/{value}",
                     f"orders/{value}/allocations/{value}/stop", f"ssh-keys/{value}", f"webhooks/{value}",
                     f"webhooks/{value}/secret", f"webhooks/{value}/deliveries/{value}/replay",
                     f"saved-searches/{value}", f"own-models/{value}"):  # fmt: skip
            for method in ("GET", "POST", "DELETE"):
                _check(call(method, path, key))
    for value in ("\0", "a\0", "é", "x" * 256, "\ud83d".encode("utf-8", "replace").decode("latin-1"), " "):
        _check(call("POST", "orders", key, api_scene.ORDER, **{"Idempotency-Key": value}))


def _check(response: Any) -> None:
    assert response.status_code < 500, (response.status_code, response.content[:500])
    if response.status_code >= 400:
        assert_problem(response, response.status_code, response.json()["code"])


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in items:
        yield (*at, name)
        yield from _places(one, (*at, name))


def _put(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    copied = json.loads(json.dumps(value))
    inner = copied
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = odd
    return copied
