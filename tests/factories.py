"""Short ways to make the rows a test needs. Every argument has a default; a test names only what it is about."""

import base64
import hashlib
from decimal import Decimal
from itertools import count
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from catalog.models import Gpu, Machine, MemorySource, Option, Provider, Tier
from catalog.pricing import package_price
from catalog.units import GIB
from rentals.api_keys import create_api_key
from rentals.baskets import Basket
from rentals.deliveries import Details, deliver
from rentals.invitations import invite
from rentals.models import Membership, Organization
from rentals.models.webhooks import EventKind
from rentals.ordering import place_order
from rentals.own_models import add_own_model
from rentals.quotes import quote
from rentals.saved_searches import save_search
from rentals.ssh_keys import add_key, read_key
from rentals.webhooks_endpoints import Wish, create_endpoint
from sizing.models import AiModel
from sizing.own_reading import read_files
from tests.sizing.own_files import config

_number = count(1)

PASSWORD = "a-password-of-the-tests"


def make_user(email: str | None = None, **fields: Any) -> User:
    """A user who signs in with `email` and PASSWORD, the address verified."""
    email = email or f"person{next(_number)}@example.com"
    user = User.objects.create_user(username=email, email=email, password=PASSWORD, **fields)
    EmailAddress.objects.create(user=user, email=email, verified=True, primary=True)
    return user


def make_organization(slug: str | None = None, *, owner: User | None = None, **fields: Any) -> Organization:
    """An organization with an owner, who is also its attribute `owner`."""
    slug = slug or f"organization-{next(_number)}"
    organization = Organization.objects.create(slug=slug, **{"name": slug.capitalize(), **fields})
    organization.owner = owner or make_user(f"owner@{slug}.example")
    make_member(organization, "owner", user=organization.owner)
    return organization


def make_member(organization: Organization, role: str = "member", *, user: User | None = None) -> User:
    """A user with a role in the organization."""
    user = user or make_user()
    Membership.objects.create(organization=organization, user=user, role=role)
    return user


def make_gpu(slug: str | None = None, **fields: Any) -> Gpu:
    slug = slug or f"gpu-{next(_number)}"
    return Gpu.objects.create(slug=slug, **{"name": slug.replace("-", " ").upper(), "vendor": "NVIDIA", **fields})


def make_provider(slug: str | None = None, **fields: Any) -> Provider:
    slug = slug or f"provider-{next(_number)}"
    return Provider.objects.create(slug=slug, **{"name": slug.replace("-", " ").title(), **fields})


def make_machine(**fields: Any) -> Machine:
    """A Secure machine with one 24 GiB GPU measured by its data center, one lot, all of them free."""
    hourly = fields.setdefault("hourly_usd", Decimal("0.654762"))
    tier = fields.setdefault("tier", Tier.SECURE)
    fields.setdefault("name", f"Machine {next(_number)}")
    fields.setdefault("country", "DE")
    fields.setdefault("gpu_memory_bytes", 24 * GIB)
    if fields["gpu_memory_bytes"] is not None:
        community = tier == Tier.COMMUNITY
        fields.setdefault("memory_source", MemorySource.PROVIDER_REPORT if community else MemorySource.DATA_CENTER)
    fields.setdefault("free_lots", fields.setdefault("lots", 1))
    for days in (7, 30):
        fields.setdefault(f"price_{days}_days_usd", package_price(hourly, days))
    for name, make in (("gpu", make_gpu), ("provider", make_provider)):
        if name not in fields:
            fields[name] = make()
    return Machine.objects.create(**fields)


def make_basket(machine: Machine, **fields: Any) -> Any:
    """Seven days of one lot of the machine, what Community asks for acknowledged."""
    fields.setdefault("community_acknowledged", machine.tier == Tier.COMMUNITY)
    return Basket(machine_id=machine.pk, **{"term_days": 7, **fields})


def place(organization: Any, basket: Any, **fields: Any) -> Any:
    """Place the basket through the one function, at its present price unless `expected_total_usd` says otherwise."""
    now = fields.setdefault("now", timezone.now())
    if "expected_total_usd" not in fields:
        fields["expected_total_usd"] = quote(basket, now=now).total_usd
    fields.setdefault("idempotency_key", f"key-{next(_number)}")
    fields.setdefault("actor", getattr(organization, "owner", None))
    fields.setdefault("via", "page")
    fields.setdefault("path", f"/o/{organization.slug}/orders/review/")
    return place_order(organization=organization, basket=basket, **fields)


def make_order(
    organization: Any, machine: Machine | None = None, *, placement: dict[str, Any] | None = None, **basket: Any
) -> Any:
    """An order of the organization; `placement` goes to `place`, the rest into the basket."""
    return place(organization, make_basket(machine or make_machine(), **basket), **(placement or {})).order


def make_option(slug: str = "storage-500", **fields: Any) -> Option:
    return Option.objects.create(
        slug=slug, **{"name": "Storage 500 GB", "price_per_lot_day_usd": Decimal("1.50"), "max_quantity": 4, **fields}
    )


def make_ai_model(slug: str = "llama-3.1-8b", **fields: Any) -> Any:
    """Llama 3.1 8B as published; name what is different."""
    published = {
        "name": "Llama 3.1 8B" if slug == "llama-3.1-8b" else slug,
        "family": "Llama 3.1",
        "parameters": 8_030_261_248,
        "layers": 32,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "attention_heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "vocab_size": 128_256,
        "max_context": 131_072,
        "cache_groups": [{"layers": 32, "elements_per_token": 2048, "kv_heads": 8, "window": None}],
        "license": "Llama 3.1 Community License",
        "source_url": "https://example.com/llama-3.1-8b",
    }
    return AiModel.objects.create(slug=slug, **{**published, **fields})


def make_api_key(organization: Any, *scopes: str, now: Any = None, **fields: Any) -> Any:
    """A key of the organization with these scopes, both when none is named; its text is its attribute `text`."""
    fields = {"name": "a test", "actor": None, "via": "system", **fields}
    key, text = create_api_key(organization, scopes=scopes or ("read", "order"), now=now or timezone.now(), **fields)
    key.text = text
    return key


def make_invitation(organization: Any, email: str = "new@example.com", role: str = "member", **fields: Any) -> Any:
    """An open invitation by the organization's owner; its link is its attribute `link`."""
    manager = fields.pop("manager", None) or Membership.objects.get(organization=organization, user=organization.owner)
    invitation, link = invite(manager, email=email, role=role, now=fields.pop("now", None) or timezone.now())
    invitation.link = link.removeprefix(settings.SITE_URL)
    return invitation


def make_own_model(organization: Any, name: str = "My Llama", *, files: tuple[bytes, ...] = (), by: Any = None) -> Any:
    """A model that the organization brought; `files` are its config.json and what says how it is stored."""
    first, *weights = files or (config(),)
    membership = Membership.objects.get(organization=organization, user=by or organization.owner)
    return add_own_model(membership, read_files(first, weights, name), now=timezone.now())


def ssh_line(name: str = "ada@laptop") -> str:
    """A sound ssh-ed25519 line; another name is another key."""
    fields = (b"ssh-ed25519", hashlib.sha256(name.encode()).digest())
    blob = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    return f"ssh-ed25519 {base64.b64encode(blob).decode()} {name}"


def make_ssh_key(organization: Any, name: str = "ada@laptop") -> Any:
    """A key of the organization, added by its owner."""
    member = Membership.objects.get(organization=organization, user=organization.owner)
    return add_key(member, read_key(ssh_line(name)), now=timezone.now())


def make_delivered(order: Any, number: int = 1, *, now: Any = None, **details: Any) -> Any:
    """Lot `number` of the order, handed over by a member of the staff."""
    staff = User.objects.filter(is_staff=True).first() or make_user(is_staff=True)
    fields = {"host": "gpu1.example.net", "login": "ubuntu", **details}
    return deliver(order.allocations.get(number=number).pk, Details(**fields), actor=staff, now=now or timezone.now())


def make_endpoint(organization: Any, url: str = "https://example.com/hook", **fields: Any) -> Any:
    """An endpoint of the organization that is told everything; its secret is its attribute `text`."""
    member = Membership.objects.get(organization=organization, user=organization.owner)
    now, events = fields.pop("now", None) or timezone.now(), fields.pop("events", EventKind.values)
    endpoint, text = create_endpoint(member, Wish(url, tuple(events), **fields), now=now)
    endpoint.text = text
    return endpoint


def make_search(organization: Any, name: str = "24 GiB", query: str = "", **fields: Any) -> Any:
    """A search for a notebook with 20 GiB, saved by the organization's owner."""
    member = Membership.objects.get(organization=organization, user=fields.pop("by", organization.owner))
    now = fields.pop("now", None) or timezone.now()
    return save_search(member, name=name, query=query or "task=notebook&gpu_memory_gib=20", now=now)
