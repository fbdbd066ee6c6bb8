"""Make an API key for an organization and print it: for operators, who then hand it over."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from rentals.api_keys import create_api_key
from rentals.errors import RentalError
from rentals.forms import printable
from rentals.models import Organization
from rentals.tenants import Across, across_tenants

MAX_DAYS = 3650


class Command(BaseCommand):
    help = "Make an API key for an organization and print it. It is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("organization", help="The organization's slug, such as acme.")
        parser.add_argument("--scopes", default="read", help="read, order or read,order (default: read).")
        parser.add_argument("--name", default="made by the operator", help="What uses the key.")
        parser.add_argument("--expires-days", type=int, help=f"Days until it expires, 1 to {MAX_DAYS}; never without.")

    def handle(self, *args: Any, organization: str, scopes: str, name: str, **options: Any) -> None:
        now, days = timezone.now(), options["expires_days"]
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--expires-days must be 1 to {MAX_DAYS}.")
        with across_tenants(Across.OPERATOR):
            self._create(organization, scopes, name, days, now)

    def _create(self, organization: str, scopes: str, name: str, days: int | None, now: datetime) -> None:
        found = Organization.objects.filter(slug=organization).first()
        if found is None:
            raise CommandError(f"There is no organization {organization!r}.")
        try:
            if not 1 <= len(printable(name).strip()) <= 80:
                raise CommandError("--name must have 1 to 80 characters.")
            key, text = create_api_key(
                found,
                name=name.strip(),
                scopes=[scope.strip() for scope in scopes.split(",") if scope.strip()],
                expires_at=None if days is None else now + timedelta(days=days),
                actor=None,
                via="system",
                now=now,
            )
        except (RentalError, ValidationError) as error:
            raise CommandError(error.messages[0] if isinstance(error, ValidationError) else error.message) from error
        expiry = f"expires {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else "never expires"
        self.stderr.write(f"Key {key.name} of {found.slug}: {', '.join(key.scopes)}; {expiry}. It is shown this once.")
        self.stdout.write(text)
