"""Another organization's anything does not exist: every named URL of the tenants' app, walked as a stranger.

The walk reads the URL patterns themselves: a new page is walked from the day it is added, and a page whose address the
test cannot fill, or that is not about an organization and not named below, fails it.
"""

import uuid

import pytest
from django.urls import reverse

from rentals.api_urls import urlpatterns as api_patterns
from rentals.models import (
    ApiKey,
    Invitation,
    Membership,
    OwnModel,
    SavedSearch,
    SshKey,
    WebhookDelivery,
    WebhookEndpoint,
)
from rentals.querysets import MembershipQuerySet, OrganizationQuerySet, TenantQuerySet
from rentals.urls import urlpatterns
from tests.factories import (
    make_api_key,
    make_endpoint,
    make_invitation,
    make_machine,
    make_order,
    make_own_model,
    make_search,
    make_ssh_key,
)

# Signed-in pages that are about the person, not about one organization.
PERSONAL = {"order-review-entry", "organization-new"}
# Pages of who is invited: opened by a link's token alone, signed in or not; tests/rentals/test_invitations.py has them.
BY_TOKEN = {"invitation", "invitation-join"}


def tenant_patterns():
    return [pattern for pattern in urlpatterns if pattern.name not in PERSONAL | BY_TOKEN]


def address(pattern, organization, order):
    values = {
        "organization": organization.slug,
        "order_id": order.pk,
        "number": 1,
        "key_id": ApiKey.objects.filter(organization=organization).latest("pk").pk,
        "invitation_id": Invitation.objects.filter(organization=organization).latest("pk").pk,
        "model_slug": OwnModel.objects.filter(organization=organization).latest("pk").slug,
        "ssh_key_id": SshKey.objects.filter(organization=organization).latest("pk").pk,
        "endpoint_id": WebhookEndpoint.objects.filter(organization=organization).latest("pk").pk,
        "delivery_id": WebhookDelivery.objects.filter(organization=organization).latest("pk").pk,
        "search_id": SavedSearch.objects.filter(organization=organization).latest("pk").pk,
        "month": f"{order.starts_at:%Y-%m}",
        "membership_id": Membership.objects.filter(organization=organization).latest("pk").pk,
    }
    names = set(pattern.pattern.converters)
    unknown = names - set(values)
    assert not unknown, f"say how to fill {unknown} of the page {pattern.name}"
    assert "organization" in names, f"the page {pattern.name} is about no organization: is it personal?"
    return reverse(pattern.name, kwargs={name: values[name] for name in names})


@pytest.fixture(autouse=True, params=["scoped", pytest.param("unscoped", marks=pytest.mark.postgres)])
def scoping(request, monkeypatch):
    """Every walk twice: as the code is, and with its scoping off, so that row-level security alone must hold."""
    if request.param == "unscoped":
        monkeypatch.setattr(TenantQuerySet, "for_organization", lambda rows, organization: rows.all())
        monkeypatch.setattr(MembershipQuerySet, "of_person", lambda rows, user: rows.select_related("organization"))
        monkeypatch.setattr(OrganizationQuerySet, "of_member", lambda rows, user: rows.all())


@pytest.fixture
def secret_order(globex):
    make_api_key(globex, name="globex-secret")
    make_invitation(globex, "globex-secret@example.com")
    make_own_model(globex, "Secret of Globex")
    make_ssh_key(globex, "globex-secret")
    make_endpoint(globex, "https://globex-secret.example/hook")
    make_search(globex, "globex-secret")
    return make_order(globex, make_machine(name="globex-secret"), environment_notes="globex-secret")


def leaks(response):
    return any(marker in response.content for marker in (b"globex-secret", b"Globex", b"owner@globex"))


@pytest.mark.parametrize("pattern", tenant_patterns(), ids=lambda pattern: pattern.name)
def test_a_stranger_finds_no_page_of_the_organization(client, acme, globex, secret_order, pattern):
    client.force_login(acme.owner)
    url = address(pattern, globex, secret_order)
    statuses = set()
    for method in ("get", "post", "head", "put", "patch", "delete", "options"):
        response = getattr(client, method)(url)
        statuses.add(response.status_code)
        assert not leaks(response)
    # 405 says that the method exists for nobody; the methods that do exist say that the page does not.
    assert 404 in statuses
    assert statuses <= {404, 405}
    assert secret_order.allocations.get().state == "running"
    assert Membership.objects.filter(organization=globex).count() == 1
    assert ApiKey.objects.get(organization=globex).revoked_at is None
    assert Invitation.objects.get(organization=globex).revoked_at is None
    assert SshKey.objects.filter(organization=globex).exists()
    endpoint, delivery = WebhookEndpoint.objects.get(), WebhookDelivery.objects.get()
    assert (endpoint.enabled, endpoint.previous_secret, delivery.state, delivery.tries) == (True, "", "pending", 0)
    assert SavedSearch.objects.filter(organization=globex).exists()


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize(
    "pattern", [pattern for pattern in urlpatterns if pattern.name not in BY_TOKEN], ids=lambda pattern: pattern.name
)
def test_the_anonymous_are_sent_to_sign_in(client, globex, secret_order, pattern, method):
    """B155."""
    url = reverse(pattern.name) if pattern.name in PERSONAL else address(pattern, globex, secret_order)
    response = getattr(client, method)(url)
    if response.status_code == 405:
        return
    assert response.status_code == 302
    assert response.url.startswith("/accounts/login/?next=")
    assert not leaks(response)


@pytest.mark.parametrize(
    "pattern",
    [pattern for pattern in tenant_patterns() if set(pattern.pattern.converters) - {"organization", "month"}],
    ids=lambda pattern: pattern.name,
)
def test_a_foreign_id_under_ones_own_organization_does_not_exist(client, acme, globex, secret_order, pattern):
    """B150 and B152: the same answer as for an id that nobody has."""
    client.force_login(acme.owner)
    foreign = address(pattern, globex, secret_order).replace("/o/globex/", "/o/acme/")
    missing = foreign.replace(str(secret_order.pk), str(uuid.uuid4()))
    missing = missing.replace(f"keys/{ApiKey.objects.latest('pk').pk}/", "keys/999999/")
    missing = missing.replace(f"ssh-keys/{SshKey.objects.latest('pk').pk}/", "ssh-keys/999999/")
    missing = missing.replace(f"webhooks/{WebhookEndpoint.objects.latest('pk').pk}/", "webhooks/999999/")
    missing = missing.replace(f"searches/{SavedSearch.objects.latest('pk').pk}/", "searches/999999/")
    missing = missing.replace("models/secret-of-globex/", "models/nobodys/")
    missing = missing.replace(f"members/{Membership.objects.latest('pk').pk}/", "members/999999/")
    missing = missing.replace(f"invitations/{Invitation.objects.latest('pk').pk}/", "invitations/999999/")
    answers = set()
    for url in (foreign, missing):
        for method in ("get", "post"):
            response = getattr(client, method)(url)
            assert response.status_code in (404, 405)
            answers.add((method, response.status_code, leaks(response)))
    assert any(status == 404 for _, status, _ in answers)
    assert not any(leak for *_, leak in answers)
    assert len(answers) == 2


def test_a_removed_member_finds_no_page_any_more(client, acme):
    order = make_order(acme)
    client.force_login(acme.owner)
    assert client.get(f"/o/acme/orders/{order.pk}/").status_code == 200
    Membership.objects.all().delete()
    assert client.get(f"/o/acme/orders/{order.pk}/").status_code == 404


def test_the_lists_of_one_organization_never_show_anothers(client, acme, secret_order):
    client.force_login(acme.owner)
    names = ["organization", "orders", "members", "keys", "own-models", "organization-launch"]
    for name in [*names, "ssh-keys", "statements", "orders-csv", "webhooks", "saved-searches"]:
        assert not leaks(client.get(reverse(name, args=["acme"])))
    for name in ("statement", "statement-csv"):
        assert not leaks(client.get(reverse(name, args=["acme", f"{secret_order.starts_at:%Y-%m}"])))


@pytest.mark.parametrize("pattern", tenant_patterns(), ids=lambda pattern: pattern.name)
def test_no_answer_below_an_organization_is_kept_anywhere(client, globex, secret_order, pattern):
    url = address(pattern, globex, secret_order)
    for signed_in in (False, True):
        if signed_in:
            client.force_login(globex.owner)
        for each in (url, url.replace(str(secret_order.pk), str(uuid.uuid4()))):
            for method in ("get", "post", "put"):
                kept = getattr(client, method)(each).headers["Cache-Control"]
                assert {"private", "no-store"} <= set(kept.split(", "))


@pytest.mark.parametrize("pattern", tenant_patterns(), ids=lambda pattern: pattern.name)
def test_an_address_opened_after_signing_in_again_is_never_blank(client, globex, secret_order, pattern):
    """The sign-in leads by GET to where a POST was refused."""
    client.force_login(globex.owner)
    response = client.get(address(pattern, globex, secret_order), follow=True)
    assert response.status_code == 200
    assert response.content


# --- The API: the organization is the key's, so there is no address of another -------------------------------------


def api_address(pattern, order, number=1):
    values = {"order_id": order if isinstance(order, uuid.UUID) else order.pk, "number": number}
    names = set(pattern.pattern.converters)
    assert names <= set(values), f"say how to fill {names - set(values)} of {pattern.name}"
    return reverse(pattern.name, kwargs={name: values[name] for name in names})


def call(client, method, url, key=None, **headers):
    headers |= {"Authorization": f"Bearer {key.text}"} if key else {}
    return getattr(client, method)(url, content_type="application/json", headers=headers)


@pytest.mark.parametrize("pattern", api_patterns, ids=lambda pattern: pattern.name)
def test_no_answer_of_the_api_shows_another_organizations_rows(client, acme, secret_order, pattern):
    key = make_api_key(acme)
    for method in ("get", "post", "put", "patch", "delete", "options"):
        response = call(client, method, api_address(pattern, secret_order), key)
        assert response.status_code in (200, 400, 404, 405)
        assert not leaks(response)
    assert secret_order.allocations.get().state == "running"


@pytest.mark.parametrize("pattern", [p for p in api_patterns if p.pattern.converters], ids=lambda pattern: pattern.name)
def test_a_foreign_order_and_an_unknown_one_are_the_same_bytes(client, acme, secret_order, pattern):
    """B152."""
    key = make_api_key(acme)
    answers = [
        call(client, method, api_address(pattern, order), key)
        for order in (secret_order, uuid.uuid4())
        for method in ("get", "post")
    ]
    foreign, missing = answers[:2], answers[2:]

    def same(response):
        return response.content.replace(response.json()["request_id"].encode(), b"")

    assert [same(each) for each in foreign] == [same(each) for each in missing]
    assert 404 in {each.status_code for each in foreign}
    assert {each.status_code for each in answers} <= {404, 405}


@pytest.mark.parametrize("pattern", api_patterns, ids=lambda pattern: pattern.name)
def test_the_api_asks_the_anonymous_for_a_key_and_never_takes_a_session(client, globex, secret_order, pattern):
    """B155."""
    client.force_login(globex.owner)
    for method in ("get", "post", "put", "patch", "delete", "options", "head"):
        response = call(client, method, api_address(pattern, secret_order))
        assert response.status_code in (401, 405)
        assert response.status_code == 405 or response.headers["WWW-Authenticate"].startswith("Bearer")
        assert not leaks(response)
