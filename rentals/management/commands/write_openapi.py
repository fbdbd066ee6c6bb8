"""Write docs/openapi.json, the contract of the API, and refuse what would break a client of it."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from drf_spectacular.generators import SchemaGenerator

from rentals.api.changes import breaking_changes

FILE = Path(__file__).resolve().parents[3] / "docs" / "openapi.json"


def document() -> dict[str, Any]:
    """The document as it is now, in plain JSON kinds."""
    made = SchemaGenerator().get_schema(request=None, public=True)
    plain: dict[str, Any] = json.loads(json.dumps(made, ensure_ascii=False))
    return plain


class Command(BaseCommand):
    help = "Write docs/openapi.json; refuses a change that would break a client of v1. Needs no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--break-clients", action="store_true", help="Write it although clients break.")

    def handle(self, *args: Any, **options: Any) -> None:
        new = document()
        if FILE.exists() and not options["break_clients"]:
            changes = breaking_changes(json.loads(FILE.read_text(encoding="utf-8")), new)
            if changes:
                raise CommandError("This would break clients of v1:\n" + "\n".join(changes))
        FILE.write_text(json.dumps(new, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        self.stdout.write("docs/openapi.json is written.")
