"""SSH public keys over the API: the rules and words of the page, and a repeat that is safe."""

from datetime import timedelta
from typing import Any

import pytest

from rentals.models import ApiKey, AuditEvent, OrganizationPolicy, SshKey
from rentals.ssh_keys import MAX_KEYS, read_key
from tests.factories import make_api_key, make_ssh_key, ssh_line
from tests.rentals.calls import assert_problem, call, faults, get, post


def test_a_key_is_added_read_and_taken_away(acme: Any, key: Any) -> None:
    added = post("ssh-keys", key, {"key": ssh_line("ada@home"), "name": "ada@laptop"})
    assert added.status_code == 201
    document = added.json()
    read = read_key(ssh_line("ada@home"))
    assert document["fingerprint"] == read.fingerprint
    assert document["key"] == f"ssh-ed25519 {read.blob} ada@laptop"
    assert document["added_by"] == f"API key batch ({key.prefix})"
    assert document["html_url"] == "http://testserver/o/acme/ssh-keys/"
    assert added.headers["Location"] == f"/api/v1/ssh-keys/{document['id']}"
    assert get(added.headers["Location"], key).json() == document
    assert get("ssh-keys", key).json() == {"results": [document], "next": None}
    gone = call("DELETE", f"ssh-keys/{document['id']}", key)
    assert (gone.status_code, gone.content) == (204, b"")
    assert_problem(call("DELETE", f"ssh-keys/{document['id']}", key), 404, "not_found")
    trail = AuditEvent.objects.filter(organization=acme, action__startswith="ssh_key.").order_by("id")
    assert [(event.action, event.via, event.actor_name) for event in trail] == [
        ("ssh_key.added", "api", f"API key batch ({key.prefix})"),
        ("ssh_key.removed", "api", f"API key batch ({key.prefix})"),
    ]


def test_the_same_key_again_is_the_one_that_is_kept(acme: Any, key: Any) -> None:
    kept = make_ssh_key(acme, "ada@laptop")
    again = post("ssh-keys", key, {"key": ssh_line("ada@laptop"), "name": "another name"})
    assert again.status_code == 200
    assert (again.json()["id"], again.json()["name"]) == (kept.pk, "ada@laptop")
    assert again.json()["added_by"] == acme.owner.email
    assert SshKey.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("key", "required")]),
        ({"key": None}, [("key", "required")]),
        ({"key": 7}, [("key", "invalid")]),
        ({"key": "hello"}, [("key", "invalid")]),
        ({"key": ssh_line(""), "name": None}, [("key", "invalid")]),
        ({"key": ssh_line(), "name": "x" * 101}, [("key", "invalid")]),
        ({"key": ssh_line(), "naem": "x"}, [("naem", "unknown_field")]),
        ([], [("body", "invalid")]),
    ],
)
def test_what_is_no_key_is_refused_at_its_field(key: Any, body: Any, expected: list[tuple[str, str]]) -> None:
    assert faults(post("ssh-keys", key, body)) == expected
    assert not SshKey.objects.exists()


def test_a_private_key_is_refused_and_not_repeated(key: Any) -> None:
    private = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\n-----END OPENSSH PRIVATE KEY-----"
    refused = post("ssh-keys", key, {"key": private})
    assert "private key" in assert_problem(refused, 400, "invalid")["detail"]
    assert "b3BlbnNz" not in refused.content.decode()


def test_there_are_only_so_many(acme: Any, key: Any) -> None:
    one = make_ssh_key(acme)
    SshKey.objects.bulk_create(
        SshKey(organization=acme, kind=one.kind, blob=one.blob, comment="x", fingerprint=str(n), added_at=one.added_at)
        for n in range(MAX_KEYS - 1)
    )
    detail = assert_problem(post("ssh-keys", key, {"key": ssh_line("b")}), 409, "limit_reached")["detail"]
    assert detail == f"At most {MAX_KEYS} keys are kept. Remove one first."


def test_scopes_and_organizations_are_kept_apart(acme: Any, globex: Any, key: Any) -> None:
    mine, theirs = make_ssh_key(acme), make_ssh_key(globex, "eve@globex")
    reading, ordering = make_api_key(acme, "read"), make_api_key(acme, "order")
    assert [row["id"] for row in get("ssh-keys", reading).json()["results"]] == [mine.pk]
    assert_problem(get("ssh-keys", ordering), 403, "forbidden")
    assert_problem(post("ssh-keys", reading, {"key": ssh_line("b")}), 403, "forbidden")
    assert_problem(call("DELETE", f"ssh-keys/{mine.pk}", reading), 403, "forbidden")
    for method in ("GET", "DELETE"):
        assert_problem(call(method, f"ssh-keys/{theirs.pk}", key), 404, "not_found")
    assert post("ssh-keys", ordering, {"key": ssh_line("eve@globex")}).status_code == 201
    assert SshKey.objects.filter(organization=globex).count() == 1


def test_where_owners_alone_order_a_key_keeps_none(acme: Any, key: Any, now: Any) -> None:
    mine = make_ssh_key(acme)
    policy = OrganizationPolicy.objects.create(organization=acme, order_role="owner", changed_at=now)
    for answer in (post("ssh-keys", key, {"key": ssh_line("eve")}), call("DELETE", f"ssh-keys/{mine.pk}", key)):
        assert assert_problem(answer, 403, "policy")["rule"] == "order_role"
    assert SshKey.objects.get() == mine
    policy.order_role = "admin"
    policy.save()
    assert post("ssh-keys", key, {"key": ssh_line("eve")}).status_code == 201


def test_a_revoked_key_changes_nothing(acme: Any, key: Any, now: Any) -> None:
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=now - timedelta(seconds=1))
    assert_problem(post("ssh-keys", key, {"key": ssh_line()}), 401, "unauthenticated")
    assert not SshKey.objects.exists()


def test_the_list_comes_in_pages(acme: Any, key: Any) -> None:
    made = [make_ssh_key(acme, f"{n}@laptop").pk for n in range(3)]
    first = get("ssh-keys?limit=2", key).json()
    rest = get(first["next"].removeprefix("http://testserver"), key).json()
    assert [row["id"] for row in first["results"] + rest["results"]] == made
    assert rest["next"] is None
