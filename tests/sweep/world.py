"""Two tenants with a row of everything, and the strings by which a row of the second is recognised in an answer."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone

from catalog.models import FeedQuestion, FeedRun, GpuAlias, Machine, PlaceAlias
from rentals.cancellations import cancel_order
from rentals.members import remove_member
from rentals.models import (
    ApiKey,
    Invitation,
    Membership,
    Order,
    Organization,
    OrganizationPolicy,
    OwnModel,
    SavedSearch,
    SentForm,
    SshKey,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEvent,
)
from rentals.row_security import tenant_models
from tests.factories import make_ai_model as make_model
from tests.factories import (
    make_api_key,
    make_delivered,
    make_invitation,
    make_machine,
    make_member,
    make_option,
    make_order,
    make_organization,
    make_own_model,
    make_ssh_key,
    make_user,
)

# In every text of the second tenant's rows, and in nothing else.
WORD = "quillmere"
_SHORTEST = 6


@dataclass
class Tenant:
    """An organization, its people and one row of everything that it can have."""

    organization: Any
    owner: User
    member: User
    viewer: User
    removed: User
    order: Order
    keys: dict[str, Any] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    values: dict[str, object] = field(default_factory=dict)


@dataclass
class World:
    """`ours` looks at `theirs`; `markers` are strings that only rows of `theirs` have."""

    machine: Machine
    ours: Tenant
    theirs: Tenant
    nobody: User
    people: dict[str, User]
    markers: frozenset[str] = frozenset()

    @property
    def secrets(self) -> set[str]:
        return self.ours.secrets | self.theirs.secrets


def build() -> World:
    make_model()
    make_option("storage-500")
    machine = make_machine(name="Machine of the sweep", lots=50, price_7_days_usd=Decimal("2463.79"))
    staff = make_user("staff@berth.example", is_staff=True, is_superuser=True)
    ours = _tenant("alderbrook", machine, lots=2)
    theirs = _tenant(WORD, machine, lots=5)
    Group.objects.create(name="of the sweep")
    GpuAlias.objects.create(gpu=machine.gpu, name="GPU of the sweep")
    PlaceAlias.objects.create(name="Place of the sweep", country="DE")
    now = timezone.now()
    FeedRun.objects.create(provider=machine.provider, started_at=now)
    FeedQuestion.objects.create(provider=machine.provider, kind="gpu", raw="GPU of the sweep", first_seen_at=now,
                                last_seen_at=now)  # fmt: skip
    Authenticator.objects.create(user=theirs.owner, type=Authenticator.Type.TOTP, data={"secret": "no secret"})
    UserSession.objects.create(user=theirs.owner, ip="127.0.0.1", session_key="of-the-sweep", user_agent="sweep")
    catalog_staff = make_user("catalog@berth.example", is_staff=True)
    catalog_staff.user_permissions.set(Permission.objects.filter(content_type__app_label__in=["catalog", "sizing"]))
    world = World(machine, ours, theirs, make_user("nobody@berth.example"), {})
    world.people = {
        "owner of another organization": ours.owner,
        "user without organization": world.nobody,
        "removed member": theirs.removed,
        "staff": staff,
        "staff without permissions": make_user("new@berth.example", is_staff=True),
        "staff of the catalog": catalog_staff,
    }
    for tenant in (ours, theirs):
        tenant.values = values_of(tenant)
    world.markers = markers_of(theirs.organization) - markers_of(ours.organization)
    return world


def _tenant(word: str, machine: Machine, *, lots: int) -> Tenant:
    """A new table of tenants gets its row here; a test names the table that has none."""
    organization = make_organization(f"{word}-labs", name=f"{word.title()} Laboratories", owner=_person(word, "owner"))
    member, viewer, removed = (_person(word, role) for role in ("member", "viewer", "removed"))
    for user, role in ((member, "member"), (viewer, "viewer"), (removed, "admin")):
        make_member(organization, role, user=user)
    OrganizationPolicy.objects.create(
        organization=organization, changed_at=timezone.now(), max_month_usd=Decimal(f"91827{lots}.64")
    )
    order = make_order(
        organization, machine, lots=lots, environment_notes=f"notes-{word}",
        placement={"idempotency_key": f"order-key-{word}", "actor": removed},
    )  # fmt: skip
    make_delivered(order, host=f"gpu.{word}.example", login=f"{word}-login", notes=f"door of {word}")
    given_up = make_order(organization, machine, placement={"idempotency_key": f"cancelled-{word}"})
    staff = User.objects.get(username="staff@berth.example")
    cancel_order(
        given_up.pk, reason=f"reason of {word}", credit_usd=given_up.total_usd, actor=staff, now=timezone.now()
    )
    tenant = Tenant(organization, organization.owner, member, viewer, removed, order)
    for name, scopes in (("both", ()), ("read", ("read",)), ("order", ("order",)), ("revoked", ()), ("expired", ())):
        tenant.keys[name] = key = make_api_key(organization, *scopes, name=f"{name} {word}")
        tenant.secrets |= {key.text, key.text.rpartition("_")[2], key.secret_hash}
    ApiKey.objects.filter(pk=tenant.keys["revoked"].pk).update(revoked_at=timezone.now())
    ApiKey.objects.filter(pk=tenant.keys["expired"].pk).update(expires_at=timezone.now() - timedelta(days=1))
    make_ssh_key(organization, f"{word}@laptop")
    tenant.secrets |= _webhooks(order, word)
    now = timezone.now()
    SentForm.objects.create(
        organization=organization, key=str(uuid.uuid4()), sent="", made=f"made for {word}", made_at=now
    )
    SavedSearch.objects.create(
        organization=organization, name=f"Search of {word}", query=f"task=run&word={word}", created_at=now,
        checked_at=now,
    )  # fmt: skip
    make_own_model(organization, f"Secret of {word}")
    invitation = make_invitation(organization, f"invited@{word}.example")
    tenant.secrets |= {invitation.token_hash, invitation.link.strip("/").rpartition("/")[2]}
    manager = Membership.objects.get(organization=organization, user=organization.owner)
    remove_member(manager, Membership.objects.get(organization=organization, user=removed).pk, now=timezone.now())
    return tenant


def _webhooks(order: Order, word: str) -> set[str]:
    """An endpoint with an event, its delivery and an attempt of it. What may be shown to nobody."""
    now, whose = order.starts_at, {"organization": order.organization}
    endpoint = WebhookEndpoint.objects.create(
        **whose, url=f"https://hooks.{word}.example/berth", description=f"Hook of {word}", secret=f"sealed-{word}",
        secret_made_at=now, created_at=now, next_send_at=now, events=["order.placed"],
    )  # fmt: skip
    event = WebhookEvent.objects.create(**whose, kind="webhook.test", body=f'{{"of": "{word}"}}', created_at=now)
    times = {"created_at": now, "next_attempt_at": now}
    delivery = WebhookDelivery.objects.create(**whose, endpoint=endpoint, event=event, **times)
    WebhookAttempt.objects.create(
        **whose, delivery=delivery, at=now, milliseconds=7, status=500, problem=f"problem of {word}",
        answer=f"answer of {word}",
    )  # fmt: skip
    return {f"sealed-{word}"}


def _person(word: str, role: str) -> User:
    return make_user(f"{role}@{word}.example", first_name=f"First-{word}", last_name=f"Last-{word}-{role}")


# --- What belongs to a tenant ----------------------------------------------------------------------------------------


def rows_of(organization: Organization) -> dict[str, list[Any]]:
    """Every row of the organization, by its table, and the accounts of those who are or were in it."""
    rows = {}
    for model in tenant_models():
        if model is Organization:
            found = model.objects.filter(pk=organization.pk)
        else:
            found = model.objects.filter(organization=organization)
        rows[model._meta.label] = list(found.order_by("pk"))
    word = organization.slug.partition("-")[0]
    rows["auth.User"] = list(User.objects.filter(email__endswith=f"@{word}.example").order_by("pk"))
    rows["account.EmailAddress"] = list(EmailAddress.objects.filter(email__endswith=f"@{word}.example").order_by("pk"))
    return rows


def digests(organization: Organization) -> dict[str, str]:
    """A digest of each row, by table and id: what differs names the row that somebody changed."""
    found = {}
    for label, rows in rows_of(organization).items():
        for row in rows:
            # When an account signs in and when a key is used is noted of whoever does it.
            values = [
                (each.attname, _plain(getattr(row, each.attname)))
                for each in row._meta.concrete_fields
                if each.attname not in ("last_login", "last_used_at")
            ]
            found[f"{label} {row.pk}"] = hashlib.sha256(repr(values).encode()).hexdigest()
    return found


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def markers_of(organization: Organization) -> frozenset[str]:
    """Every text, number of money and UUID in the organization's rows, long enough to be no accident."""
    found = set()
    for rows in rows_of(organization).values():
        for row in rows:
            for each in row._meta.concrete_fields:
                if not (each.is_relation and each.related_model is Machine):
                    found |= set(_texts(getattr(row, each.attname)))
    return frozenset(text for text in found if len(text) >= _SHORTEST)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case uuid.UUID():
            yield str(value)
        case Decimal():
            yield from (str(value), f"{value:,}")
        case dict():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)


# --- How addresses are filled ----------------------------------------------------------------------------------------


def values_of(tenant: Tenant) -> dict[str, object]:
    """A value for every parameter of an address, each one of the tenant's own rows."""
    mine = tenant.organization
    return {
        "organization": mine.slug,
        "order_id": tenant.order.pk,
        "number": 1,
        "key_id": ApiKey.objects.filter(organization=mine, revoked_at__isnull=True).latest("pk").pk,
        "invitation_id": Invitation.objects.filter(organization=mine).latest("pk").pk,
        "endpoint_id": WebhookEndpoint.objects.get(organization=mine).pk,
        "delivery_id": WebhookDelivery.objects.filter(organization=mine).latest("pk").pk,
        "event_id": WebhookEvent.objects.filter(organization=mine).latest("created_at").pk,
        "search_id": SavedSearch.objects.get(organization=mine).pk,
        "model_slug": OwnModel.objects.filter(organization=mine).latest("pk").slug,
        "ssh_key_id": SshKey.objects.filter(organization=mine).latest("pk").pk,
        "month": f"{tenant.order.starts_at:%Y-%m}",
        "membership_id": Membership.objects.get(organization=mine, user=tenant.member).pk,
        # Of everybody's addresses.
        "machine_id": tenant.order.machine_id,
        "slug": "nothing-of-this-name",
        "token": "a-token-that-was-never-sent",
        "key": "a-key-that-was-never-sent",
        "uidb36": "1",
        "url": "no/such/page/",
        "app_label": "rentals",
        "kind": "csv",
        "content_type_id": "1",
    }


def object_of(tenant: Tenant, admin_model: str) -> object:
    """The id of one of the tenant's rows of a model of the administration; of any row where it is no tenant's."""
    if admin_model == "rentals_order":
        return tenant.order.pk
    for label, rows in rows_of(tenant.organization).items():
        if label.lower().replace(".", "_") == admin_model and rows:
            return rows[0].pk
    row = apps.get_model(*admin_model.split("_", 1))._default_manager.order_by("pk").last()
    assert row is not None, f"Make a row of {admin_model} in tests/sweep/world.py."
    return row.pk


def version_of(admin_model: str, object_id: object) -> object:
    """The id of a version in the history of a row."""
    version = apps.get_model(*admin_model.split("_", 1)).history.filter(id=object_id).first()
    assert version is not None, f"Make a row of {admin_model} with a history in tests/sweep/world.py."
    return version.history_id
