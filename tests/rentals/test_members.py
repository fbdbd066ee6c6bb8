"""Who may manage whom; one owner always stays."""

import pytest

from rentals.models import AuditEvent, Membership
from tests.factories import make_member, make_user

MEMBERS = "/o/acme/members/"


def role_of(user):
    return Membership.objects.filter(user=user).values_list("role", flat=True).first()


def membership_url(user, act):
    return f"{MEMBERS}{Membership.objects.get(user=user).pk}/{act}/"


@pytest.fixture
def client(acme, client):
    client.force_login(acme.owner)
    return client


def test_an_owner_adds_changes_and_removes(client):
    user = make_user("new@example.com")
    assert client.post(MEMBERS, {"email": "New@Example.com", "role": "viewer"}).status_code == 302
    client.post(membership_url(user, "role"), {"role": "admin"})
    assert role_of(user) == "admin"
    client.post(membership_url(user, "remove"))
    assert role_of(user) is None
    acts = set(AuditEvent.objects.values_list("action", flat=True))
    assert acts == {"member.added", "member.role_changed", "member.removed"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"email": "nobody@example.com", "role": "member"}, "Nobody has signed up"),
        ({"email": "owner@acme.example", "role": "member"}, "already a member"),
        ({"email": "not an address", "role": "member"}, "valid email"),
        ({"email": "", "role": "member"}, "required"),
        ({"email": "a\x00@example.com", "role": "member"}, "ull characters"),
        ({"email": "new@example.com", "role": "god"}, "valid choice"),
        ({"email": "x" * 400 + "@example.com", "role": "member"}, "There is a problem"),
    ],
)
def test_what_cannot_be_added_is_said_at_the_field(client, data, words):
    make_user("new@example.com")
    response = client.post(MEMBERS, data)
    assert response.status_code == 400
    assert words in response.content.decode()
    assert Membership.objects.count() == 1


def test_the_last_owner_neither_leaves_nor_steps_down(client, acme):
    for act, data in (("remove", {}), ("role", {"role": "member"})):
        response = client.post(membership_url(acme.owner, act), data)
        assert response.status_code == 400
        assert "at least one owner" in response.content.decode()
    assert role_of(acme.owner) == "owner"


def test_with_a_second_owner_the_first_may_leave(client, acme):
    make_member(acme, "owner")
    response = client.post(membership_url(acme.owner, "remove"))
    assert response.url == "/"
    assert client.get(MEMBERS).status_code == 404


def test_an_admin_manages_everybody_but_owners(client, acme):
    member = make_member(acme, "member")
    make_user("new@example.com")
    client.force_login(make_member(acme, "admin"))
    assert client.post(membership_url(member, "role"), {"role": "viewer"}).status_code == 302
    assert client.post(membership_url(member, "role"), {"role": "owner"}).status_code == 400
    assert client.post(membership_url(acme.owner, "role"), {"role": "viewer"}).status_code == 403
    assert client.post(membership_url(acme.owner, "remove")).status_code == 403
    assert client.post(MEMBERS, {"email": "new@example.com", "role": "owner"}).status_code == 400
    assert (role_of(member), role_of(acme.owner)) == ("viewer", "owner")


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_others_see_the_list_and_may_only_leave(client, acme, role):
    user = make_member(acme, role)
    make_user("new@example.com")
    client.force_login(user)
    assert acme.owner.email in client.get(MEMBERS).content.decode()
    assert client.post(MEMBERS, {"email": "new@example.com", "role": "viewer"}).status_code == 403
    assert client.post(membership_url(acme.owner, "role"), {"role": "viewer"}).status_code == 403
    assert client.post(membership_url(acme.owner, "remove")).status_code == 403
    assert client.post(membership_url(user, "remove")).url == "/"
    assert role_of(user) is None


def test_a_member_of_another_organization_is_not_found_here(client, acme, globex):
    assert client.post(f"{MEMBERS}{Membership.objects.get(user=globex.owner).pk}/remove/").status_code == 404
    assert client.post(f"{MEMBERS}{10**18}/remove/").status_code == 404
    assert client.post(f"{MEMBERS}{10**30}/remove/").status_code == 404
    assert role_of(globex.owner) == "owner"


def test_an_address_that_was_never_verified_proves_nothing(client, settings):
    from allauth.account.models import EmailAddress

    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    user = make_user("claimed@example.com")
    EmailAddress.objects.filter(user=user).update(verified=False)
    response = client.post(MEMBERS, {"email": "claimed@example.com", "role": "member"})
    assert "Nobody has signed up" in response.content.decode()
