"""Every object of the API has the page that shows it to a person, or is a part of one that has."""

import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from rentals.management.commands.write_openapi import document
from tests import api_scene
from tests.factories import make_ssh_key
from tests.rentals.calls import call, get, order
from tests.sizing.own_files import config

_SCHEMAS = "#/components/schemas/"
# What has no page of its own by its nature, and why.
WITHOUT_A_PAGE = {
    **dict.fromkeys(("Alternatives", "BudgetCovers", "Change", "Confidence", "Constraint", "MachineAlternative", "Miss",
                     "NearestMiss", "NotConsidered", "PrecisionAlternative", "Recommendation"),
                    "a line of an answer, whose page is the answer's; the machine in it has its own"),
    **dict.fromkeys(("MemoryLine", "Split", "MemoryBlock"), "a part of a memory block or of an order's sizing"),
    **dict.fromkeys(("CalculatorCandidate", "CountedEntry", "EnvelopeSum", "Format", "Resident", "Stage", "Step",
                     "StepByStep", "WeightsOnly"), "a line of the calculator's answer"),
    **dict.fromkeys(("FigureOrigin", "ModelPart", "Quantization", "Stored"), "a line of a model that was read"),
    **dict.fromkeys(("Cancellation", "Environment", "Line", "Lot", "LotConnection"), "a part of an order or a quote"),
    **dict.fromkeys(("HourlyPrices", "TermPrices"), "prices of a machine"),
    **dict.fromkeys(("ErrorCode", "FieldErrorCode"), "a row of the list of codes"),
    **dict.fromkeys(("Sentence", "NamedSentence"), "a code and its words"),
    **dict.fromkeys(("CountedTerms", "FewestOrders", "PlannedTerms"), "a part of a plan"),
    "ModelReading": "how the figures of an own model were read",
    "SizedModel": "the model's name as it was, with its published source",
    "Source": "a reference to somebody else's page",
    "Vector": "a row of the vectors",
    "WebhookAttempt": "a line of a delivery",
}  # fmt: skip


def schemas_of(answers: Any, schemas: Any) -> set[str]:
    """The names of all shapes that an answer may have in it."""
    found: set[str] = set()
    open_nodes = [answers]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, dict):
            name = str(node.get("$ref", "")).removeprefix(_SCHEMAS)
            if name in schemas and name not in found:
                found.add(name)
                open_nodes.append(schemas[name])
            open_nodes += node.values()
        elif isinstance(node, list):
            open_nodes += node
    return found


def test_every_shape_of_an_answer_has_a_page_or_a_reason_for_none() -> None:
    made = document()
    schemas = made["components"]["schemas"]
    answers = [
        response["content"]["application/json"]
        for methods in made["paths"].values() for operation in methods.values()
        for response in operation["responses"].values() if "application/json" in response.get("content", {})
    ]  # fmt: skip
    objects = {
        name: "html_url" in schemas[name]["properties"]
        for name in schemas_of(answers, schemas)
        if "properties" in schemas[name] and set(schemas[name]["properties"]) != {"results", "next"}
    }
    assert len(objects) > 50
    for name, has_page in objects.items():
        # Whoever gives a shape a page takes it out of the list, and whoever adds a shape says which of the two it is.
        assert has_page != (name in WITHOUT_A_PAGE), name
        assert not has_page or "html_url" in schemas[name]["required"], name


def pages_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [one for name, inner in value.items() for one in ([inner] if name == "html_url" else pages_in(inner))]
    return [one for inner in value for one in pages_in(inner)] if isinstance(value, list) else []


@pytest.fixture
def key(acme: Any) -> Any:
    made = api_scene.build(acme)
    make_ssh_key(acme)
    assert order(made, api_scene.ORDER).status_code == 201
    return made


def test_every_page_that_an_answer_names_opens(acme: Any, key: Any) -> None:
    owner = Client()
    owner.force_login(acme.owner)
    # Of usage the present month, whatever the clock says: a month to come has no page yet.
    paths = [path.partition("?")[0] for path in api_scene.OF_THE_TENANT.values()]
    asked = [*api_scene.READS.values(), *(("GET", path, None) for path in paths)]
    asked += [("POST", "sizing", {"workload": {"task": "run", "config": json.loads(config())}})]
    opened: set[str] = set()
    for caller in (None, key):
        for method, path, body in asked:
            answer = call(method, path, caller, body)
            if caller is None and answer.status_code == 401:
                continue
            assert answer.status_code == 200, (path, answer.content)
            pages = pages_in(answer.json())
            assert pages, path
            for page in set(pages) - opened:
                site, place = urlsplit(page), page.removeprefix("http://testserver")
                assert site.netloc == "testserver", page
                shown = (owner if caller else Client()).get(place)
                assert shown.status_code == 200, page
                opened.add(page)
    assert len(opened) > 20


def test_an_order_names_its_machine_s_page_and_its_own(key: Any) -> None:
    (placed,) = get("orders", key).json()["results"]
    assert placed["machine"]["html_url"].endswith(f"/catalog/machines/{api_scene.BASKET['machine']}/")
    assert placed["sizing"]["html_url"] == placed["html_url"]
