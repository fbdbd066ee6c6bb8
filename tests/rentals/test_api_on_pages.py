"""“Do this with the API”: the command on a page is the very request of that page, and it is answered."""

import html
import re
import shlex
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_ai_model, make_api_key, make_machine, make_order
from tests.rentals.calls import call

QUERY = "task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"
CALCULATOR = "parameters=7&parameter_unit=billions&bits=16&purpose=inference"
STAGES = "stage_1_name=Draw&stage_1_weights_gib=1&stage_1_working_memory_gib=2&stage_1_load=kept"


def commands(page: str) -> list[str]:
    codes = re.findall(r"<code id=[^>]*>(.*?)</code>", page, re.S)
    text = "\n".join(html.unescape(code) for code in codes if "curl " in code).replace("\\\n", " ")
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
    return call(method, url.removeprefix("http://testserver"), None, body, **headers)


@pytest.mark.parametrize("name", ["machine", "result", "organization", "calculator", "stages", "review", "receipt"])
def test_the_command_on_the_page_is_answered(acme: Any, name: str) -> None:
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
    }
    client = Client()
    client.force_login(acme.owner)
    page = client.get(addresses[name], follow=True).content.decode()
    assert "Do this with the API" in page
    found = commands(page)
    assert found
    assert ("Bearer" in found[0]) == (name in ("organization", "review", "receipt"))
    for command in found:
        answer = send(command, key)
        assert answer.status_code in (200, 201), (command, answer.content)
