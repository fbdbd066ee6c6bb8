"""A form that is sent twice, as it was or filled in anew: what it makes is made once, and a secret is shown once."""

import re
from html import unescape

import pytest
from django.core import mail
from django.test import Client

from rentals.models import (
    ApiKey,
    AuditEvent,
    Invitation,
    Organization,
    OwnModel,
    SavedSearch,
    SentForm,
    SshKey,
    WebhookEndpoint,
)
from tests.factories import make_invitation, make_machine, make_organization, make_user, ssh_line
from tests.rentals.test_concurrency import at_once
from tests.sizing.own_files import config

KEY = re.compile(r'<input type="hidden" name="form_key" value="([0-9a-f-]{36})">')
# The page with the form, where it is sent, what is made, what it is filled in with, and with what the second time.
FORMS = {
    "api key": (
        "/o/acme/keys/", "", ApiKey, {"name": "nightly", "scopes": ["read"], "expires": "90"}, {"name": "weekly"},
    ),
    "webhook": (
        "/o/acme/webhooks/", "", WebhookEndpoint, {"url": "https://hooks.example/", "events": ["order.placed"]},
        {"url": "https://hooks.example/2"},
    ),
    "ssh key": ("/o/acme/ssh-keys/", "", SshKey, {"key": ssh_line(), "name": ""}, {"key": ssh_line("eve@desk")}),
    "own model": ("/o/acme/models/", "", OwnModel, {"config_text": config().decode()}, {"own_name": "Other"}),
    "invitation": (
        "/o/acme/members/", "", Invitation, {"email": "new@example.com", "role": "viewer"}, {"role": "member"},
    ),
    "saved search": (
        "/o/acme/launch/result/?task=notebook&gpu_memory_gib=20", "/o/acme/searches/", SavedSearch,
        {"name": "24 GiB", "query": "task=notebook&gpu_memory_gib=20"}, {"name": "other"},
    ),
}  # fmt: skip
SECRETS = re.compile(r"berth_[A-Za-z0-9]{12}_[A-Za-z0-9]{43}|whsec_[A-Za-z0-9+/=]+|/invitations/[A-Za-z0-9_-]{43}/")


@pytest.fixture
def client(acme, client):
    make_machine()
    client.force_login(acme.owner)
    return client


@pytest.mark.parametrize("what", FORMS)
def test_a_form_sent_twice_makes_one_and_says_so_without_the_secret(client, what):
    page, action, model, data, _ = FORMS[what]
    form = data | {"form_key": KEY.search(client.get(page, follow=True).text)[1]}
    first = client.post(action or page, form, follow=True)
    assert first.status_code == 200
    mails = len(mail.outbox)
    for _ in range(2):
        again = client.post(action or page, form, follow=True)
        assert again.status_code == 200
        assert re.search(r" (made|added|kept|invited|saved) already, at \d\d:\d\d:\d\d UTC\.", again.text)
        assert "There is a problem" not in again.text
        assert not SECRETS.search(again.text)
    assert model.objects.count() == 1
    assert len(mail.outbox) == mails
    assert bool(SECRETS.search(first.text)) == (what in ("api key", "webhook", "invitation"))


@pytest.mark.parametrize("what", FORMS)
def test_a_form_filled_in_anew_makes_nothing_before_it_is_sent_again(client, what):
    page, action, model, data, other = FORMS[what]
    form = data | {"form_key": KEY.search(client.get(page, follow=True).text)[1]}
    client.post(action or page, form)
    before = model.objects.values_list().get()
    changed = client.post(action or page, form | other)
    assert changed.status_code in (400, 409)
    assert "This form was sent before:" in unescape(changed.text)
    assert not SECRETS.search(changed.text)
    assert model.objects.values_list().get() == before
    again = client.post(action or page, form | other | {"form_key": KEY.search(changed.text)[1]}, follow=True)
    assert again.status_code == 200
    # One address has one open invitation: it is changed, and nobody is invited twice.
    assert model.objects.count() == (1 if what == "invitation" else 2)


@pytest.mark.parametrize("what", FORMS)
def test_a_refused_form_leaves_its_key_free(client, what):
    page, action, model, data, _ = FORMS[what]
    form = data | {"form_key": KEY.search(client.get(page, follow=True).text)[1]}
    broken = dict.fromkeys(data, "")
    assert client.post(action or page, form | broken).status_code == 400
    assert not SentForm.objects.exists()
    assert client.post(action or page, form).status_code in (200, 302)
    assert model.objects.count() == 1


def test_a_new_link_is_sent_once_for_each_button(client, acme):
    invitation = make_invitation(acme)
    keys = KEY.findall(client.get("/o/acme/members/").text)
    assert len(keys) == len(set(keys)) == 2
    for number in range(3):
        client.post(f"/o/acme/members/invitations/{invitation.pk}/resend/", {"form_key": keys[0]}, follow=number == 2)
    assert AuditEvent.objects.filter(action="invitation.sent_again").count() == 1


def test_what_is_no_key_of_a_form_is_none_and_never_a_server_error(client):
    for odd in ("", "x", "\x00", "0" * 36 + "\n", "é" * 36, "9" * 5000):
        data = {"name": "n", "scopes": ["read"], "expires": "90", "form_key": odd}
        assert client.post("/o/acme/keys/", data).status_code == 200
    assert not SentForm.objects.exists()
    assert ApiKey.objects.count() == 6


def test_a_key_is_an_organizations_own(client, acme, globex):
    stranger = Client()
    stranger.force_login(globex.owner)
    form = FORMS["api key"][3] | {"form_key": "0" * 36}
    assert client.post("/o/acme/keys/", form).status_code == 200
    response = stranger.post("/o/globex/keys/", form)
    assert response.status_code == 200
    assert SECRETS.search(response.text)
    assert SentForm.objects.count() == 2


def test_a_second_organization_of_the_same_name_is_the_first(client, acme):
    for name in ("Second Team", "second  team"):
        assert client.post("/o/new/", {"organization_name": name}).url == "/o/second-team/"
    assert "You have an organization Second Team already" in client.get("/o/second-team/").text
    assert Organization.objects.count() == 2


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_double_click_makes_one_key():
    acme = make_organization("acme")
    clients = [Client() for _ in range(4)]
    for client in clients:
        client.force_login(acme.owner)
    form = FORMS["api key"][3] | {"form_key": "1" * 36}
    answers = at_once([lambda client=client: client.post("/o/acme/keys/", form).status_code for client in clients])
    assert sorted(answers) == [200, 302, 302, 302]
    assert ApiKey.objects.count() == 1


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_double_click_makes_one_organization():
    clients, user = [Client() for _ in range(4)], make_user("ada@example.com")
    for client in clients:
        client.force_login(user)
    answers = at_once(
        [lambda client=client: client.post("/o/new/", {"organization_name": "Twice"}).url for client in clients]
    )
    assert answers == ["/o/twice/"] * 4
    assert Organization.objects.count() == 1
