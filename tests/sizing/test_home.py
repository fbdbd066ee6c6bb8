"""The landing page: a worked answer at once, computed and not written."""

import html
from decimal import Decimal

from catalog.models import Machine
from tests import factories


def test_the_landing_page_has_a_worked_answer_and_the_way_into_the_wizard(client, db):
    factories.make_ai_model()
    for number, price in enumerate(["110.00", "120.00", "130.00", "140.00"]):
        factories.make_machine(name=f"Machine of {number}", price_7_days_usd=Decimal(price))
    text = html.unescape(client.get("/").content.decode())
    for words in ["14.96", "0.50", "3.09", "1.00", "19.55", "20 % of 15.46", "$110.00", ">Launch by workload</a>"]:
        assert words in text
    assert "Machine of 2" in text
    assert "Machine of 3" not in text


def test_the_worked_answer_follows_the_catalog(client, db):
    factories.make_ai_model()
    factories.make_machine(price_7_days_usd=Decimal("99.00"))
    assert b"$99.00" in client.get("/").content
    Machine.objects.update(online=False)
    response = client.get("/")
    assert response.status_code == 200
    assert b"$99.00" not in response.content


def test_an_empty_catalog_still_has_a_landing_page(client, db):
    response = client.get("/")
    assert response.status_code == 200
    assert b"Launch by workload" in response.content
