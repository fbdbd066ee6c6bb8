"""An organization's policy: who sets it, and that it acts in wizard, review, order, API and admin alike."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from re import search

import pytest

from catalog.models import Machine
from rentals import policies
from rentals.errors import NotPermitted, PolicyViolation, SoldOut
from rentals.models import AuditEvent, Membership, Order, OrganizationPolicy
from tests.factories import (
    make_ai_model,
    make_api_key,
    make_basket,
    make_machine,
    make_member,
    make_order,
    make_user,
    place,
)
from tests.rentals.calls import assert_problem, order, order_body, post

POLICY = "/o/acme/policy/"
PRICE = Decimal("110.00")
OPEN = {
    "tiers": ["secure", "community"],
    "community_acknowledged": True,
    "countries": None,
    "max_order_usd": None,
    "max_month_usd": None,
    "order_role": "member",
}
UNSET = dict(OPEN, tiers=None, community_acknowledged=False)
FORM = {"tiers": ["secure", "community"], "community_acknowledged": "on", "order_role": "member"}


@pytest.fixture
def shop(db):
    return make_machine(name="Frankfurt", price_7_days_usd=PRICE, lots=9)


def set_policy(organization, **rules):
    owner = Membership.objects.get(organization=organization, user=organization.owner)
    return policies.change_policy(owner, OPEN | rules, now=datetime(2026, 11, 30, tzinfo=UTC))


def broken_rule(organization, basket, **fields):
    with pytest.raises(PolicyViolation) as refusal:
        place(organization, basket, **fields)
    assert refusal.value.code == "policy"
    return refusal.value.rule


def test_an_owner_sets_every_rule(client, acme):
    client.force_login(acme.owner)
    assert client.get(POLICY).status_code == 200
    data = {**FORM, "tiers": ["secure"], "countries": "de, EU", "max_order_usd": "500", "max_month_usd": "2000.50"}
    assert client.post(POLICY, data, follow=True).status_code == 200
    policy = OrganizationPolicy.objects.get()
    assert (policy.tiers, policy.countries) == (["secure"], ["EU", "DE"])
    assert (policy.max_order_usd, policy.max_month_usd) == (Decimal("500.00"), Decimal("2000.50"))
    event = AuditEvent.objects.get(action="policy.changed")
    assert event.data["now"]["max_month_usd"] == "2000.50"
    assert event.actor == acme.owner
    client.post(POLICY, data)
    assert AuditEvent.objects.filter(action="policy.changed").count() == 1


@pytest.mark.parametrize(("role", "status"), [("owner", 302), ("admin", 302), ("member", 403), ("viewer", 403)])
def test_owners_and_admins_change_it_and_others_read_it(client, acme, role, status):
    set_policy(acme, max_order_usd=Decimal("77.00"))
    client.force_login(acme.owner if role == "owner" else make_member(acme, role))
    assert "77.00" in client.get(POLICY).content.decode()
    assert client.post(POLICY, FORM).status_code == status
    assert (OrganizationPolicy.objects.get().max_order_usd is None) is (status == 302)


def test_a_role_taken_away_meanwhile_changes_nothing(acme):
    member = make_member(acme, "admin")
    stale = Membership.objects.get(user=member)
    Membership.objects.filter(user=member).update(role="viewer")
    with pytest.raises(NotPermitted):
        policies.change_policy(stale, OPEN, now=datetime.now(UTC))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("tiers", [], "choose at least one"),
        ("tiers", ["gold"], "known tiers"),
        ("countries", "Atlantis", "is not a country code"),
        ("countries", "\x00", "is not a country code"),
        ("max_order_usd", "-1", "0 USD or more"),
        ("max_order_usd", "NaN", "plain digits"),
        ("max_month_usd", "1e9", "plain digits"),
        ("max_month_usd", "9" * 400, "plain digits"),
        ("max_month_usd", "9" * 20, "or less"),
        ("max_order_usd", "1.500", "can be read in two ways: write 1500 or 1.5."),
        ("max_order_usd", "1,500", "can be read in two ways: write 1500 or 1.5."),
        ("max_month_usd", "1.234", "can be read in two ways: write 1234, without the point."),
        ("max_month_usd", "1.500,00", "plain digits"),
        ("order_role", "viewer", "valid choice"),
        ("order_role", "", "required"),
        ("community_acknowledged", "yes", "is no tick"),
    ],
)
def test_bad_input_is_told_at_the_field_and_changes_nothing(client, acme, field, value, words):
    client.force_login(acme.owner)
    response = client.post(POLICY, {**FORM, field: value})
    assert response.status_code == 400
    assert words in unescape(response.content.decode())
    assert not OrganizationPolicy.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("max_order_usd", "500,5", Decimal("500.50")),
        ("max_month_usd", "0", Decimal("0.00")),
        ("countries", "de", ["DE"]),
        ("order_role", "owner", "owner"),
        ("tiers", ["secure"], ["secure"]),
        ("community_acknowledged", "on", True),
    ],
)
def test_one_rule_is_set_alone_and_the_others_stay_as_they_were(client, acme, field, value, stored):
    client.force_login(acme.owner)
    form = {"tiers": ["secure", "community"], "order_role": "member", field: value}
    assert client.post(POLICY, form).status_code == 302
    policy = OrganizationPolicy.objects.get()
    assert getattr(policy, field) == stored
    assert len(policies.RULES) - 1 == sum(getattr(policy, name) == rule for name, rule in UNSET.items())


def test_a_limit_alone_leaves_community_to_whoever_orders(client, acme):
    client.force_login(acme.owner)
    form = {"tiers": ["secure", "community"], "order_role": "member", "max_order_usd": "500"}
    assert client.post(POLICY, form).status_code == 302
    assert make_order(acme, make_machine(tier="community"))


def test_allowing_community_by_a_rule_needs_the_organizations_word(client, acme):
    set_policy(acme, tiers=["secure"], community_acknowledged=False)
    client.force_login(acme.owner)
    form = {"tiers": ["secure", "community"], "order_role": "member", "max_order_usd": "12.34"}
    response = client.post(POLICY, form)
    assert response.status_code == 400
    assert "do not allow Community" in response.text
    assert 'value="12.34"' in response.text
    assert OrganizationPolicy.objects.get().tiers == ["secure"]
    assert client.post(POLICY, form | {"community_acknowledged": "on"}).status_code == 302
    assert OrganizationPolicy.objects.get().tiers == ["secure", "community"]


def test_a_form_opened_before_somebody_elses_change_undoes_nothing(client, acme):
    set_policy(acme)
    client.force_login(acme.owner)
    seen = search(r'name="seen" value="([^"]+)"', client.get(POLICY).text)[1]
    set_policy(acme, max_month_usd=Decimal("700.00"))
    policies_now = OrganizationPolicy.objects.get()
    OrganizationPolicy.objects.update(changed_at=policies_now.changed_at + timedelta(seconds=1))
    mine = {**FORM, "order_role": "admin", "seen": seen}
    response = client.post(POLICY, mine)
    assert response.status_code == 400
    assert "changed after you opened this page" in response.text
    assert "Now stored: $700.00." in response.text
    assert OrganizationPolicy.objects.get().order_role == "member"
    again = search(r'name="seen" value="([^"]+)"', response.text)[1]
    assert client.post(POLICY, mine | {"seen": again}).status_code == 302
    assert OrganizationPolicy.objects.get().order_role == "admin"


def test_a_policy_that_is_sent_twice_is_saved_once(client, acme):
    client.force_login(acme.owner)
    form = {**FORM, "max_order_usd": "9", "seen": ""}
    assert [client.post(POLICY, form).status_code for _ in range(2)] == [302, 302]
    assert AuditEvent.objects.filter(action="policy.changed").count() == 1


def test_without_a_policy_everything_may_be_ordered(acme):
    assert make_order(acme, make_machine(tier="community", country=None))


def test_a_tier_that_is_not_allowed_is_refused(acme, shop):
    set_policy(acme, tiers=["secure"])
    assert broken_rule(acme, make_basket(make_machine(tier="community"))) == "tiers"
    set_policy(acme, tiers=["community"])
    assert broken_rule(acme, make_basket(shop)) == "tiers"


def test_community_needs_the_organizations_own_acknowledgement_too(acme):
    set_policy(acme, community_acknowledged=False)
    assert broken_rule(acme, make_basket(make_machine(tier="community"))) == "community_acknowledged"


@pytest.mark.parametrize(("country", "allowed"), [("DE", True), ("US", True), ("CH", False), (None, False)])
def test_only_allowed_countries(acme, country, allowed):
    set_policy(acme, countries=["EU", "US"])
    basket = make_basket(make_machine(country=country))
    if allowed:
        assert place(acme, basket)
    else:
        assert broken_rule(acme, basket) == "countries"


def test_the_limit_per_order_is_met_to_the_cent(acme, shop):
    set_policy(acme, max_order_usd=Decimal("220.00"))
    assert place(acme, make_basket(shop, lots=2))
    set_policy(acme, max_order_usd=Decimal("219.99"))
    assert broken_rule(acme, make_basket(shop, lots=2)) == "max_order_usd"


def test_the_limit_per_month_counts_placed_orders_of_the_utc_month(acme, globex, shop):
    set_policy(acme, max_month_usd=Decimal("220.00"))
    last = datetime(2026, 11, 30, 23, 59, 59, 999999, tzinfo=UTC)
    place(globex, make_basket(shop), now=last)
    place(acme, make_basket(shop), now=datetime(2026, 11, 1, tzinfo=UTC))
    place(acme, make_basket(shop), now=last)
    assert broken_rule(acme, make_basket(shop), now=last) == "max_month_usd"
    place(acme, make_basket(shop), now=last + timedelta(microseconds=1))
    assert policies.spent_in_month(acme, now=last) == Decimal("220.00")
    assert policies.spent_in_month(acme, now=datetime(2026, 12, 31, 23, 59, tzinfo=UTC)) == PRICE


def test_what_is_sold_out_is_said_so_though_the_order_itself_filled_the_month(acme, shop):
    """The order that is being refused does not count against its own limit."""
    set_policy(acme, max_month_usd=PRICE)
    Machine.objects.update(free_lots=0)
    with pytest.raises(SoldOut):
        place(acme, make_basket(shop))


def test_a_refusal_stores_nothing_and_frees_the_key(acme, shop):
    set_policy(acme, max_order_usd=Decimal("1.00"))
    assert broken_rule(acme, make_basket(shop), idempotency_key="k") == "max_order_usd"
    assert not Order.objects.exists()
    assert Machine.objects.get().free_lots == 9
    set_policy(acme)
    assert not place(acme, make_basket(shop), idempotency_key="k").replayed


def test_a_repeat_is_answered_whatever_the_policy_has_become(acme, shop):
    first = place(acme, make_basket(shop), idempotency_key="k")
    set_policy(acme, max_order_usd=Decimal("1.00"), order_role="owner", tiers=["community"])
    assert place(acme, make_basket(shop), idempotency_key="k", expected_total_usd=PRICE).body == first.body


@pytest.mark.parametrize("least", ["member", "admin", "owner"])
def test_who_may_order(acme, shop, least):
    set_policy(acme, order_role=least)
    roles = ["owner", "admin", "member"]
    for role in roles:
        user = acme.owner if role == "owner" else make_member(acme, role)
        if roles.index(role) <= roles.index(least):
            assert place(acme, make_basket(shop), actor=user)
        else:
            assert broken_rule(acme, make_basket(shop), actor=user) == "order_role"
    # An API key counts as an admin; staff order in the role of who asked them, or of a member.
    key = make_api_key(acme)
    if least == "owner":
        assert broken_rule(acme, make_basket(shop), actor=key, via="api") == "order_role"
    else:
        assert place(acme, make_basket(shop), actor=key, via="api")
    staff = make_user("s@example.com", is_staff=True)
    assert place(acme, make_basket(shop), actor=staff, via="staff", asked_by=acme.owner)
    if least == "member":
        assert place(acme, make_basket(shop), actor=staff, via="staff")
    else:
        assert broken_rule(acme, make_basket(shop), actor=staff, via="staff") == "order_role"


def test_staff_order_only_for_a_member_who_may_order(acme, globex, shop):
    staff = make_user("s@example.com", is_staff=True)
    for user in (make_member(acme, "viewer"), globex.owner):
        with pytest.raises(NotPermitted, match="Name a member who may"):
            place(acme, make_basket(shop), actor=staff, via="staff", asked_by=user)
    assert not Order.objects.exists()


@pytest.mark.parametrize(("least", "words"), [("owner", "Only owners"), ("admin", "Only owners and admins")])
def test_who_may_not_order_reads_who_may(acme, shop, least, words):
    set_policy(acme, order_role=least)
    with pytest.raises(PolicyViolation, match=f"^{words} may place orders, by your organization's policy\\."):
        place(acme, make_basket(shop), actor=make_member(acme, "member"))


def test_a_time_in_a_sentence_stands_right_before_the_full_stop(client, acme):
    set_policy(acme)
    client.force_login(acme.owner)
    text = client.get(f"/o/{acme.slug}/policy/").text
    assert search(r"Last changed <time [^>]+>[^<]+ UTC</time>\.", text)


def test_the_api_names_the_rule(acme, shop):
    set_policy(acme, max_order_usd=Decimal("50.00"))
    key = make_api_key(acme)
    refused = order(key, order_body(shop))
    assert assert_problem(refused, 403, "policy")["rule"] == "max_order_usd"
    assert "$50.00 per order" in refused.json()["detail"]
    quoted = post("quotes", key, {"machine": shop.pk, "term_days": 7, "lots": 1})
    assert assert_problem(quoted, 403, "policy")["rule"] == "max_order_usd"


REFUSALS = {
    "who may order": ({"order_role": "owner"}, {}, (403, "policy", "order_role")),
    "no such machine": ({"order_role": "owner"}, {"machine": 999_999}, (403, "policy", "order_role")),
    "off line": ({"tiers": ["secure"]}, {"online": False}, (409, "off_line", None)),
    "tier": ({"tiers": ["secure"], "max_order_usd": Decimal(1)}, {"free_lots": 0}, (403, "policy", "tiers")),
    "country": ({"countries": ["FR"], "max_month_usd": Decimal(1)}, {"free_lots": 0}, (403, "policy", "countries")),
    "total": ({"max_order_usd": Decimal(1)}, {"free_lots": 0}, (403, "policy", "max_order_usd")),
    "month": ({"max_month_usd": Decimal(1)}, {"free_lots": 0}, (403, "policy", "max_month_usd")),
    "stock": ({}, {"free_lots": 0}, (409, "sold_out", None)),
    "term": ({"tiers": ["secure"]}, {"term_days": 3}, (400, "term_not_offered", None)),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_quote_and_an_order_of_the_same_basket_are_refused_the_same(acme, gpu, name):
    """The order has faults of its own as well: whatever a quote says comes first."""
    rules, wrong, (status, code, rule) = REFUSALS[name]
    facts = {field: value for field, value in wrong.items() if field not in ("machine", "term_days")}
    machine = make_machine(gpu=gpu, price_7_days_usd=PRICE, tier="community", country="DE", **facts)
    set_policy(acme, **rules)
    basket = {"machine": wrong.get("machine", machine.pk), "term_days": wrong.get("term_days", 7), "lots": 1}
    key = make_api_key(acme)
    for answer in (post("quotes", key, basket), order(key, {**basket, "expected_total_usd": "0.01"})):
        problem = assert_problem(answer, status, code)
        assert problem.get("rule") == rule
    assert not Order.objects.exists()


def test_the_review_tells_the_rule_and_offers_no_button(client, acme, shop):
    client.force_login(acme.owner)
    url = f"/o/acme/orders/review/?machine={shop.pk}"
    assert "Confirm order" in client.get(url).content.decode()
    set_policy(acme, max_order_usd=Decimal("50.00"))
    html = client.get(url).content.decode()
    assert "policy allows at most $50.00 per order" in unescape(html)
    assert "Confirm order" not in html
    form = {"machine": shop.pk, "environment": "vllm", "expected_total_usd": "110.00", "idempotency_key": "k"}
    posted = client.post("/o/acme/orders/review/", form)
    assert posted.status_code == 403
    assert unescape(posted.content.decode()).count("policy allows at most $50.00 per order") == 1
    assert not Order.objects.exists()


def test_the_wizard_offers_only_what_may_be_ordered(client, acme, shop):
    make_ai_model()
    make_machine(name="Oregon", country="US", price_7_days_usd=PRICE)
    make_machine(name="Basement", tier="community", price_7_days_usd=PRICE)
    make_machine(name="Palace", price_7_days_usd=Decimal("900.00"))
    query = "task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"
    client.force_login(acme.owner)
    everywhere = client.get(f"/o/acme/launch/result/?{query}").content.decode()
    assert all(name in everywhere for name in ("Frankfurt", "Oregon", "Basement", "Palace"))
    set_policy(acme, tiers=["secure"], countries=["EU"], max_order_usd=Decimal("500.00"))
    html = unescape(client.get(f"/o/acme/launch/result/?{query}").content.decode())
    assert "Frankfurt" in html
    assert not any(name in html for name in ("Oregon", "Basement", "Palace"))
    assert "Your organization's policy allows Secure." in html
    assert "Your organization's policy allows only EU" in html
    assert "leaves at most $500.00 for this order" in html
    assert "Oregon" in client.get(f"/launch/result/?{query}").content.decode()


def test_staff_cannot_order_past_the_policy(client, acme, shop):
    set_policy(acme, max_order_usd=Decimal("50.00"))
    client.force_login(make_user("staff@example.com", is_staff=True, is_superuser=True))
    data = {"organization": acme.pk, "machine": shop.pk, "term_days": 7, "lots": 1, "environment": "vllm"}
    data |= {"notes": "", "idempotency_key": "k", "expected_total_usd": "110.00", "place": "1"}
    html = unescape(client.post("/admin/rentals/order/add/", data).content.decode())
    assert "policy allows at most $50.00 per order" in html
    assert not Order.objects.exists()


def test_staff_name_who_asked_where_the_policy_leaves_ordering_to_owners(client, acme, globex, shop):
    set_policy(acme, order_role="owner")
    admin = make_member(acme, "admin")
    client.force_login(make_user("staff@example.com", is_staff=True, is_superuser=True))
    data = {"organization": acme.pk, "machine": shop.pk, "term_days": 7, "lots": 1, "environment": "vllm", "notes": ""}
    data |= {"idempotency_key": "k", "expected_total_usd": "110.00"}
    refusals = {"": "Only owners may place orders", admin.email: "Only owners may place orders"}
    refusals |= {globex.owner.email: "is no member of Acme", "nobody": "valid email address"}
    for address, words in refusals.items():
        for button in ("total", "place"):
            html = unescape(client.post("/admin/rentals/order/add/", data | {"asked_by": address, button: "1"}).text)
            assert words in html, (address, button)
            assert "Place order –" not in html
    assert not Order.objects.exists()
    placing = data | {"asked_by": acme.owner.email.upper(), "place": "1"}
    assert client.post("/admin/rentals/order/add/", placing).status_code == 302
    assert AuditEvent.objects.get(action="order.placed").data["asked_by"] == acme.owner.email
    assert Order.objects.get().placed_by_name == "staff@example.com"


# --- Activity -----------------------------------------------------------------------------------------------------


def test_owners_and_admins_read_who_did_what(client, acme, globex, shop):
    placed = make_order(acme, shop)
    make_order(globex, make_machine(name="globex-secret"))
    set_policy(acme)
    for role, status in (("owner", 200), ("admin", 200), ("member", 403), ("viewer", 403)):
        client.force_login(acme.owner if role == "owner" else make_member(acme, role))
        assert client.get("/o/acme/activity/").status_code == status
    client.force_login(acme.owner)
    html = client.get("/o/acme/activity/").content.decode()
    assert "Order placed" in html
    assert "Policy changed" in html
    assert "owner@acme.example" in html
    assert f"/o/acme/orders/{placed.pk}/" in html
    assert "owner@globex" not in html
    filtered = client.get("/o/acme/activity/", {"action": "policy.changed"}).content.decode()
    assert f"/o/acme/orders/{placed.pk}/" not in filtered


def test_activity_comes_in_pages_and_refuses_unknown_actions(client, acme):
    for number in range(51):
        set_policy(acme, max_order_usd=Decimal(number))
    client.force_login(acme.owner)
    assert "page=2" in client.get("/o/acme/activity/", {"action": "policy.changed"}).content.decode()
    assert client.get("/o/acme/activity/", {"page": "2"}).status_code == 200
    for action in ("nothing", "\x00", "x" * 5000):
        assert client.get("/o/acme/activity/", {"action": action}).status_code == 400
