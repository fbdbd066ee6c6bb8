"""API keys: made once, shown once, recognised in constant time, refused from the moment they are revoked."""

import io
import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from rentals.api_keys import authenticate, check_still_live, create_api_key, revoke_api_key
from rentals.errors import InvalidApiKey, KeyNotAccepted, NotPermitted
from rentals.models import ApiKey, AuditEvent
from tests.factories import make_api_key, make_member, make_user
from tests.tenancy import statements

FORMAT = re.compile(r"berth_[A-Za-z0-9]{12}_[A-Za-z0-9]{43}")


def test_a_key_is_recognised_and_only_its_hash_is_kept(acme, now):
    key = make_api_key(acme, "read")
    assert FORMAT.fullmatch(key.text)
    found = authenticate(key.text, now=now)
    assert (found.pk, found.organization, found.scopes) == (key.pk, acme, ["read"])
    secret = key.text.rsplit("_", 1)[1]
    assert not any(secret in str(value) for row in ApiKey.objects.values() for value in row.values())
    assert not any(secret in str(row) for row in AuditEvent.objects.values())


@pytest.mark.parametrize(
    "text",
    ["", "berth", "berth__", "x" * 100_000, "berth_\0", "schlüssel", "🔑", "\ud800", "berth_' OR 1=1", "Bearer"],
)
def test_what_is_no_key_is_refused(acme, now, text):
    with pytest.raises(KeyNotAccepted):
        authenticate(text, now=now)


def test_a_key_with_another_secret_or_a_line_end_is_refused(acme, now):
    first, second = make_api_key(acme), make_api_key(acme)
    for text in (first.text[:-1] + "_", first.text[:20] + second.text[20:], first.text + "\n", first.text[:-1]):
        with pytest.raises(KeyNotAccepted):
            authenticate(text, now=now)


def test_a_key_ends_when_it_expires_and_when_it_is_revoked(acme, now):
    key = make_api_key(acme, expires_at=now + timedelta(days=1), now=now)
    authenticate(key.text, now=now + timedelta(hours=23))
    with pytest.raises(KeyNotAccepted, match="expired"):
        authenticate(key.text, now=now + timedelta(days=1))
    revoke_api_key(acme, key.pk, actor=acme.owner, via="page", now=now)
    with pytest.raises(KeyNotAccepted, match="revoked"):
        authenticate(key.text, now=now)
    with pytest.raises(KeyNotAccepted, match="revoked"):
        check_still_live(key, now=now)


def test_use_is_noted_at_most_once_a_minute(acme, now):
    key = make_api_key(acme, now=now)
    for seconds, most in ((0, 2), (0, 1), (1, 1), (59, 1)):
        with CaptureQueriesContext(connection) as counted:
            authenticate(key.text, now=now + timedelta(seconds=seconds))
        assert len(statements(counted.captured_queries)) == most
    assert ApiKey.objects.get().last_used_at == now
    authenticate(key.text, now=now + timedelta(seconds=60))
    assert ApiKey.objects.get().last_used_at == now + timedelta(seconds=60)


@pytest.mark.parametrize("scopes", [[], ["write"], ["read", "admin"]])
def test_scopes_are_read_and_order(acme, now, scopes):
    with pytest.raises(InvalidApiKey, match="read and order"):
        create_api_key(acme, name="x", scopes=scopes, actor=None, via="system", now=now)


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_owners_and_admins_manage_keys_and_others_do_not(acme, now, role):
    key, other = make_api_key(acme), make_member(acme, role)
    with pytest.raises(NotPermitted):
        create_api_key(acme, name="x", scopes=["read"], actor=other, via="page", now=now)
    with pytest.raises(NotPermitted):
        revoke_api_key(acme, key.pk, actor=other, via="page", now=now)
    with pytest.raises(NotPermitted):
        revoke_api_key(acme, key.pk, actor=make_user(), via="page", now=now)


def test_the_audit_trail_has_who_made_and_revoked_which_key_once(acme, now):
    key = make_api_key(acme, actor=acme.owner, via="page", name="batch")
    for _ in range(2):
        revoke_api_key(acme, key.pk, actor=acme.owner, via="page", now=now)
    events = AuditEvent.objects.filter(action__startswith="api_key").order_by("id")
    assert [(event.action, event.object_id, event.actor_name) for event in events] == [
        ("api_key.created", key.prefix, "owner@acme.example"),
        ("api_key.revoked", key.prefix, "owner@acme.example"),
    ]


# --- The page -----------------------------------------------------------------------------------------------------


def form(**changes):
    return {"name": "nightly batch", "scopes": ["read", "order"], "expires": "90"} | changes


def test_the_page_shows_a_new_key_once_and_nowhere_else(client, acme, now):
    client.force_login(acme.owner)
    url = reverse("keys", args=["acme"])
    response = client.post(url, form())
    assert response.status_code == 200
    assert "no-store" in response.headers["Cache-Control"]
    text = FORMAT.search(response.content.decode()).group()
    assert authenticate(text, now=now).name == "nightly batch"
    again = client.get(url)
    assert text.encode() not in again.content
    assert ApiKey.objects.get().prefix.encode() in again.content
    assert text not in str(dict(client.session))


def test_a_key_that_never_expires_and_one_of_thirty_days(client, acme):
    client.force_login(acme.owner)
    for expires in ("", "30"):
        client.post(reverse("keys", args=["acme"]), form(expires=expires))
    limited, unlimited = ApiKey.objects.all()
    assert unlimited.expires_at is None
    assert limited.expires_at - limited.created_at == timedelta(days=30)


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": "a\0b"}, {"name": "x" * 81}, {"scopes": []}, {"scopes": ["all"]}, {"expires": "7"}]
)
def test_a_wrong_field_makes_no_key(client, acme, wrong):
    client.force_login(acme.owner)
    response = client.post(reverse("keys", args=["acme"]), form(**wrong))
    assert response.status_code == 400
    assert not ApiKey.objects.exists()


def test_revoking_asks_first(client, acme):
    key = make_api_key(acme)
    client.force_login(acme.owner)
    url = reverse("key-revoke", args=["acme", key.pk])
    assert b"Revoke key" in client.get(url).content
    assert ApiKey.objects.get().revoked_at is None
    assert client.post(url).status_code == 302
    assert ApiKey.objects.get().revoked_at is not None
    assert b"Revoked" in client.get(reverse("keys", args=["acme"])).content
    assert b"opens nothing any more" in client.get(url).content


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_members_and_viewers_see_no_keys(client, acme, role):
    key = make_api_key(acme, name="hidden name")
    client.force_login(make_member(acme, role))
    for url in (reverse("keys", args=["acme"]), reverse("key-revoke", args=["acme", key.pk])):
        for method in (client.get, client.post):
            response = method(url)
            assert response.status_code == 403
            assert b"hidden name" not in response.content
    assert ApiKey.objects.get().revoked_at is None


# --- The command and the administration ---------------------------------------------------------------------------


def test_the_command_prints_one_key(acme, now):
    out, notes = io.StringIO(), io.StringIO()
    call_command("create_api_key", "acme", scopes="read,order", expires_days=2, stdout=out, stderr=notes)
    key = authenticate(out.getvalue().strip(), now=now)
    assert key.scopes == ["read", "order"]
    assert key.expires_at - key.created_at == timedelta(days=2)
    assert "shown this once" in notes.getvalue()


@pytest.mark.parametrize(
    ("slug", "options", "said"),
    [
        ("nobody", {}, "no organization"),
        ("acme", {"scopes": "write"}, "read and order"),
        ("acme", {"scopes": ""}, "read and order"),
        ("acme", {"name": "a\nb"}, "letters"),
        ("acme", {"expires_days": 0}, "1 to 3650"),
        ("acme", {"expires_days": 10**9}, "1 to 3650"),
    ],
)
def test_the_command_says_what_is_wrong(acme, slug, options, said):
    with pytest.raises(CommandError, match=said):
        call_command("create_api_key", slug, **options)
    assert not ApiKey.objects.exists()


def test_staff_look_at_keys_and_revoke_them(client, acme):
    key = make_api_key(acme)
    client.force_login(make_user(is_staff=True, is_superuser=True))
    listing = client.get("/admin/rentals/apikey/")
    assert key.prefix.encode() in listing.content
    assert key.secret_hash.encode() not in client.get(f"/admin/rentals/apikey/{key.pk}/change/").content
    assert client.get("/admin/rentals/apikey/add/").status_code == 403
    client.post("/admin/rentals/apikey/", {"action": "revoke_keys", "_selected_action": [key.pk]})
    assert ApiKey.objects.get().revoked_at is not None
    assert AuditEvent.objects.filter(action="api_key.revoked", via="staff").count() == 1
