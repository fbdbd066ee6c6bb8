"""What a member made does not work on unsaid when they are removed or lose the role: it is named, and decided on."""

import re
from html import unescape

import pytest
from django.core import mail
from django.utils import timezone

from rentals.invitations import invite
from rentals.models import ApiKey, AuditEvent, Invitation, Membership, SshKey, WebhookDelivery, WebhookEndpoint
from rentals.saved_searches import check_saved_searches
from rentals.ssh_keys import add_key, read_key
from rentals.webhooks_endpoints import Wish, create_endpoint
from tests.factories import (
    make_api_key,
    make_gpu,
    make_machine,
    make_member,
    make_order,
    make_search,
    make_user,
    ssh_line,
)

MEMBERS = "/o/acme/members/"
REVOKE_ALL = {"api_keys": "revoke", "webhooks": "revoke", "ssh_keys": "revoke", "invitations": "revoke"}
KEEP_ALL = dict.fromkeys(REVOKE_ALL, "keep")


def url(user, act):
    return f"{MEMBERS}{Membership.objects.get(user=user).pk}/{act}/"


@pytest.fixture
def admin(acme):
    """An admin who made one of everything, and a key that was revoked before."""
    user, now = make_member(acme, "admin"), timezone.now()
    member = Membership.objects.get(user=user)
    user.key = make_api_key(acme, name="nightly batch", actor=user, via="page")
    ApiKey.objects.filter(pk=make_api_key(acme, name="old one", actor=user, via="page").pk).update(revoked_at=now)
    user.endpoint = create_endpoint(member, Wish("https://hooks.example/in", ("order.placed",)), now=now)[0]
    user.ssh = add_key(member, read_key(ssh_line("eve@laptop")), now=now)
    user.invitation = invite(member, email="eve@home.example", role="admin", now=now)[0]
    return user


@pytest.fixture
def client(acme, client):
    client.force_login(acme.owner)
    return client


def works(admin):
    """Whether key, webhook, SSH key and invitation still work."""
    return (
        ApiKey.objects.get(pk=admin.key.pk).is_live(timezone.now()),
        WebhookEndpoint.objects.get(pk=admin.endpoint.pk).enabled,
        SshKey.objects.filter(pk=admin.ssh.pk).exists(),
        Invitation.objects.get(pk=admin.invitation.pk).is_open(timezone.now()),
    )


def seen(client, address, data=None):
    """What a form carries that tells what its page showed."""
    page = client.post(address, data) if data else client.get(address)
    return {"seen": re.search(r'name="seen" value="([0-9a-f]{64})"', page.text).group(1)}


def trail(action):
    return AuditEvent.objects.get(action=action).data


def test_the_page_of_a_removal_names_what_works_on(client, admin):
    html = unescape(client.get(url(admin, "remove")).text)
    for words in ("nightly batch", f"berth_{admin.key.prefix}_…", "never used", "https://hooks.example/in"):
        assert words in html
    assert "eve@laptop" in html
    assert "old one" not in html
    assert "checked" not in html


@pytest.mark.parametrize("left_out", [*REVOKE_ALL])
def test_a_removal_without_a_decision_is_refused_at_its_field(client, admin, left_out):
    answers = {kind: fate for kind, fate in REVOKE_ALL.items() if kind != left_out}
    for data in (answers, answers | {left_out: ""}, answers | {left_out: "perhaps"}):
        response = client.post(url(admin, "remove"), data)
        assert response.status_code == 400
        assert "There is a problem" in response.text
    assert Membership.objects.filter(user=admin).exists()
    assert works(admin) == (True, True, True, True)


def test_what_is_revoked_stops_with_the_removal_and_the_trail_tells(client, acme, admin):
    make_order(acme)
    assert client.post(url(admin, "remove"), REVOKE_ALL).status_code == 302
    assert works(admin) == (False, False, False, False)
    assert WebhookDelivery.objects.get().state == WebhookDelivery.State.DROPPED
    assert trail("member.removed")["revoked"] == [
        f"API key nightly batch ({admin.key.prefix})",
        "webhook https://hooks.example/in",
        f"SSH key eve@laptop ({admin.ssh.fingerprint})",
        "invitation of eve@home.example as admin",
    ]
    assert "kept" not in trail("member.removed")
    assert AuditEvent.objects.get(action="api_key.revoked").actor == acme.owner


def test_what_is_kept_works_on_and_its_page_says_whose_it_was(client, admin):
    here = url(admin, "remove")
    assert client.post(here, KEEP_ALL | seen(client, here)).status_code == 302
    assert works(admin) == (True, True, True, True)
    assert len(trail("member.removed")["kept"]) == 4
    for page in ("keys", "webhooks", "ssh-keys"):
        assert f"{admin.email} (no longer a member)" in client.get(f"/o/acme/{page}/").text
    assert "(no longer a member)" not in client.get(MEMBERS).text


def test_what_was_made_after_the_page_was_opened_is_asked_for_too(client, acme):
    member = make_member(acme, "admin")
    assert "nightly" not in client.get(url(member, "remove")).text
    make_api_key(acme, name="nightly", actor=member, via="page")
    assert client.post(url(member, "remove")).status_code == 400
    assert Membership.objects.filter(user=member).exists()


def test_what_nobody_has_seen_is_not_kept(client, acme, admin):
    here, asked = url(admin, "remove"), {"role": "viewer"}
    shown, named = seen(client, here), seen(client, url(admin, "role"), asked)
    make_api_key(acme, name="slipped in", actor=admin, via="page")
    response = client.post(here, KEEP_ALL | shown)
    assert response.status_code == 400
    assert "slipped in" in response.text
    response = client.post(url(admin, "role"), asked | named)
    assert "slipped in" in response.text
    assert Membership.objects.get(user=admin).role == "admin"
    # What is revoked as a kind goes with the rest of it, seen or not.
    assert client.post(here, REVOKE_ALL | shown).status_code == 302
    assert not ApiKey.objects.live(timezone.now()).filter(created_by=admin).exists()


def test_what_their_key_made_over_the_api_is_theirs_too(client, acme, admin, now):
    key = ApiKey.objects.get(pk=admin.key.pk)
    told, _ = create_endpoint(key, Wish("https://hooks.example/by-key", ("order.placed",)), now=now)
    ssh = add_key(key, read_key(ssh_line("by-key")), now=now)
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=now)
    html = unescape(client.get(url(admin, "remove")).text)
    assert "https://hooks.example/by-key" in html
    assert ssh.fingerprint in html
    assert client.post(url(admin, "remove"), REVOKE_ALL).status_code == 302
    assert not WebhookEndpoint.objects.get(pk=told.pk).enabled
    assert not SshKey.objects.filter(pk=ssh.pk).exists()


def test_who_revokes_a_key_sees_what_it_made_and_may_take_it_along(client, acme, admin, now):
    key, other = ApiKey.objects.get(pk=admin.key.pk), make_api_key(acme, name="other", actor=admin, via="page")
    told, _ = create_endpoint(key, Wish("https://hooks.example/by-key", ("order.placed",)), now=now)
    ssh = add_key(key, read_key(ssh_line("by-key")), now=now)
    here = f"/o/acme/keys/{key.pk}/revoke/"
    assert "by-key" not in client.get(f"/o/acme/keys/{other.pk}/revoke/").text
    html = unescape(client.get(here).text)
    assert "https://hooks.example/by-key" in html
    assert ssh.fingerprint in html
    assert "eve@laptop" not in html
    # Who has seen none of it is shown it; the key is revoked at once.
    assert client.post(here).url == here
    assert not ApiKey.objects.get(pk=key.pk).is_live(timezone.now())
    assert (WebhookEndpoint.objects.get(pk=told.pk).enabled, SshKey.objects.filter(pk=ssh.pk).exists()) == (True, True)
    ticks = {"webhooks": "on", "ssh_keys": "on"}
    assert client.post(here, ticks | seen(client, here)).url == "/o/acme/keys/"
    assert (WebhookEndpoint.objects.get(pk=told.pk).enabled, SshKey.objects.filter(pk=ssh.pk).exists()) == (
        False, False,
    )  # fmt: skip
    assert works(admin) == (False, True, True, True)
    assert "seen" not in client.get(here).text


def test_an_invitation_that_is_taken_back_opens_nothing(client, acme, admin):
    html = client.get(url(admin, "remove")).text
    assert "eve@home.example" in html
    assert client.post(url(admin, "remove"), REVOKE_ALL).status_code == 302
    assert not Invitation.objects.get(pk=admin.invitation.pk).is_open(timezone.now())
    assert AuditEvent.objects.get(action="invitation.revoked").data["email"] == "eve@home.example"


def test_who_leaves_decides_on_their_own_keys_while_they_manage(client, admin):
    client.force_login(admin)
    assert client.post(url(admin, "remove")).status_code == 400
    here = url(admin, "remove")
    assert client.post(here, REVOKE_ALL | {"api_keys": "keep"} | seen(client, here)).url == "/"
    assert works(admin) == (True, False, False, False)


def test_who_manages_nothing_any_more_leaves_keys_to_those_who_do(client, admin):
    Membership.objects.filter(user=admin).update(role="viewer")
    client.force_login(admin)
    assert "Owners and admins decide" in client.get(url(admin, "remove")).text
    assert client.post(url(admin, "remove"), REVOKE_ALL).url == "/"
    assert works(admin) == (True, True, True, True)
    assert len(trail("member.removed")["kept"]) == 4


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_nobody_reads_of_another_members_keys_who_may_not_manage(client, acme, admin, role):
    client.force_login(make_member(acme, role))
    for text in (client.get(url(admin, "remove")).text, client.post(url(admin, "remove"), REVOKE_ALL).text):
        assert "nightly batch" not in text
        assert "hooks.example" not in text
    assert works(admin) == (True, True, True, True)


def test_an_admin_decides_nothing_about_an_owner(client, acme, admin):
    make_api_key(acme, name="the owner's", actor=acme.owner, via="page")
    client.force_login(admin)
    for act, data in (("remove", REVOKE_ALL), ("role", {"role": "viewer", "api_keys": "on"})):
        assert client.post(url(acme.owner, act), data).status_code == 403
    assert not AuditEvent.objects.filter(action="api_key.revoked").exists()


def test_a_role_that_makes_no_keys_is_asked_first_and_revokes_nothing_unasked(client, admin):
    response = client.post(url(admin, "role"), {"role": "viewer"})
    assert "nightly batch" in response.text
    assert "checked" not in response.text
    assert Membership.objects.get(user=admin).role == "admin"
    asked = {"role": "viewer"}
    client.post(url(admin, "role"), asked | seen(client, url(admin, "role"), asked))
    assert Membership.objects.get(user=admin).role == "viewer"
    assert works(admin) == (True, True, True, True)
    assert len(trail("member.role_changed")["kept"]) == 4
    assert f"{admin.email} (viewer now)" in client.get("/o/acme/keys/").text


def test_what_is_ticked_goes_with_the_role(client, admin):
    asked = {"role": "member"}
    client.post(url(admin, "role"), asked | {"api_keys": "on"} | seen(client, url(admin, "role"), asked))
    assert works(admin) == (False, True, True, True)
    assert trail("member.role_changed")["revoked"] == [f"API key nightly batch ({admin.key.prefix})"]
    # A member may order: their SSH key is no question.
    assert trail("member.role_changed")["kept"] == [
        "webhook https://hooks.example/in", "invitation of eve@home.example as admin",
    ]  # fmt: skip


def test_a_role_that_still_makes_keys_is_given_at_once(client, admin):
    assert client.post(url(admin, "role"), {"role": "owner"}).status_code == 302
    assert Membership.objects.get(user=admin).role == "owner"
    assert works(admin) == (True, True, True, True)


def test_a_removed_members_saved_search_mails_nobody_from_that_moment(client, acme, admin):
    search = make_search(acme, by=admin, now=timezone.now() - timezone.timedelta(minutes=5))
    assert search.name in client.get(url(admin, "remove")).text
    here = url(admin, "remove")
    client.post(here, KEEP_ALL | seen(client, here))
    make_machine(gpu=make_gpu("rtx-4090", name="RTX 4090", memory_gb_nominal=24))
    mail.outbox.clear()
    assert check_saved_searches(timezone.now()) == 1
    assert mail.outbox == []
    assert "no longer a member: no mail goes out" in client.get("/o/acme/searches/").text


@pytest.mark.parametrize("fate", ["", "keep", "revoke"])
@pytest.mark.parametrize("change", [{"role": "viewer"}, {"DELETE": "on"}])
def test_staff_decide_too_when_they_remove_somebody_or_change_the_role(client, acme, admin, change, fate):
    client.force_login(make_user("staff@example.com", is_staff=True, is_superuser=True))
    rows = list(Membership.objects.order_by("pk"))
    form = {"name": "Acme", "memberships-TOTAL_FORMS": 2, "memberships-INITIAL_FORMS": 2}
    for number, row in enumerate(rows):
        values = {"id": row.pk, "organization": acme.pk, "role": row.role, "made": ""}
        if row.user_id == admin.pk:
            values |= change | {"made": fate}
        form |= {f"memberships-{number}-{name}": value for name, value in values.items()}
    response = client.post(f"/admin/rentals/organization/{acme.pk}/change/", form)
    assert response.status_code == (302 if fate else 200)
    assert works(admin) == (fate != "revoke",) * 4
    changed = AuditEvent.objects.filter(action__startswith="member.").first()
    if not fate:
        assert "nightly batch" in response.text
        assert changed is None
    else:
        assert len(changed.data["revoked" if fate == "revoke" else "kept"]) == 4
        assert (changed.via, changed.data["before"]) == ("staff", "admin")
