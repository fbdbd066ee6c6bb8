"""A repeat gets the first answer's bytes, whatever the order named has been changed or deleted since."""

from decimal import Decimal

import pytest

from catalog.models import Machine, Option
from rentals.models import Order, OwnModel
from sizing.models import AiModel
from tests.factories import make_ai_model, make_api_key, make_option, make_own_model
from tests.rentals.calls import assert_problem, order, order_body

CATALOG = {"task": "run", "model": "llama-3.1-8b", "precision_bits": 16, "context": 4096, "requests": 1}
OWN = CATALOG | {"model": "own:my-llama"}


@pytest.fixture
def key(acme):
    return make_api_key(acme)


def assert_repeats(key, body, first):
    again = order(key, body)
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert Order.objects.count() == 1


def deleted():
    AiModel.objects.all().delete()


def of_a_shorter_context():
    AiModel.objects.update(max_context=1024)


@pytest.mark.parametrize("change", [deleted, of_a_shorter_context])
def test_the_models_of_the_catalog_may_go_or_change(key, shop, change):
    make_ai_model()
    body = order_body(shop, workload=CATALOG)
    first = order(key, body)
    assert first.status_code == 201
    change()
    assert_repeats(key, body, first)


def test_a_model_of_ones_own_may_be_deleted(acme, key, shop):
    make_own_model(acme)
    body = order_body(shop, workload=OWN)
    first = order(key, body)
    assert first.status_code == 201
    OwnModel.objects.all().delete()
    assert_repeats(key, body, first)


def test_machine_and_option_may_be_withdrawn_repriced_or_deleted(key, shop):
    option = make_option()
    body = order_body(shop, "120.50", options=[{"option": option.slug, "quantity": 1}])
    first = order(key, body)
    assert first.status_code == 201
    Option.objects.update(listed=False, price_per_lot_day_usd=Decimal("9.00"))
    Machine.objects.update(listed=False, price_7_days_usd=Decimal("1.00"))
    assert_repeats(key, body, first)
    Option.objects.all().delete()
    Machine.objects.all().delete()
    assert_repeats(key, body, first)


def test_another_body_of_a_model_that_is_gone_is_no_repeat(key, shop):
    make_ai_model()
    order(key, order_body(shop, workload=CATALOG))
    AiModel.objects.all().delete()
    other = order_body(shop, workload=CATALOG | {"context": 8192})
    assert_problem(order(key, other), 400, "invalid")
    assert_problem(order(key, order_body(shop, lots=2, workload=None)), 422, "idempotency_mismatch")


def test_another_organizations_key_and_body_are_answered_as_new(key, globex, shop):
    make_ai_model()
    body = order_body(shop, workload=CATALOG)
    assert order(key, body).status_code == 201
    AiModel.objects.all().delete()
    assert_problem(order(make_api_key(globex), body), 400, "invalid")


def test_a_revoked_key_is_told_nothing(key, shop, now):
    make_ai_model()
    body = order_body(shop, workload=CATALOG)
    assert order(key, body).status_code == 201
    AiModel.objects.all().delete()
    type(key).objects.filter(pk=key.pk).update(revoked_at=now)
    assert_problem(order(key, body), 401, "unauthenticated")


def test_the_page_leads_to_the_order_that_was_placed(client, acme, shop):
    make_ai_model()
    client.force_login(acme.owner)
    form = {"machine": shop.pk, "term_days": "7", "lots": "1", "environment": "vllm", "expected_total_usd": "110.00",
            "idempotency_key": "of-the-page", "csrfmiddlewaretoken": "one", **CATALOG}  # fmt: skip
    review = "/o/acme/orders/review/"
    first = client.post(review, form)
    assert first.status_code == 302
    AiModel.objects.all().delete()
    again = client.post(review, form | {"csrfmiddlewaretoken": "another"})
    assert (again.status_code, again.url) == (302, first.url)
    assert "already placed" in client.get(again.url).content.decode()
    assert client.post(review, form | {"lots": "2"}).status_code == 400
    assert Order.objects.count() == 1
