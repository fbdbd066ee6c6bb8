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


def test_an_owner_changes_and_removes(client, acme):
    user = make_member(acme, "viewer")
    client.post(membership_url(user, "role"), {"role": "admin"})
    assert role_of(user) == "admin"
    client.post(membership_url(user, "remove"))
    assert role_of(user) is None
    acts = set(AuditEvent.objects.values_list("action", flat=True))
    assert acts == {"member.role_changed", "member.removed"}


def test_nobody_becomes_a_member_without_saying_so(client):
    """Whatever is sent to the page, an account that exists is invited and not put in."""
    user = make_user("new@example.com")
    for role in ("viewer", "member", "admin", "owner"):
        client.post(MEMBERS, {"email": "New@Example.com", "role": role})
    assert role_of(user) is None
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


def test_ownership_is_transferred_in_one_act(client, acme):
    heir = make_member(acme, "member")
    assert "Transfer" in client.get(membership_url(heir, "transfer")).content.decode()
    assert role_of(heir) == "member"
    client.post(membership_url(heir, "transfer"))
    assert (role_of(heir), role_of(acme.owner)) == ("owner", "admin")
    assert client.post(membership_url(heir, "transfer")).status_code == 403
    assert AuditEvent.objects.filter(action="ownership.transferred").count() == 1


@pytest.mark.parametrize("role", ["admin", "member", "viewer"])
def test_only_an_owner_transfers_ownership(client, acme, role):
    member = make_member(acme, role)
    client.force_login(member)
    for user in (member, acme.owner):
        assert client.post(membership_url(user, "transfer")).status_code == 403
    assert role_of(acme.owner) == "owner"


def test_an_owner_who_hands_over_to_themselves_stays_one(client, acme):
    assert client.post(membership_url(acme.owner, "transfer")).status_code == 403
    assert role_of(acme.owner) == "owner"


@pytest.mark.parametrize("act", ["role"])
def test_the_address_of_a_button_opened_by_hand_leads_back_to_the_page(client, acme, act):
    response = client.get(membership_url(acme.owner, act), follow=True)
    assert response.redirect_chain == [(MEMBERS, 302)]
    assert "Nothing was changed" in response.content.decode()


def test_leaving_and_removing_are_asked_first(client, acme):
    member = make_member(acme, "member")
    assert f"Remove {member.email}?" in client.get(membership_url(member, "remove")).content.decode()
    assert "Leave Acme (acme)?" in client.get(membership_url(acme.owner, "remove")).content.decode()
    assert role_of(member) == "member"


def test_a_name_with_braces_in_it_is_no_format(client, acme):
    acme.name = "{0.__class__} {name}"
    acme.save()
    make_member(acme, "owner")
    response = client.post(membership_url(acme.owner, "remove"), follow=True)
    assert "You have left {0.__class__} {name}." in response.content.decode()
