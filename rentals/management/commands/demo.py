"""`make demo`: a complete console on this machine alone, with invented machines and two logins known to everybody."""

import os
import socket
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from django.utils import timezone

from rentals.models import Organization
from rentals.organizations import create_organization

MEMBER = ("demo@example.com", "berth-demo")
STAFF = ("admin@example.com", "berth-admin")
HOST = "127.0.0.1"


class Command(BaseCommand):
    help = "Serve the demo: a SQLite database with invented machines and two known logins. Keeps its data."
    # The tables that checks may ask for do not exist before the first migration.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--reset", action="store_true", help="Delete the demo's database first.")
        parser.add_argument("--prepare", action="store_true", help="Prepare the data and stop, without serving.")

    def handle(self, *, port: int, reset: bool, prepare: bool, **options: Any) -> None:
        database = demo_database()
        if not prepare:
            refuse_taken_port(port)
        if reset:
            delete(database)
        database.parent.mkdir(parents=True, exist_ok=True)
        prepare_data()
        if prepare:
            return
        address = f"http://{HOST}:{port}"
        self.stdout.write(
            f"\n  Berth is served at {address}/   (Ctrl-C ends it)\n\n"
            f"  Demo login    {MEMBER[0]} / {MEMBER[1]}   owner of the organization acme\n"
            f"  Admin login   {STAFF[0]} / {STAFF[1]}   {address}/admin/\n\n"
            "  Both logins exist in demo mode alone. Machines of demo providers are invented.\n"
            f"  The data is kept in {database}; make demo RESET=1 starts over.\n\n"
        )
        self.stdout.flush()
        serve(port, address)


def demo_database() -> Path:
    """The file of the demo's data.

    Raises: CommandError outside demo mode, and for a database server, where known logins would be an open door.
    """
    if not settings.DEMO:
        raise CommandError("The demo creates logins that everybody knows. It runs in demo mode alone: make demo")
    database = settings.DATABASES["default"]
    if database["ENGINE"] != "django.db.backends.sqlite3":
        raise CommandError("The demo keeps its data in a SQLite file. Unset DATABASE_URL, then: make demo")
    return Path(database["NAME"])


def refuse_taken_port(port: int) -> None:
    """Say so before any work is done, rather than in gunicorn's words after it."""
    if not 1 <= port <= 65535:
        raise CommandError(f"Port {port} does not exist: choose one from 1 to 65535, for example make demo PORT=8123")
    with socket.socket() as probe:
        # As gunicorn does: connections of a server that just ended do not count as a server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError as error:
            raise CommandError(f"Port {port} is for root alone: choose another, make demo PORT=8123") from error
        except OSError as error:
            raise CommandError(
                f"Port {port} is taken: end what uses it, or choose another, make demo PORT=8123"
            ) from error


def delete(database: Path) -> None:
    connection.close()
    for suffix in ("", "-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def prepare_data() -> None:
    """Tables, catalog, models and logins; what is there already stays as it is."""
    call_command("migrate", interactive=False, verbosity=0)
    call_command("load_catalog", only_new=True)
    call_command("load_models", only_new=True)
    with transaction.atomic():
        ensure_user(*STAFF, is_staff=True, is_superuser=True)
        member = ensure_user(*MEMBER)
        if not Organization.objects.filter(slug="acme").exists():
            create_organization(name="Acme", owner=member, now=timezone.now())


def ensure_user(email: str, password: str, **flags: bool) -> User:
    user = User.objects.filter(username=email).first()
    if user is None:
        user = User.objects.create_user(email, email, password, **flags)
        EmailAddress.objects.create(user=user, email=email, verified=True, primary=True)
    return user


def serve(port: int, address: str) -> None:
    """Become gunicorn: Ctrl-C and signals reach it directly."""
    connection.close()
    os.environ.setdefault("SITE_URL", address)
    os.chdir(settings.BASE_DIR)
    command = [sys.executable, "-m", "gunicorn", "--config", "python:config.gunicorn", "--bind", f"{HOST}:{port}"]
    # One process, whatever the environment says: the demo's cache and periodic work live in it.
    os.execv(sys.executable, [*command, "--workers", "1", "config.wsgi:application"])
