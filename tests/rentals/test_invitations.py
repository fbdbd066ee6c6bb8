"""Nobody is put into an organization; who is invited opens a link, signs in or up, and says yes."""

import re
from datetime import timedelta

import pytest
import time_machine
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail
from django.utils import timezone

from rentals.models import AuditEvent, Invitation, Membership, Organization
from tests.factories import PASSWORD, make_invitation, make_member, make_user

MEMBERS = "/o/acme/members/"
JOIN = "/invitations/join/"


@pytest.fixture
def owner(acme, client):
    client.force_login(acme.owner)
    return client


def role_of(user):
    return Membership.objects.filter(user=user).values_list("role", flat=True).first()


def link_in(text):
    return re.search(r"/invitations/[\w-]{40,}/", text)[0]


def test_the_link_is_mailed_after_the_commit_and_shown_to_who_invites(owner, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        response = owner.post(MEMBERS, {"email": "new@example.com", "role": "viewer"})
    shown = link_in(response.content.decode())
    assert [message.to for message in mail.outbox] == [["new@example.com"]]
    assert f"http://testserver{shown}" in mail.outbox[0].body
    assert "owner@acme.example invites you to join Acme (acme)" in mail.outbox[0].body
    # Looked at again, the page has no link: only its hash is kept.
    assert "/invitations/" not in owner.get(MEMBERS).content.decode().replace("/members/invitations/", "")
    assert shown.split("/")[2] not in str(list(Invitation.objects.values_list("token_hash", "email")))
    assert not any(shown.split("/")[2] in str(event.data) for event in AuditEvent.objects.all())


def test_a_dead_mail_server_does_not_fail_the_invitation(owner, settings, django_capture_on_commit_callbacks):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    with django_capture_on_commit_callbacks(execute=True):
        response = owner.post(MEMBERS, {"email": "new@example.com", "role": "viewer"})
    assert response.status_code == 200
    assert link_in(response.content.decode())


def test_the_answer_is_the_same_whether_or_not_the_address_has_an_account(owner):
    make_user("known@example.com")
    answers = []
    with time_machine.travel(timezone.now(), tick=False):
        for email in ("known@example.com", "nobody@example.com"):
            html = owner.post(MEMBERS, {"email": email, "role": "member"}).content.decode()
            html = re.sub(r"/invitations/[\w-]{40,}/|value=\"[\w]{64}\"", "", html).replace(email, "")
            answers.append(html[html.index("is invited") : html.index("<table")])
            Invitation.objects.all().delete()
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"email": "owner@acme.example", "role": "member"}, "already a member"),
        ({"email": "OWNER@acme.example", "role": "member"}, "already a member"),
        ({"email": "not an address", "role": "member"}, "valid email"),
        ({"email": "", "role": "member"}, "required"),
        ({"email": "a\x00@example.com", "role": "member"}, "ull characters"),
        ({"email": "new@example.com", "role": "god"}, "valid choice"),
        ({"email": "a@b.com\nBcc: c@d.com", "role": "member"}, "There is a problem"),
        ({"email": "x" * 400 + "@example.com", "role": "member"}, "There is a problem"),
    ],
)
def test_what_cannot_be_invited_is_said_at_the_field(owner, data, words):
    response = owner.post(MEMBERS, data)
    assert response.status_code == 400
    assert words in response.content.decode()
    assert not Invitation.objects.exists()


@pytest.mark.parametrize("role", ["admin", "member", "viewer"])
def test_who_may_invite_to_what(client, acme, role):
    client.force_login(make_member(acme, role))
    statuses = [client.post(MEMBERS, {"email": f"{r}@example.com", "role": r}).status_code for r in ("owner", "viewer")]
    assert statuses == ([400, 200] if role == "admin" else [403, 403])
    assert list(Invitation.objects.values_list("role", flat=True)) == (["viewer"] if role == "admin" else [])


def test_an_admin_cannot_touch_the_invitation_of_an_owner(client, acme):
    invitation = make_invitation(acme, role="owner")
    client.force_login(make_member(acme, "admin"))
    for act in ("resend", "revoke"):
        assert client.post(f"{MEMBERS}invitations/{invitation.pk}/{act}/").status_code == 403
    assert client.post(MEMBERS, {"email": invitation.email, "role": "viewer"}).status_code == 403
    invitation.refresh_from_db()
    assert (invitation.role, invitation.revoked_at) == ("owner", None)


def test_members_and_viewers_do_not_see_who_is_invited(client, acme):
    make_invitation(acme)
    for role, seen in (("admin", True), ("member", False), ("viewer", False)):
        client.force_login(make_member(acme, role))
        assert ("new@example.com" in client.get(MEMBERS).content.decode()) is seen


def test_an_account_joins_after_saying_yes(client, acme):
    invitation, user = make_invitation(acme, role="viewer"), make_user("new@example.com")
    client.force_login(user)
    response = client.get(invitation.link, follow=True)
    assert response.redirect_chain == [(JOIN, 302)]
    assert "Join Acme (acme)" in response.content.decode()
    assert role_of(user) is None
    assert client.post(JOIN).url == "/o/acme/"
    assert role_of(user) == "viewer"
    assert set(AuditEvent.objects.values_list("action", flat=True)) == {"invitation.sent", "invitation.accepted"}


def test_the_link_works_once(client, acme):
    invitation, user = make_invitation(acme), make_user("new@example.com")
    client.force_login(user)
    client.get(invitation.link)
    client.post(JOIN)
    Membership.objects.get(user=user).delete()
    assert client.get(invitation.link, follow=True).status_code == 410
    assert client.post(JOIN).status_code == 410
    assert role_of(user) is None


def test_it_ends_after_seven_days_exactly(client, acme, now):
    invitation = make_invitation(acme, now=now)
    assert invitation.expires_at - now == timedelta(seconds=7 * 86_400)
    assert invitation.is_open(invitation.expires_at - timedelta(microseconds=1))
    assert not invitation.is_open(invitation.expires_at)
    Invitation.objects.update(expires_at=timezone.now())
    client.force_login(make_user("new@example.com"))
    assert "has expired" in client.get(invitation.link, follow=True).content.decode()
    assert client.post(JOIN).status_code == 410
    assert Membership.objects.count() == 1


def test_a_revoked_one_opens_nothing(owner, acme):
    invitation, user = make_invitation(acme), make_user("new@example.com")
    assert owner.post(f"{MEMBERS}invitations/{invitation.pk}/revoke/").status_code == 302
    owner.force_login(user)
    assert owner.get(invitation.link, follow=True).status_code == 410
    assert owner.post(JOIN).status_code == 410
    assert role_of(user) is None


def test_sending_again_makes_a_new_link_and_ends_the_old_one(owner, acme, django_capture_on_commit_callbacks):
    invitation, user = make_invitation(acme), make_user("new@example.com")
    Invitation.objects.update(expires_at=timezone.now())
    with django_capture_on_commit_callbacks(execute=True):
        html = owner.post(f"{MEMBERS}invitations/{invitation.pk}/resend/").content.decode()
    assert len(mail.outbox) == 1
    owner.force_login(user)
    assert owner.get(invitation.link).status_code == 404
    assert owner.get(link_in(html), follow=True).status_code == 200
    assert owner.post(JOIN).url == "/o/acme/"


def test_inviting_again_renews_the_one_invitation(owner, acme):
    make_invitation(acme, role="viewer")
    owner.post(MEMBERS, {"email": "NEW@example.com", "role": "admin"})
    assert Invitation.objects.get().role == "admin"


@pytest.mark.parametrize("verification", ["mandatory", "none"])
def test_another_account_cannot_use_the_link(client, acme, settings, verification):
    settings.ACCOUNT_EMAIL_VERIFICATION = verification
    invitation, other = make_invitation(acme), make_user("other@example.com")
    client.force_login(other)
    html = client.get(invitation.link, follow=True).content.decode()
    assert "You are signed in as other@example.com" in html
    assert client.post(JOIN).status_code == 403
    assert role_of(other) is None


def test_an_unverified_address_proves_nothing_where_addresses_are_verified(client, acme, settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    invitation, user = make_invitation(acme), make_user("new@example.com")
    EmailAddress.objects.update(verified=False)
    client.force_login(user)
    client.get(invitation.link)
    assert client.post(JOIN).status_code == 403
    EmailAddress.objects.filter(user=user).update(verified=True)
    assert client.post(JOIN).url == "/o/acme/"


def test_who_is_unknown_signs_up_through_the_link_without_a_second_organization(client, acme):
    invitation = make_invitation(acme)
    assert "Sign up" in client.get(invitation.link, follow=True).content.decode()
    form = client.get(f"/accounts/signup/?next={JOIN}").content.decode()
    assert 'name="organization_name"' not in form
    assert 'value="new@example.com"' in form
    response = client.post("/accounts/signup/", {"email": "new@example.com", "password1": PASSWORD})
    assert response.url == JOIN
    assert client.post(JOIN).url == "/o/acme/"
    assert Organization.objects.count() == 1
    assert role_of(User.objects.get(email="new@example.com")) == "member"


def test_signing_in_after_the_link_leads_back_to_it(client, acme):
    invitation = make_invitation(acme)
    make_user("new@example.com")
    client.get(invitation.link)
    response = client.post("/accounts/login/", {"login": "new@example.com", "password": PASSWORD})
    assert response.url == JOIN


def test_without_an_invitation_sign_up_still_asks_for_the_organization(client, acme):
    invitation = make_invitation(acme)
    client.get(invitation.link)
    Invitation.objects.update(revoked_at=timezone.now())
    assert 'name="organization_name"' in client.get("/accounts/signup/").content.decode()


def test_a_link_that_is_none_is_not_found(client, db):
    for token in ("x", "join-me", "A" * 43):
        assert client.get(f"/invitations/{token}/").status_code == 404
    assert client.get(JOIN).status_code == 404


def test_a_member_who_accepts_keeps_the_role(client, acme):
    invitation, user = make_invitation(acme, role="viewer"), make_user("new@example.com")
    make_member(acme, "admin", user=user)
    client.force_login(user)
    client.get(invitation.link)
    client.post(JOIN)
    assert role_of(user) == "admin"


def test_a_crowd_cannot_be_mailed(owner, acme):
    for number in range(50):
        make_invitation(acme, f"person{number}@elsewhere.example")
    response = owner.post(MEMBERS, {"email": "new@example.com", "role": "viewer"})
    assert "At most 50 invitations" in response.content.decode()
    assert Invitation.objects.count() == 50


def test_equal_names_are_told_apart_by_their_slugs(client, acme, globex):
    globex.name = acme.name = "Twin"
    globex.save()
    acme.save()
    make_member(globex, "member", user=acme.owner)
    client.force_login(acme.owner)
    html = client.get("/orders/review/?machine=1").content.decode()
    for slug in ("acme", "globex"):
        assert f'<span class="text-muted">{slug}</span>' in html
        assert re.search(rf"Twin <small[^>]*>{slug}</small>", html)


def test_the_account_is_shown_by_its_address(client, db):
    data = {"email": "jane@example.com", "password1": PASSWORD, "organization_name": "Jane"}
    html = client.post("/accounts/signup/", data, follow=True).content.decode()
    assert "signed in as jane@example.com" in html
    assert User.objects.get().get_username() == "jane@example.com"


def test_the_way_through_the_mailbox_leads_back_to_the_invitation(client, acme, settings):
    """Where addresses are verified, sign-up ends at the mailbox; signing in afterwards goes on to the invitation."""
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    client.get(make_invitation(acme).link)
    client.post("/accounts/signup/", {"email": "new@example.com", "password1": PASSWORD})
    assert not Membership.objects.filter(user__email="new@example.com").exists()
    confirmation = re.search(r"http://[^/]+(/accounts/confirm-email/[^\s]+)", mail.outbox[-1].body)[1]
    client.post(confirmation)
    response = client.post("/accounts/login/", {"login": "new@example.com", "password": PASSWORD})
    assert response.url == JOIN
    assert client.post(JOIN).url == "/o/acme/"
