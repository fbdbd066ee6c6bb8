"""From Launch to a receipt: the review page, its confirmation, and every way it can be refused."""

import re
from decimal import Decimal
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest

from catalog.models import Machine
from rentals.models import Order
from tests.factories import PASSWORD, make_ai_model, make_machine, make_member, make_option, make_organization

REVIEW = "/o/acme/orders/review/"


@pytest.fixture
def shop(db):
    return make_machine(name="RTX 4090 × 1, Frankfurt", price_7_days_usd=Decimal("110.00"), lots=2)


@pytest.fixture
def client(acme, client):
    client.force_login(acme.owner)
    return client


def page(client, machine, **query):
    response = client.get(REVIEW, {"machine": machine.pk, **query})
    assert response.status_code == 200
    return response.content.decode()


def fields(html: str) -> dict[str, list[str]]:
    """What a browser would send for the page's form, its buttons apart."""
    form = html[html.index('<form method="post" action="/o/acme/orders/review/"') :].partition("</form>")[0]
    found: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", form):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        ticked = attributes.get("type") not in ("radio", "checkbox") or re.search(r"\bchecked\b", tag)
        if ticked and "name" in attributes:
            found.setdefault(attributes["name"], []).append(unescape(attributes.get("value", "")))
    for name, body in re.findall(r'<select[^>]*name="(\w+)"[^>]*>(.*?)</select>', form, re.S):
        chosen = re.search(r'<option value="([^"]*)" selected', body)
        found.setdefault(name, []).append(unescape(chosen[1]) if chosen else "")
    for name, body in re.findall(r'<textarea[^>]*name="(\w+)"[^>]*>(.*?)</textarea>', form, re.S):
        found.setdefault(name, []).append(unescape(body.strip()))
    found.pop("csrfmiddlewaretoken", None)
    return found


def confirm(client, form, **changes):
    return client.post(REVIEW, {**form, "confirm": "1", **changes})


def test_launch_leads_to_the_only_organizations_review_with_the_choices_kept(client, shop):
    response = client.get("/orders/review/", {"machine": shop.pk, "term_days": 7, "lots": 1})
    assert response.status_code == 302
    assert response.url == f"{REVIEW}?machine={shop.pk}&term_days=7&lots=1"


def test_who_has_several_organizations_chooses_one(client, acme, shop):
    make_organization("initech", owner=acme.owner)
    html = client.get("/orders/review/", {"machine": shop.pk}).content.decode()
    for slug in ("acme", "initech"):
        assert f'href="/o/{slug}/orders/review/?machine={shop.pk}"' in html
    assert "/o/initech/orders/review/?machine=" in page(client, shop)


def test_signing_in_on_the_way_keeps_the_choice(client, acme, shop):
    client.logout()
    response = client.get("/orders/review/", {"machine": shop.pk, "lots": 2})
    assert response.status_code == 302
    onward = parse_qs(urlsplit(response.url).query)["next"][0]
    signed_in = client.post(response.url, {"login": acme.owner.email, "password": PASSWORD, "next": onward})
    assert signed_in.url == f"/orders/review/?machine={shop.pk}&lots=2"


def test_a_session_that_ended_before_the_confirmation_keeps_the_choices(client, shop):
    form = fields(page(client, shop, lots=2))
    client.logout()
    response = confirm(client, form)
    assert parse_qs(urlsplit(response.url).query)["next"][0].startswith(
        f"{REVIEW}?machine={shop.pk}&term_days=7&lots=2"
    )
    assert not Order.objects.exists()


def test_everything_is_on_the_page_before_the_button(client, shop):
    make_option("storage-500")
    html = page(client, shop, lots=2, option="storage-500", environment="vllm")
    for words in (
        "RTX 4090 × 1, Frankfurt",
        "24.00 GiB counted",
        "Secure",
        "Germany",
        "2 lots × 1 card per lot (2 cards), 7 days",
        "Ends exactly 7 × 24 h later",
        "preparation preference, not a guarantee",
        "$110.00",
        "$220.00 + $21.00",
        "$0.6548 per lot and hour",
        "Confirm order – $241.00",
        "Stopping does not pause the paid period.",
        "The total is complete; nothing is added.",
        "Nothing is reserved until you confirm.",
    ):
        assert words in html, words
    assert html.index('name="update"') < html.index('name="confirm"'), "Enter must update, never order"


def test_each_page_has_a_key_of_its_own(client, shop):
    first, second = fields(page(client, shop)), fields(page(client, shop))
    assert first["idempotency_key"] != second["idempotency_key"]


def test_confirming_leads_to_the_receipt(client, shop):
    response = confirm(client, fields(page(client, shop)))
    order = Order.objects.get()
    assert response.url == f"/o/acme/orders/{order.pk}/"
    assert "The order is placed." in client.get(response.url).content.decode()


def test_update_shows_the_new_total_without_ordering(client, shop):
    make_option("storage-500")
    form = fields(page(client, shop, model="", context=""))
    response = client.post(REVIEW, {**form, "lots": "2", "term_days": "30", "option": "storage-500:2", "update": "1"})
    assert response.status_code == 302
    html = client.get(response.url).content.decode()
    machine = Machine.objects.get(pk=shop.pk)
    assert f"Confirm order – ${machine.price_30_days_usd * 2 + 180:,}" in html
    assert not Order.objects.exists()


def test_a_second_submit_leads_to_the_same_order(client, shop):
    form = fields(page(client, shop))
    first, second = confirm(client, form), confirm(client, form)
    order = Order.objects.get()
    assert first.url == second.url
    html = client.get(second.url).content.decode()
    assert f"This order was already placed at {order.starts_at:%H:%M:%S} UTC." in html


def test_a_second_submit_after_it_sold_out_and_went_away_leads_to_the_same_order(client, shop):
    form = fields(page(client, shop, lots=2))
    first = confirm(client, form)
    Machine.objects.all().delete()
    assert confirm(client, form).url == first.url


def test_the_same_page_with_other_data_names_the_fields_that_differ(client, shop):
    form = fields(page(client, shop))
    confirm(client, form)
    response = confirm(client, form, environment="pytorch", notes="CUDA 12")
    html = response.content.decode()
    order = Order.objects.get()
    assert response.status_code == 422
    assert ">Requested environment</th>" in html
    assert ">vLLM</td>" in html
    assert ">PyTorch</td>" in html
    assert ">Notes for the environment</th>" in html
    assert "CUDA 12" in html
    assert "environment.preset" not in html
    assert f'href="/o/acme/orders/{order.pk}/"' in html
    assert f'href="{REVIEW}?machine={shop.pk}' in html


def test_a_changed_price_shows_both_and_asks_again(client, shop):
    form = fields(page(client, shop))
    Machine.objects.update(price_7_days_usd=Decimal("120.00"))
    response = confirm(client, form)
    html = response.content.decode()
    assert response.status_code == 409
    assert "$110.00" in html
    assert "Confirm order – $120.00" in html
    assert not Order.objects.exists()
    assert confirm(client, fields(html)).status_code == 302
    assert Order.objects.get().total_usd == Decimal("120.00")


def test_lots_changed_without_update_never_order_an_unseen_total(client, shop):
    response = confirm(client, fields(page(client, shop)), lots="2")
    assert response.status_code == 409
    assert "Confirm order – $220.00" in response.content.decode()


def test_sold_out_meanwhile_names_the_machine_and_what_is_free(client, shop):
    form = fields(page(client, shop, lots=2))
    Machine.objects.update(free_lots=1)
    response = confirm(client, form)
    html = response.content.decode()
    assert response.status_code == 409
    assert shop.name in html
    assert "2 lots asked, 1 free." in html
    assert "lots=1" in html


@pytest.mark.parametrize("gone", [{"listed": False}, {"online": False}])
def test_a_machine_withdrawn_meanwhile_is_named(client, shop, gone):
    form = fields(page(client, shop))
    Machine.objects.update(**gone)
    response = confirm(client, form)
    assert response.status_code == 409
    assert "is not offered at the moment" in response.content.decode()


def test_a_machine_deleted_meanwhile_leads_to_the_catalog(client, shop):
    form = fields(page(client, shop))
    shop.delete()
    response = confirm(client, form)
    assert response.status_code == 409
    assert 'href="/catalog/"' in response.content.decode()


@pytest.mark.parametrize("fields_", [{"free_lots": 0}, {"online": False}, {"listed": False}])
def test_the_page_of_what_cannot_be_had_offers_no_button(client, shop, fields_):
    Machine.objects.update(**fields_)
    html = page(client, shop)
    assert "Confirm order" not in html
    assert "It cannot be ordered like this" in html


def test_community_needs_the_tick(client):
    machine = make_machine(tier="community")
    form = fields(page(client, machine))
    refused = confirm(client, form)
    assert refused.status_code == 400
    assert "can read the session" in refused.content.decode()
    assert not Order.objects.exists()
    again = fields(refused.content.decode())
    assert again["idempotency_key"] == form["idempotency_key"]
    assert confirm(client, again, community_acknowledged="on").status_code == 302
    assert Order.objects.get().community_acknowledged


def test_a_viewer_sees_the_page_without_the_button_and_cannot_post(client, acme, shop):
    form = fields(page(client, shop))
    client.force_login(make_member(acme, "viewer"))
    assert "Confirm order" not in page(client, shop)
    response = confirm(client, form)
    assert response.status_code == 403
    assert "Ask an owner or admin" in response.content.decode()
    assert not Order.objects.exists()


HUGE = "9" * 400
BAD = [
    ("machine", ["", "0", "-1", "1.5", "abc", HUGE, "9223372036854775807", "\x00", "١", "1 OR 1=1"]),
    ("term_days", ["", "0", "1", "8", "14", "29", "31", "-7", "7.5", "7 days", "true", "null", "1e1", HUGE, "\x00"]),
    ("term_days", ["3"]),
    ("lots", ["", "0", "-1", "1.5", "two", HUGE, "10001", "\x00", "1e3", "NaN"]),
    ("option", ["nothing", "storage-500:0", "storage-500:5", "storage-500:-1", "storage-500:x", "storage-500:" + HUGE,
                "\x00", ":", "x" * 5000]),
    ("environment", ["", "windows", "\x00", HUGE]),
    ("notes", ["x" * 501, "a\x00b"]),
    ("model", ["nothing", "\x00", HUGE]),
    ("context", ["0", "-1", HUGE, "abc", "\x00"]),
    ("reserve_gib", ["-1", "NaN", "1e9", HUGE, "\x00"]),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD for value in values])
def test_bad_input_gets_a_sentence_and_orders_nothing(client, shop, field, value):
    make_option("storage-500")
    query = {"machine": str(shop.pk), field: value}
    shown = client.get(REVIEW, query)
    assert shown.status_code == 200
    assert "There is a problem" in shown.content.decode()
    assert "Confirm order" not in shown.content.decode()
    posted = client.post(
        REVIEW,
        {
            "machine": str(shop.pk), "term_days": "7", "lots": "1", "environment": "vllm", "notes": "",
            "expected_total_usd": "110.00", "idempotency_key": "k", field: value,
        },
    )  # fmt: skip
    assert posted.status_code in (400, 409)
    assert not Order.objects.exists()


@pytest.mark.parametrize(
    "value", ["", "0", "-110.00", "110", "1e2", "NaN", "Infinity", HUGE, "\x00", "110,00", "110.001", "0.01"]
)
def test_a_tampered_total_orders_nothing(client, shop, value):
    response = confirm(client, fields(page(client, shop)), expected_total_usd=value)
    assert response.status_code in (400, 409)
    assert not Order.objects.exists()


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb", "a\x00", "🔑"])
def test_a_tampered_key_gets_a_new_one_and_orders_nothing(client, shop, key):
    response = confirm(client, fields(page(client, shop)), idempotency_key=key)
    assert response.status_code == 400
    assert not Order.objects.exists()
    assert confirm(client, fields(response.content.decode())).status_code == 302


def test_an_unknown_name_in_the_address_is_told(client, shop):
    response = client.get(REVIEW, {"machine": shop.pk, "colour": "red"})
    assert response.status_code == 400
    assert "colour" in response.content.decode()


def test_without_a_machine_the_page_says_what_to_do(client):
    html = client.get(REVIEW).content.decode()
    assert "Without a machine there is nothing to review." in html
    assert 'href="/catalog/"' in html


# --- The question that came along ---------------------------------------------------------------------------------


def test_launch_of_the_answer_carries_the_whole_question(client, shop):
    make_ai_model()
    query = "task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=secure"
    query += "&countries=EU&max_hourly_usd=2.00&budget_usd=300.00"
    html = client.get(f"/o/acme/launch/result/?{query}").content.decode()
    link = unescape(re.search(rf'href="({REVIEW}[^"]*)"', html)[1])
    sent = parse_qs(urlsplit(link).query)
    assert (sent["countries"], sent["tier"]) == (["EU"], ["secure"])
    assert (sent["max_hourly_usd"], sent["budget_usd"]) == (["2.00"], ["300.00"])
    carried = fields(client.get(link).content.decode())
    assert (carried["countries"], carried["budget_usd"]) == (["EU"], ["300.00"])


@pytest.mark.parametrize("place", ["US", None])
def test_a_machine_outside_the_chosen_countries_is_refused_and_not_named(client, shop, place):
    Machine.objects.update(country=place)
    query = {"machine": shop.pk, "countries": ["EU", "NO"]}
    shown = client.get(REVIEW, query)
    posted = client.post(
        REVIEW, {**query, "environment": "vllm", "expected_total_usd": "110.00", "idempotency_key": "k"}
    )
    for response in (shown, posted):
        html = response.content.decode()
        assert response.status_code == 409
        assert "not inside the countries you chose" in html
        assert "Norway" in html
        assert shop.name not in html
        assert "Confirm order" not in html
    assert not Order.objects.exists()
    anywhere = unescape(re.search(r'<a href="([^"]*)">Review it without', shown.content.decode())[1])
    assert "Confirm order" in client.get(anywhere).content.decode()


def test_a_repeat_is_answered_though_the_machine_moved_out_of_the_countries(client, shop):
    form = fields(page(client, shop, countries="DE"))
    first = confirm(client, form)
    Machine.objects.update(country="US")
    assert confirm(client, form).url == first.url


def test_what_was_wished_for_and_is_missed_is_told(client, shop):
    html = page(client, shop, budget_usd="100", max_hourly_usd="0.60", tier="community")
    assert "It misses what you asked for" in html
    assert "+$10.00 over your budget" in html
    assert "+$0.0548 per hour over your maximum" in html
    assert "Secure instead of Community" in html
    assert confirm(client, fields(html)).status_code == 302
    assert "It misses" not in page(client, shop, budget_usd="110", max_hourly_usd="0.66", tier="secure")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget_usd", "lots"), ("budget_usd", "-1"), ("budget_usd", "NaN"), ("budget_usd", "1e3"),
        ("max_hourly_usd", "0"), ("tier", "gold"), ("countries", "Atlantis"), ("countries", "\x00"),
        ("context", "0"), ("model", "nothing"), ("budget_usd", "9" * 400),
    ],
)  # fmt: skip
def test_a_wrong_answer_of_the_question_is_an_error_at_its_field(client, shop, name, value):
    html = page(client, shop, **{name: value})
    assert "Confirm order" not in html
    assert f'href="#id_{name}"' in html
    assert f'id="id_{name}"' in html
    assert f'id="id_{name}_error"' in html


def test_an_error_is_said_once_and_its_label_once(client, shop):
    html = page(client, shop, lots="0", budget_usd="x", option="nothing")
    summary = html[html.index("error-summary-title") :].partition("</div>")[0]
    sentences = re.findall(r"<li>(?:<a[^>]*>)?([^<]*)", summary)
    assert len(sentences) == len(set(sentences)) == 2
    assert "Lots must be 1 or more." in sentences
    assert not re.search(r"(\b\w+\b): \1", summary)
    html = page(client, shop, option="nothing")
    assert "There is no option “nothing”." in unescape(html)


# --- A machine on which it does not fit ---------------------------------------------------------------------------


WORKLOAD = {"task": "run", "model": "llama-3.1-8b", "precision_bits": "16", "context": "131072", "requests": "1"}
SENTENCE = "I order this machine although the workload does not fit it."


def test_what_does_not_fit_needs_its_own_tick_kept_with_the_order(client, shop):
    make_ai_model()
    html = page(client, shop, **WORKLOAD)
    assert SENTENCE in html
    refused = confirm(client, fields(html))
    assert refused.status_code == 400
    assert "Confirm that you order it although it does not" in refused.content.decode()
    assert not Order.objects.exists()
    receipt = client.get(confirm(client, fields(html), misfit_acknowledged="on").url).content.decode()
    assert Order.objects.get().misfit_acknowledged
    assert "ordered although the workload does not fit" in receipt


def test_where_it_fits_there_is_nothing_to_acknowledge(client, shop):
    make_ai_model()
    html = page(client, shop, **{**WORKLOAD, "context": "4096"})
    assert SENTENCE not in html
    confirm(client, fields(html), misfit_acknowledged="on")
    assert not Order.objects.get().misfit_acknowledged


@pytest.mark.parametrize("value", ["0", "false", "no", "off", "1", "true", "ON", " on", "\x00", "x" * 5000])
@pytest.mark.parametrize("name", ["community_acknowledged", "misfit_acknowledged"])
def test_only_the_boxs_own_value_is_a_tick(client, name, value):
    make_ai_model()
    machine = make_machine(tier="community")
    form = fields(page(client, machine, **WORKLOAD))
    ticks = {"community_acknowledged": "on", "misfit_acknowledged": "on", name: value}
    refused = confirm(client, form, **ticks)
    assert refused.status_code == 400
    assert not Order.objects.exists()
    assert name not in fields(refused.content.decode())


def test_an_address_ticks_nothing(client):
    make_ai_model()
    machine = make_machine(tier="community")
    html = page(client, machine, **WORKLOAD, community_acknowledged="on", misfit_acknowledged="on")
    assert "Confirm order" in html
    assert not {"community_acknowledged", "misfit_acknowledged"} & set(fields(html))


def test_options_come_in_the_order_of_their_sizes(client, shop):
    for size in ("2,000", "100", "500"):
        make_option(f"storage-{size.replace(',', '')}", name=f"Storage {size} GB")
    names = re.findall(r"Storage [0-9,]+ GB", page(client, shop))
    assert list(dict.fromkeys(names)) == ["Storage 100 GB", "Storage 500 GB", "Storage 2,000 GB"]


def test_a_viewer_is_told_the_role_before_what_is_missing(client, acme, shop):
    client.force_login(make_member(acme, "viewer"))
    for data in ({}, {"machine": shop.pk}, {"machine": "x", "lots": "-1", "expected_total_usd": "?"}):
        response = client.post(REVIEW, {**data, "confirm": "1"})
        assert response.status_code == 403
    assert "Ask an owner or admin" in response.content.decode() or data["machine"] == "x"


def test_the_page_of_a_used_key_speaks_in_labels_and_units(client, shop):
    make_ai_model()
    make_option("storage-500")
    form = fields(page(client, shop, **{**WORKLOAD, "context": "4096"}))
    confirm(client, form)
    response = confirm(client, form, term_days="30", lots="2", option="storage-500:2", context="8192")
    html = unescape(response.content.decode())
    table = html[html.index("<table") : html.index("</table>")]
    for words in ("Term", "7 days", "30 days", "1 lot", "2 lots", "Storage 500 GB × 2", "Workload: Context",
                  "4,096 tokens", "8,192 tokens", ">none<"):  # fmt: skip
        assert words in table
    for code in ("term_days", "None", "{", "[", "workload.", "True"):
        assert code not in table
