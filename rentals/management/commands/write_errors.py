"""Write docs/errors.md from the table of codes."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from rentals.api.problems import PAGE, page


class Command(BaseCommand):
    help = "Write docs/errors.md from the table of codes; needs no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="Write nothing; fail when the page would change.")

    def handle(self, *args: Any, **options: Any) -> None:
        text = page()
        if options["check"]:
            if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
                raise CommandError("docs/errors.md is not what manage.py write_errors writes; run it.")
            return
        PAGE.write_text(text, encoding="utf-8")
        self.stdout.write("docs/errors.md is written.")
