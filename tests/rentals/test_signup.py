"""Signing up makes an account and its organization, both or neither, with no mail server."""

import pytest
from django.contrib.auth.models import User

from rentals.models import Membership, Organization
from rentals.organizations import free_slug

SIGNUP = "/accounts/signup/"


def sign_up(client, **fields):
    data = {"email": "new@example.com", "password1": "correct horse battery", "organization_name": "Umbrella"}
    return client.post(SIGNUP, data | fields)


def test_the_person_is_signed_in_as_the_owner(client, db):
    assert sign_up(client).status_code == 302
    membership = Membership.objects.get()
    assert (membership.organization.slug, membership.role) == ("umbrella", "owner")
    assert client.get("/o/umbrella/").status_code == 200


def test_the_page_asks_for_the_organization(client, db):
    assert 'name="organization_name"' in client.get(SIGNUP).content.decode()


@pytest.mark.parametrize("name", ["", " ", "x", "x" * 81, "a\x00b", "a\nb\tc", "!!!", "a‮b"])
def test_a_name_that_is_none_makes_neither(client, db, name):
    response = sign_up(client, organization_name=name)
    assert response.status_code == 200
    assert 'id="id_organization_name_error"' in response.content.decode()
    assert not User.objects.exists()
    assert not Organization.objects.exists()


def test_when_the_organization_cannot_be_made_there_is_no_account(client, db, monkeypatch):
    def fail(**fields):
        raise RuntimeError("no room")

    monkeypatch.setattr("rentals.organizations.create_organization", fail)
    with pytest.raises(RuntimeError):
        sign_up(client)
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Café & Söhne GmbH", "cafe-sohne-gmbh"),
        ("東京", "team"),
        ("Admin", "admin-2"),
        ("New", "new-2"),
        ("a_b  c--d", "a-b-c-d"),
        ("Acme", "acme-2"),
        ("x" * 80, "x" * 50),
    ],
)
def test_a_slug_is_free_readable_and_not_a_reserved_word(acme, name, slug):
    assert free_slug(name) == slug


def test_a_taken_slug_gets_the_next_number(db):
    from tests.factories import make_organization

    for slug in ("acme", "acme-2", "acme-4"):
        make_organization(slug)
    assert free_slug("ACME") == "acme-3"


def test_one_more_organization_can_be_made(client, acme):
    client.force_login(acme.owner)
    response = client.post("/o/new/", {"organization_name": "Second"})
    assert response.url == "/o/second/"
    onward = client.post("/o/new/", {"organization_name": "Third", "next": "/orders/review/?machine=1"})
    assert onward.url == "/orders/review/?machine=1"
    elsewhere = client.post("/o/new/", {"organization_name": "Fourth", "next": "https://evil.example/"})
    assert elsewhere.url == "/o/fourth/"


def test_who_has_no_organization_is_asked_to_make_one_on_the_way_to_the_review(client, acme):
    Membership.objects.all().delete()
    client.force_login(acme.owner)
    response = client.get("/orders/review/?machine=1")
    assert response.url == "/o/new/?next=%2Forders%2Freview%2F%3Fmachine%3D1"
