"""Page, API and command answer the same question with the same figures, in the same order, codes and words."""

import html
import io
import json
import re
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from django.core.management import call_command
from django.test import Client

from rentals.models import OrganizationPolicy
from sizing.management.question_options import OPTIONS
from tests.factories import make_api_key, make_machine, make_own_model
from tests.rentals.calls import post
from tests.sizing.seeded import seed

QUESTIONS: dict[str, dict[str, Any]] = {
    "run": {"task": "run", "model": "llama-3.1-8b", "precision_bits": 8, "context": 4096, "requests": 4},
    "a split": {"task": "run", "model": "llama-3.1-70b", "precision_bits": 4, "context": 8192, "requests": 1},
    "with a reserve": {
        "task": "run", "model": "llama-3.1-8b", "precision_bits": 16, "context": 32768, "requests": 1,
        "reserve_gib": "1.50", "reserve_reason": "a second process",
    },
    "speech": {"task": "run", "model": "whisper-large-v3", "precision_bits": 16, "streams": 4},
    "fine-tuning": {
        "task": "fine_tune", "model": "llama-3.1-8b", "precision_bits": 4, "sequence_length": 2048, "batch_size": 1,
        "rank": 16, "target_modules": ["q", "v"], "method": "lora",
    },
    "images": {"task": "image", "model": "flux.1-dev"},
    "notebook": {"task": "notebook", "gpu_memory_gb": "24"},
}  # fmt: skip
PREFERENCES = {"term_days": 7, "lots": 1, "tier": "secure", "max_hourly_usd": "0.70", "budget_usd": "300.00"}


@pytest.fixture
def offers(db: None) -> None:
    seed("llama-3.1-8b", "llama-3.1-70b", "whisper-large-v3", "flux.1-dev")
    for name, week, gpus, fields in (
        ("Two cards", "105.00", 2, {}), ("One card", "110.00", 1, {}), ("Dear", "400.00", 1, {}),
        ("At home", "60.00", 1, {"tier": "community"}), ("Small", "20.00", 1, {"gpu_memory_bytes": 8 * 2**30}),
        ("Large", "90.00", 1, {"gpu_memory_bytes": 48 * 2**30, "memory_source": "datasheet"}),
    ):  # fmt: skip
        make_machine(name=name, price_7_days_usd=Decimal(week), gpu_count=gpus, **fields)


def page_of(workload: dict[str, Any], address: str = "/launch/result/", client: Client | None = None) -> str:
    query = urlencode({**workload, **PREFERENCES}, doseq=True)
    response = (client or Client()).get(f"{address}?{query}", follow=True)
    assert response.status_code == 200
    return response.content.decode()


def plain(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def command(name: str, question: dict[str, Any], *more: str) -> str:
    options = [f"{OPTIONS[name]}={','.join(value) if isinstance(value, list) else value}"
               for name, value in question.items()]  # fmt: skip
    out = io.StringIO()
    call_command(name, *options, *more, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_memory_is_the_same_everywhere(offers: None, name: str) -> None:
    workload = QUESTIONS[name]
    memory = post("sizing", None, {"workload": workload}).json()
    assert json.loads(command("size", workload, "--json")) == memory
    assert post("recommendations", None, {"workload": workload}).json()["memory"] == memory
    page, printed = plain(page_of(workload)), " ".join(command("size", workload).split())
    for line in memory["lines"]:
        for text in (line["label"], line["formula"], f"{Decimal(line['gib']):,}"):
            assert text in page, text
            assert text in printed, text
    total = f"{Decimal(memory['total_gib']):,} GiB"
    assert total in page
    assert total in printed
    for assumption in memory["assumptions"]:
        assert " ".join(assumption.split()) in printed


@pytest.mark.parametrize("name", QUESTIONS)
def test_machines_reasons_and_fingerprint_are_the_same_everywhere(offers: None, name: str) -> None:
    workload = QUESTIONS[name]
    answer = post("recommendations", None, {"workload": workload, "preferences": PREFERENCES}).json()
    raw = page_of(workload)
    page = plain(raw)
    asked = {**workload, **PREFERENCES}
    assert json.loads(command("recommend", asked, "--json")) == answer
    printed = " ".join(command("recommend", asked).split())
    assert answer["html_url"] in printed
    # It is made of the whole question, the engine's version and every machine: one digit differs and so does it.
    assert answer["fingerprint"] in page
    assert answer["fingerprint"] in printed
    ids = [one["machine"]["id"] for one in answer["recommended"] + answer["alternatives"]["machines"]]
    shown = [int(number) for number in re.findall(r'href="/catalog/machines/(\d+)/', raw)]
    assert [number for number in dict.fromkeys(shown) if number in ids] == ids
    assert [int(number) for number in re.findall(r", machine ([0-9]+)\): ", printed)] == ids
    texts = [one["text"] for name in ("constraints", "limits", "not_considered", "changes") for one in answer[name]]
    for one in answer["recommended"] + answer["alternatives"]["machines"]:
        confidence, covers = one["confidence"], one["budget_covers"]
        sentences = (*one["limits"], *confidence["reasons"], *one.get("misses", []), *([covers] if covers else []))
        texts += [one["machine"]["name"], one["package_usd"], one["why_it_fits"], *(each["text"] for each in sentences)]
    for text in texts:
        assert " ".join(text.split()) in page, text
        assert " ".join(text.split()) in printed, text
    for line in answer["memory"]["lines"]:
        assert line["formula"] in printed


def test_with_a_key_it_is_the_organization_s_own_page(offers: None, acme: Any, now: Any) -> None:
    own = make_own_model(acme)
    OrganizationPolicy.objects.create(organization=acme, max_order_usd=Decimal("108"), changed_at=now)
    client = Client()
    client.force_login(acme.owner)
    for workload in (QUESTIONS["run"], {**QUESTIONS["run"], "model": f"own:{own.slug}"}):
        answer = post("recommendations", make_api_key(acme), {"workload": workload, "preferences": PREFERENCES}).json()
        assert answer["fingerprint"] in plain(page_of(workload, "/o/acme/launch/result/", client))
        assert answer["not_considered"][0]["code"] == "outside_policy"
        assert client.get(answer["html_url"].removeprefix("http://testserver")).status_code == 200


WRONG = {
    "context above the maximum": {**QUESTIONS["run"], "context": 200_000},
    "no such model": {**QUESTIONS["run"], "model": "llama-3.1-8c"},
    "another task's field": {**QUESTIONS["images"], "context": 4096},
    "a reserve without a reason": {**QUESTIONS["run"], "reserve_gib": "1"},
    "full fine-tuning": {**QUESTIONS["fine-tuning"], "method": "full"},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_refusal_has_the_same_words_everywhere(offers: None, name: str) -> None:
    from django.core.management import CommandError

    errors = post("sizing", None, {"workload": WRONG[name]}).json()["errors"]
    assert errors
    query = urlencode({**WRONG[name], **PREFERENCES}, doseq=True)
    page = plain(Client().get(f"/launch/result/?{query}").content.decode())
    for spoken in ("size", "recommend"):
        with pytest.raises(CommandError) as refused:
            command(spoken, WRONG[name])
        for error in errors:
            assert error["detail"] in str(refused.value)
    for error in errors:
        assert " ".join(error["detail"].split()) in page


@pytest.mark.parametrize(
    "wish", [{"lots": 0}, {"term_days": 5}, {"countries": ["XX"]}, {"tier": "silver"}, {"budget_usd": "0.001"}]
)
def test_a_wish_that_is_none_is_refused_in_the_same_words(offers: None, wish: dict[str, Any]) -> None:
    from django.core.management import CommandError

    asked = {**QUESTIONS["run"], **wish}
    errors = post("recommendations", None, {"workload": QUESTIONS["run"], "preferences": wish}).json()["errors"]
    with pytest.raises(CommandError) as refused:
        command("recommend", asked)
    page = plain(Client().get(f"/launch/result/?{urlencode(asked, doseq=True)}").content.decode())
    for error in errors:
        assert error["detail"] in str(refused.value)
        assert OPTIONS[error["field"].rpartition(".")[2].partition("[")[0]] in str(refused.value)
        assert " ".join(error["detail"].split()) in page


PLANS: dict[str, dict[str, Any]] = {
    "days": {"days": 45},
    "a day": {"until": "2027-01-15"},
    "a budget": {"budget_usd": "600.00"},
    "more lots than are free": {"days": 30, "lots": 5},
}


@pytest.mark.parametrize("name", PLANS)
def test_the_planner_says_the_same_on_its_page_and_over_the_api(acme: Any, name: str) -> None:
    machine = make_machine(
        name="North 1", lots=2, price_3_days_usd=Decimal("47.14"), price_7_days_usd=Decimal("110.00"),
        price_30_days_usd=Decimal("471.43"),
    )  # fmt: skip
    asked = {"machine": machine.pk, **PLANS[name]}
    with time_machine.travel("2026-12-01T09:30:00+00:00", tick=False):
        key = make_api_key(acme)
        planned = post("planner", key, asked).json()
        client = Client()
        client.force_login(acme.owner)
        page = plain(client.get(f"/o/acme/planner/?{urlencode(asked)}").content.decode())
        assert planned["html_url"].removeprefix("http://testserver").startswith("/o/acme/planner/?")
        same = plain(client.get(planned["html_url"].removeprefix("http://testserver")).content.decode())
        wrong = {"machine": machine.pk, "budget_usd": "1.00"}
        refused = post("planner", key, wrong).json()["errors"]
        refusal = plain(client.get(f"/o/acme/planner/?{urlencode(wrong)}").content.decode())
    for term in planned["terms"]:
        price, amount = Decimal(term["price_usd"]), Decimal(term["amount_usd"])
        assert f"{term['term_days']} days {term['orders']} ${price:,} ${amount:,}" in page
    texts = [f"${Decimal(planned['total_usd']):,}", f"{planned['days']} days of {planned['lots']} lot"]
    texts += planned["notes"]
    texts += [planned["longer_text"]] if planned["longer_text"] else [f"${Decimal(planned['left_usd']):,}"]
    texts += [planned["fewest"]["text"]] if planned["fewest"] else []
    for shown in (page, same):
        for text in texts:
            assert text in shown, text
    assert [error["detail"] in refusal for error in refused] == [True]
