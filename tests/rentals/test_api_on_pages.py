"""“Do this with the API”: the command on a page is the very request of that page, and it is answered."""

import ast
import html
import json
import os
import re
import shlex
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from catalog.programs import Call, Program
from rentals.models import Order, WebhookEndpoint
from tests.factories import (
    make_ai_model,
    make_api_key,
    make_endpoint,
    make_machine,
    make_order,
    make_own_model,
    make_search,
    make_ssh_key,
    ssh_line,
)
from tests.rentals.calls import call
from tests.sizing.own_files import config

QUERY = "task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"
CALCULATOR = "parameters=7&parameter_unit=billions&bits=16&purpose=inference"
STAGES = "stage_1_name=Draw&stage_1_weights_gib=1&stage_1_working_memory_gib=2&stage_1_load=kept"


def commands(page: str) -> list[str]:
    codes = re.findall(r"<code id=[^>]*>(.*?)</code>", page, re.S)
    text = "\n".join(html.unescape(code) for code in codes).replace("\\\n", " ")
    return [line for line in text.splitlines() if line.startswith("curl ")]


def send(command: str, key: Any) -> Any:
    """The request that the shell would send, the placeholders filled in."""
    words = shlex.split(command)[1:]
    url = next(word for word in words if word.startswith("http://testserver"))
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    body = words[words.index("-d") + 1] if "-d" in words else None
    headers = dict(words[n + 1].split(": ", 1) for n, word in enumerate(words) if word == "-H")
    headers.pop("Content-Type", None)
    if "Authorization" in headers:
        headers["Authorization"] = f"Bearer {key.text}"
    if "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = "from-the-page"
    return call(method, url.removeprefix("http://testserver"), None, filled_in(body), **headers)


FILLED_IN = {
    "<the line of your file that ends in .pub>": ssh_line("of the page"),
    "<your host>": "hooks.example.com",
    '"<the object of your config.json>"': config().decode(),
    # As a program has it.
    "'<the object of your config.json>'": repr(json.loads(config())),
}


def filled_in(text: str | None) -> str | None:
    """What a reader puts in place of what stands in angle brackets."""
    for place, value in FILLED_IN.items() if text else ():
        text = text and text.replace(place, value)
    return text


KEPT = ("planner", "ssh-keys", "webhooks", "webhook", "searches", "own-models", "own-model")
PAGES = ("machine", "result", "organization", "calculator", "stages", "review", "receipt", *KEPT)
# Their answers tell the time, or list what the first of the two programs made.
DIFFER = ("receipt", "planner", "ssh-keys", "webhooks", "webhook", "searches", "own-models")


def pages_of(acme: Any) -> tuple[Any, dict[str, str], dict[str, str]]:
    """A key, and of each page its address and a figure that the answer has as well."""
    make_ai_model()
    key = make_api_key(acme)
    machine = make_machine(price_7_days_usd=Decimal("110.00"), lots=5)
    order = make_order(acme, machine)
    addresses = {
        "machine": f"/catalog/machines/{machine.pk}/",
        "result": f"/launch/result/?{QUERY}",
        "organization": f"/o/acme/launch/result/?{QUERY}",
        "calculator": f"/calculator/?{CALCULATOR}",
        "stages": f"/calculator/stages/?{STAGES}",
        "review": f"/o/acme/orders/review/?machine={machine.pk}&term_days=7&lots=1",
        "receipt": f"/o/acme/orders/{order.pk}/",
        "planner": f"/o/acme/planner/?machine={machine.pk}&lots=1&days=7",
        "ssh-keys": "/o/acme/ssh-keys/",
        "webhooks": "/o/acme/webhooks/",
        "webhook": f"/o/acme/webhooks/{make_endpoint(acme).pk}/",
        "searches": "/o/acme/searches/",
        "own-models": "/o/acme/models/",
        "own-model": f"/o/acme/models/{make_own_model(acme).slug}/",
    }
    make_search(acme)
    fingerprint = make_ssh_key(acme).fingerprint
    figures = {
        "machine": "110.00", "result": "19.55", "organization": "19.55", "calculator": "13.04", "stages": "3.00",
        "review": "110.00", "receipt": "110.00", "planner": "110.00", "ssh-keys": fingerprint,
        "webhooks": "https://example.com/hook", "webhook": "order.placed", "searches": "24 GiB",
        "own-models": "My Llama", "own-model": "My Llama",
    }  # fmt: skip
    return key, addresses, figures


def shown(acme: Any, address: str) -> str:
    client = Client()
    client.force_login(acme.owner)
    page = client.get(address, follow=True).content.decode()
    assert "Do this with the API" in page
    return page


@pytest.mark.parametrize("name", PAGES)
def test_the_command_on_the_page_is_answered(acme: Any, name: str) -> None:
    key, addresses, figures = pages_of(acme)
    page = shown(acme, addresses[name])
    found = commands(page)
    assert found
    assert ("Bearer" in found[0]) == (name in ("organization", "review", "receipt", *KEPT))
    for command in found:
        answer = send(command, key)
        assert answer.status_code in (200, 201, 202), (command, answer.content)
    assert figures[name] in page


@pytest.mark.postgres
def test_command_and_program_run_as_they_stand_and_give_the_page_s_figures(live_server: Any, acme: Any) -> None:
    key, addresses, figures = pages_of(acme)
    for name in PAGES:
        page = shown(acme, addresses[name])
        told = {}
        for language, command in (("curl", ["bash", "-euo", "pipefail", "-c"]), ("python", [sys.executable, "-c"])):
            text = html.unescape(re.findall(rf'<code id="{language}">(.*?)</code>', page, re.S)[0])
            text = text.replace("http://testserver", live_server.url).replace("<your API key>", key.text)
            text = filled_in(text) or ""
            # Of one address there is one endpoint.
            WebhookEndpoint.objects.filter(url__contains="hooks.example.com").delete()
            environment = {"PATH": os.environ["PATH"]}
            ran = subprocess.run([*command, text], capture_output=True, text=True, timeout=60, env=environment)
            assert ran.returncode == 0, (name, ran.stdout, ran.stderr)
            told[language] = ran.stdout.strip().replace("\n", "")
            assert figures[name] in page
            assert figures[name] in told[language]
        # An order is one: both have the same key. Of the receipt the second reads the lot that the first one stopped.
        assert name in DIFFER or told["curl"] == told["python"], name
    assert Order.objects.count() == 2


def test_the_key_of_an_order_is_fresh_on_each_page_and_is_said_to_be_for_it(acme: Any) -> None:
    _, addresses, _ = pages_of(acme)
    pages = [html.unescape(shown(acme, addresses["review"])) for _ in range(2)]
    first, second = (set(re.findall(r"Idempotency-Key\W+([0-9a-f-]{36})", page)) for page in pages)
    assert len(first) == len(second) == 1
    assert first != second
    assert pages[0].count("Reuse this idempotency key only to retry this order") == 2


def test_a_program_is_code_whatever_is_in_the_body() -> None:
    note = 'it\'s "mine"\n\\ é </code> $HOME `id` ' + "long " * 60
    body = {"notes": note, "none": None, "yes": True, "list": [1, {"deep": ["x" * 90, "y" * 90]}]}
    program = Program(Call("http://testserver/api/v1/orders", body, "POST", "A remark."), with_key=True)
    words = shlex.split(program.curl, comments=True)
    assert json.loads(words[words.index("-d") + 1]) == body
    (call,) = [
        node for node in ast.walk(ast.parse(program.python)) if isinstance(node, ast.keyword) and node.arg == "json"
    ]
    assert ast.literal_eval(call.value) == body
    assert max(map(len, program.python.splitlines())) < 130
