"""Write docs/formulas.md from its template, with every figure from the conformance vectors."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from sizing.conformance.formulas import PAGE, UnknownFigure, page


class Command(BaseCommand):
    help = "Write docs/formulas.md from its template and the conformance vectors; needs no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="Write nothing; fail when the page would change.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            text = page()
        except UnknownFigure as error:
            raise CommandError(str(error)) from error
        if options["check"]:
            if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
                raise CommandError("docs/formulas.md is not what manage.py write_formulas writes; run it.")
            return
        PAGE.write_text(text, encoding="utf-8")
        self.stdout.write("docs/formulas.md is written.")
