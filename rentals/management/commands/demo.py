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

from rentals.management.serving import HOST, bound_socket, hold, listen, port_number, preparing, refuse_served
from rentals.models import Organization
from rentals.organizations import create_organization

MEMBER = ("demo@example.com", "berth-demo")
STAFF = ("admin@example.com", "berth-admin")


class Command(BaseCommand):
    help = "Serve the demo: a SQLite database with invented machines and two known logins. Keeps its data."
    # The tables that checks may ask for do not exist before the first migration.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        # A text: what is no port is told in our words.
        parser.add_argument("--port", default="8000")
        parser.add_argument("--reset", action="store_true", help="Delete the demo's database first.")
        parser.add_argument("--prepare", action="store_true", help="Prepare the data and stop, without serving.")

    def handle(self, *, port: str, reset: bool, prepare: bool, **options: Any) -> None:
        database = demo_database()
        number = port_number(port)
        taken = None if prepare else bound_socket(number)
        database.parent.mkdir(parents=True, exist_ok=True)
        with preparing(database, self.stderr.write):
            if reset:
                refuse_served(database)
                delete(database)
            prepare_data()
            if taken is None:
                return
            listen(taken)
            hold(database, number)
        address = f"http://{HOST}:{number}"
        self.stdout.write(
            f"\n  Berth is served at {address}/   (Ctrl-C ends it)\n\n"
            f"  Demo login    {MEMBER[0]} / {MEMBER[1]}   owner of the organization acme\n"
            f"  Admin login   {STAFF[0]} / {STAFF[1]}   {address}/admin/\n\n"
            "  Both logins exist in demo mode alone. Machines of demo providers are invented.\n"
            f"  The data is kept in {database}; make demo RESET=1 starts over.\n\n"
        )
        self.stdout.flush()
        serve(taken, address)


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


def serve(taken: socket.socket, address: str) -> None:
    """Become gunicorn: Ctrl-C and signals reach it directly."""
    connection.close()
    os.environ.setdefault("SITE_URL", address)
    os.chdir(settings.BASE_DIR)
    command = [sys.executable, "-m", "gunicorn", "--config", "python:config.gunicorn"]
    command += ["--bind", f"fd://{taken.fileno()}"]
    # One process, whatever the environment says: the demo's cache and periodic work live in it.
    os.execv(sys.executable, [*command, "--workers", "1", "config.wsgi:application"])
