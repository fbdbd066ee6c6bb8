"""SSH public keys: what is taken, what is refused, and who may change them."""

import base64

import pytest
from django.urls import reverse

from rentals.errors import InvalidSshKey
from rentals.models import AuditEvent, OrganizationPolicy, SshKey
from rentals.ssh_keys import MAX_KEYS, read_key
from tests.factories import make_member, make_ssh_key, ssh_line

PAGE = "/o/acme/ssh-keys/"


def line(kind, *fields, name="ada@laptop"):
    blob = b"".join(len(field).to_bytes(4, "big") + field for field in (kind.encode(), *fields))
    return f"{kind} {base64.b64encode(blob).decode()} {name}"


def rsa(bits, exponent=65537):
    modulus = (1 << (bits - 1)) | 1
    return line("ssh-rsa", number(exponent), number(modulus))


def number(value):
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return b"\x00" + raw if raw[0] & 0x80 else raw


def ecdsa(curve, size):
    return line(f"ecdsa-sha2-{curve}", curve.encode(), b"\x04" + b"\x01" * (size - 1))


@pytest.mark.parametrize(
    "text",
    [
        ssh_line(),
        rsa(3072),
        rsa(4096),
        ecdsa("nistp256", 65),
        ecdsa("nistp384", 97),
        ecdsa("nistp521", 133),
        f"\r\n  {ssh_line()}  \r\n",
    ],
)
def test_keys_of_known_types_are_read(text):
    key = read_key(text)
    assert key.comment == "ada@laptop"
    assert key.fingerprint.startswith("SHA256:")
    assert len(key.fingerprint) == len("SHA256:") + 43


def test_the_fingerprint_is_the_one_ssh_keygen_prints():
    key = read_key("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl github")
    assert key.fingerprint == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "one public key"),
        ("hello", "type of key"),
        (rsa(2048), "2,048 bits"),
        (rsa(3071), "3,071 bits"),
        (rsa(3072, exponent=2), "cut off or damaged"),
        ("ssh-dss AAAAB3NzaC1kc3M= old", "type of key"),
        ("ssh-ed25519-cert-v01@openssh.com AAAA x", "type of key"),
        (f'command="rm -rf /" {ssh_line()}', "type of key"),
        (ssh_line().replace("ssh-ed25519", "ssh-rsa", 1), "another type"),
        (line("ssh-ed25519", b"\x01" * 31), "cut off or damaged"),
        (line("ssh-ed25519", b"\x01" * 32, b"more"), "cut off or damaged"),
        (line("ecdsa-sha2-nistp256", b"nistp384", b"\x04" + b"\x01" * 64), "cut off or damaged"),
        (line("ecdsa-sha2-nistp256", b"nistp256", b"\x02" + b"\x01" * 64), "cut off or damaged"),
        (ssh_line()[:40], "cut off or damaged"),
        ("ssh-ed25519 AAAA*** x", "not complete"),
        ("ssh-ed25519 \u00e4\u00f6 x", "not complete"),
        (ssh_line() + "\n" + ssh_line("bob"), "one public key"),
        ("x" * 20_000, "one public key"),
        (ssh_line("").strip(), "Name the key"),
        (ssh_line("a" * 101), "Name the key"),
        (ssh_line("a\u202eb"), "Name the key"),
        (ssh_line("a\x00b"), "Name the key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n", "private key"),
    ],
)
def test_what_is_no_such_key_is_refused_with_the_fix(text, words):
    with pytest.raises(InvalidSshKey, match=words):
        read_key(text)


def test_a_member_adds_sees_and_removes_a_key(client, acme):
    member = make_member(acme)
    client.force_login(member)
    client.post(PAGE, {"key": ssh_line(), "name": "Work laptop"}, follow=True)
    key = SshKey.objects.get()
    html = client.get(PAGE).content.decode()
    assert "Work laptop" in html
    assert key.fingerprint.replace("+", "&#x2B;") in html or key.fingerprint in html
    client.post(reverse("ssh-key-remove", args=["acme", key.pk]))
    assert not SshKey.objects.exists()
    acts = list(AuditEvent.objects.filter(action__startswith="ssh_key").values_list("action", "actor"))
    assert acts == [("ssh_key.removed", member.pk), ("ssh_key.added", member.pk)]


def test_a_key_is_kept_once_and_only_so_many(client, acme):
    make_ssh_key(acme)
    client.force_login(acme.owner)
    response = client.post(PAGE, {"key": ssh_line(), "name": "again"})
    assert response.status_code == 400
    assert "This key is here already." in response.content.decode()
    for each in range(MAX_KEYS - 1):
        make_ssh_key(acme, f"key-{each}")
    response = client.post(PAGE, {"key": ssh_line("one more")})
    assert f"At most {MAX_KEYS} keys" in response.content.decode()
    assert SshKey.objects.count() == MAX_KEYS


def test_the_same_key_of_another_organization_is_another(acme, globex):
    assert make_ssh_key(acme).fingerprint == make_ssh_key(globex).fingerprint


def test_a_private_key_is_neither_kept_nor_shown_again(client, acme):
    client.force_login(acme.owner)
    response = client.post(PAGE, {"key": "-----BEGIN OPENSSH PRIVATE KEY-----\nsecretsecret\n-----END"})
    assert response.status_code == 400
    assert "This is a private key" in response.content.decode()
    assert b"secretsecret" not in response.content


@pytest.mark.parametrize(("role", "least"), [("viewer", None), ("member", "admin"), ("admin", "owner")])
def test_who_may_not_order_by_role_or_policy_sees_and_changes_no_key(client, acme, now, role, least):
    key = make_ssh_key(acme)
    if least:
        OrganizationPolicy.objects.create(organization=acme, order_role=least, changed_at=now)
    client.force_login(make_member(acme, role))
    html = client.get(PAGE).content.decode()
    assert "ada@laptop" not in html
    assert "Members who may order see, add and remove keys." in html
    assert "Add key" not in html
    assert client.post(PAGE, {"key": ssh_line("bob")}).status_code == 403
    assert client.post(reverse("ssh-key-remove", args=["acme", key.pk])).status_code == 403
    assert SshKey.objects.count() == 1
