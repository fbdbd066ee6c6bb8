"""Rows for the tests of processes, made in a process of their own with production's settings (`Shape.make`)."""

import json
import sys
import traceback
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from catalog.models import Machine, Provider
from rentals.models import Organization
from rentals.tenants import Across, across_tenants
from tests import factories

PRICE = Decimal("110.00")
_NAMES = "acme", "globex", "initech", "umbrella", "hooli", "stark", "wayne", "wonka"


def serve() -> None:
    """Answer one call a line, name and arguments, until nobody asks any more."""
    for line in sys.stdin:
        function, arguments = json.loads(line)
        try:
            answer = {"made": globals()[function](**arguments)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)
        # The server may be stopped and started until the next call.
        connection.close()
        connection.close_pool()


def organizations(number: int, keys: int = 1) -> list[dict[str, Any]]:
    """New organizations with an owner who can sign in, and keys that may read and order."""
    made = []
    with across_tenants(Across.OPERATOR):
        first = Organization.objects.count()
        for each in range(first, first + number):
            slug = f"{_NAMES[each % len(_NAMES)]}-{each}"
            organization = factories.make_organization(slug)
            texts = [factories.make_api_key(organization, name=f"key {n}").text for n in range(keys)]
            made.append(
                {"slug": slug, "id": organization.pk, "keys": texts, "owner": organization.owner.email,
                 "owner_id": organization.owner.pk}
            )  # fmt: skip
    return made


def staff() -> str:
    """The address of somebody who may do everything in the administration."""
    number = next(n for n in count() if not User.objects.filter(email=f"staff{n}@berth.example").exists())
    return factories.make_user(f"staff{number}@berth.example", is_staff=True, is_superuser=True).email


def machine(lots: int, **fields: Any) -> int:
    number = Machine.objects.count() + 1
    names = {"name": f"Machine {number}"}
    gpu, provider = factories.make_gpu(f"gpu-of-{number}"), factories.make_provider(f"provider-of-{number}")
    made = factories.make_machine(lots=lots, price_7_days_usd=PRICE, gpu=gpu, provider=provider, **names, **fields)
    return made.pk


def orders(slug: str, machine: int, number: int, days_ago: float) -> list[str]:
    """Orders of one lot, placed by the owner so many days ago."""
    with across_tenants(Across.OPERATOR):
        organization = Organization.objects.get(slug=slug)
        organization.owner = organization.memberships.get().user
    row, now = Machine.objects.get(pk=machine), timezone.now() - timedelta(days=days_ago)
    made = []
    for each in range(number):
        with across_tenants(Across.OPERATOR):
            basket = factories.make_basket(row)
        key = f"made-{machine}-{each}-{now:%f}"
        made.append(str(factories.place(organization, basket, idempotency_key=key, now=now).order.pk))
    return made


def provider(feed_url: str, seconds: int) -> int:
    """A provider whose list is to be fetched every so many seconds."""
    number = Provider.objects.count() + 1
    return factories.make_provider(
        f"fed-{number}", feed_format="berth", feed_url=feed_url, feed_interval_seconds=seconds
    ).pk
